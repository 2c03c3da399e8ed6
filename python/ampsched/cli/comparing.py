"""``ampsched compare``."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from ampsched import api
from ampsched._core import InputError
from ampsched.cli import options, perfetto, render, reporting
from ampsched.cli.output import Output, with_format
from ampsched.cli.progress import progress_bar
from ampsched.cli.settings import SIMULATION, with_settings
from ampsched.cli.tables import Column, Table
from ampsched.comparison import Comparison, SummaryRow, limit_line
from ampsched.curves import Panel
from ampsched.execution import Run
from ampsched.over import Over
from ampsched.parameters import Parameters, shown
from ampsched.policy import PolicySpec
from ampsched.settings import CompareSettings, SimulateSettings, catalog_of, only
from ampsched.statistics import Estimate
from ampsched.uncertainty import MARGIN, Verdict

EXAMPLES = render.examples(
    "ampsched compare -m 2B2S -w sync-2 -p linux,wash,colab",
    "ampsched compare -m 2B2S,4B4S -w ferret -p cfs,colab:literal=1 --repeat 5",
    "ampsched compare -m 2B2S -w ferret -p linux,colab --over n=1..16 --html threads.html",
    "ampsched compare -m my_phone.toml -w my_program.toml -p linux,colab --factors noisy:cv=0.2:stale_ms=100",
    "ampsched compare -m 2B2S -w sync-2 -p cfs,my_policy.py:FastestFirst",
    "ampsched compare -m 2B2S -w sync-2 -p linux,colab --repeat 5 --html report.html",
    "ampsched compare -m 2B2S -w sync-2 -p cfs,colab --trace out.pftrace   (open in https://ui.perfetto.dev)",
)


@with_format
@with_settings(CompareSettings, SIMULATION)
def compare(
    machine: options.Machines,
    workload: options.Workloads,
    policy: options.Policies = "linux,wash,colab",
    *,
    settings: CompareSettings,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            help="Write a Perfetto trace of the first seed and core order; with several policies one file each.",
        ),
    ] = None,
    open_: perfetto.Open = False,
    details: Annotated[
        bool, typer.Option("--details", help="Print switches, migrations, waiting, fairness.")
    ] = False,
    limits: Annotated[
        bool, typer.Option("--limits/--no-limits", help="Compute how far policies are from the limit, too.")
    ] = True,
    margin: options.Margin = MARGIN,
    over: options.OverOption = None,
    html: options.Html = None,
    output: Output,
) -> None:
    """Compare policies on workloads and machines.

    H_ANTT is the mean slowdown of the programs against running alone on as many cores, all of them big (lower is
    better); H_STP is the sum of their progress (higher is better). Changes are against the first policy.
    """
    machines, workloads = options.split(machine, "machine"), options.split(workload, "workload")
    texts, column = options.split(policy, "policy"), None
    if over:
        varied = Over.of(over).varied(machines, workloads, texts, catalog_of(settings))
        machines, workloads, texts, column = varied.machines, varied.workloads, varied.policies, varied.column
    policies = [PolicySpec.of(each) for each in texts]
    if trace and (len(machines) > 1 or len(workloads) > 1):
        hint = f" (leave out --over {over}, or have one value, such as ferret:n=4)" if over else ""
        raise InputError(f"--trace needs a single machine and a single workload{hint}")
    perfetto.check(open_, trace)
    if open_ and len(policies) > 1:
        raise InputError("--open shows one trace (give one --policy, or leave out --open)")
    with progress_bar("Simulating", hidden=output.is_data) as progress:
        result = api.compare(
            machines, workloads, policies, limits=limits, margin=margin, progress=progress, **settings
        )
    result = replace(result, over=column)
    traces = _write_traces(trace, result, machines[0], workloads[0], policies, settings) if trace else []

    def text(console: Console) -> None:
        print_comparison(console, result, details=details)
        for path in traces:
            console.print(f"trace written to {path} (open it in https://ui.perfetto.dev)", soft_wrap=True)

    output.show(
        value=lambda: result.to_dict() | {"traces": [str(path) for path in traces]},
        rows=result.rows,
        text=text,
    )
    reporting.comparison(html, result, machines, workloads, policies, settings, quiet=output.is_data)
    if open_:
        perfetto.show(traces[0])


def _write_traces(
    trace: Path,
    result: Comparison,
    machine: str,
    workload: str,
    policies: Sequence[PolicySpec],
    settings: CompareSettings,
) -> list[Path]:
    """Runs each policy's first run once more with a trace: ``out.pftrace``, or ``out.cfs.pftrace`` and so on."""
    paths = []
    first = result.runs[0]
    run = only(SimulateSettings, settings) | SimulateSettings(seed=first.seed, core_order=first.core_order)
    for policy in policies:
        label = policy.label.replace(":", "-").replace("=", "-")
        path = trace if len(policies) == 1 else trace.with_name(f"{trace.stem}.{label}{trace.suffix}")
        api.simulate(machine, workload, policy, trace=path, **run)
        paths.append(path)
    return paths


@dataclass(frozen=True)
class _Row:
    """A policy on a machine and a workload.

    Attributes:
        summary: Its numbers.
        is_first: Whether it is what others there are measured against.
        is_best: Whether it is the best of them.
        rivals: How many policies there are.
    """

    summary: SummaryRow
    is_first: bool
    is_best: bool
    rivals: int

    def change(self, value: Estimate, *, lower_is_better: bool) -> Text | str:
        """A change against the first policy, which has none."""
        return "" if self.is_first else render.change(value, lower_is_better=lower_is_better)


@dataclass(frozen=True)
class _Block:
    """Machines and workloads that are shown in one table: one pair, or all along a parameter.

    Attributes:
        result: The comparison.
        name: Of the block.
        mixes: The pairs.
        parameters: Those of the comparison.
        columns: Those of them that tell the pairs and the policies apart.
        groups: The rows of each pair.
        verdicts: Those of several pairs.
    """

    result: Comparison
    name: str
    mixes: Sequence[tuple[str, str]]
    parameters: Parameters
    columns: Sequence[str]
    groups: Sequence[Sequence[SummaryRow]]
    verdicts: Mapping[tuple[str, str], Verdict]

    @staticmethod
    def of(result: Comparison, mixes: Sequence[tuple[str, str]], name: str = "") -> "_Block":
        """The block of some pairs."""
        parameters, rows = result.parameters, result.summary()
        values = [parameters.values(*mix, policy) for mix in mixes for policy in result.policies]
        varied = [
            column for column in parameters.columns if len({each.get(column) for each in values} - {None}) > 1
        ]
        groups = [[row for row in rows if (row.machine, row.workload) == mix] for mix in mixes]
        machine, workload = mixes[0]
        verdicts = {mix: result.verdict(*mix) for mix in mixes} if len(mixes) > 1 else {}
        name = name or f"{workload} on {machine}"
        return _Block(result, name, mixes, parameters, varied, groups, verdicts)

    @property
    def is_along(self) -> bool:
        """Whether there are several pairs, along a parameter."""
        return len(self.groups) > 1

    def heads(self) -> list[Column]:
        """The heads of the parameters, and of the policy."""
        return [*(Column(self.parameters.head(each)) for each in self.columns), render.label("policy")]

    def cells(self, row: SummaryRow) -> list[str]:
        """The same of a row."""
        values = self.parameters.values(row.machine, row.workload, row.policy)
        return [*(shown(values[each]) for each in self.columns), self.parameters.short("policy", row.policy)]

    def rows(
        self,
        value: Callable[[SummaryRow], float] = lambda row: row.h_antt.mean,
        best: Callable[[Iterable[float]], float] = min,
    ) -> list[_Row]:
        """All rows; of each pair those are the best whose value is."""
        found: list[_Row] = []
        for rows in self.groups:
            most = best(map(value, rows))
            found += [_Row(row, place == 0, value(row) == most, len(rows)) for place, row in enumerate(rows)]
        return found

    def word(self, row: SummaryRow) -> list[str]:
        """The cell of a pair's verdict, in the row of the policy that it is about; none of a single pair."""
        if not self.is_along:
            return []
        verdict = self.verdicts[row.machine, row.workload]
        return [verdict.word if verdict.best == row.policy else ""]

    def verdict_head(self) -> list[Column]:
        """The head of that cell."""
        return [render.label("verdict")] if self.is_along else []


def print_comparison(console: Console, result: Comparison, *, details: bool) -> None:
    """Prints the tables of a comparison."""
    panels = [panel for panel in result.panels() if len(panel.mixes()) > 1]
    along = {mix for panel in panels for mix in panel.mixes()}
    for panel in panels:
        name = f"{panel.name} over {panel.head}"
        _print_curves(console, result, panel)
        _print_block(console, _Block.of(result, panel.mixes(), name), details=details)
    others = {tuple(panel.mixes()): panel for panel in result.panels() if len(panel.mixes()) == 1}
    for mix in (mix for mix in result.mixes() if mix not in along):
        _print_verdict(console, result, *mix)
        if (mix,) in others:
            _print_curves(console, result, others[mix,])
        _print_block(console, _Block.of(result, [mix]), details=details)
    orders = len({run.core_order for run in result.runs})
    many = f"means of {orders} core orders; " if orders > 1 else ""
    seeds = "± is the 95 % interval over seeds; " if result.summary()[0].h_antt.n > 1 else ""
    best = "* best; " if len(result.policies) > 1 else ""
    console.print(f"{many}{seeds}{best}{', '.join(result.notes)}", style="dim", soft_wrap=True)
    render.print_notes(console, result.caveats())


def _print_block(console: Console, block: _Block, *, details: bool) -> None:
    result, groups = block.result, block.groups
    apps = [app.name for app in result.select(*block.mixes[0], result.policies[0])[0].outcome.apps]
    timed = result.timed(*block.mixes[0])
    if timed:
        render.print_table(console, f"{block.name}, work done until it was stopped", _work_table(block))
    if timed != apps:
        render.print_table(console, block.name, _main_table(block))
        if not block.is_along:
            console.print(f"{limit_line(groups[0])}\n", style="dim", soft_wrap=True)
    if timed != apps and len(apps) > 1:
        render.print_table(console, "Slowdown of each program (H_NTT)", _slowdown_table(block))
    if all(row.energy_j is not None for rows in groups for row in rows):
        render.print_table(console, "Energy", _energy_table(block))
    if details:
        render.print_table(console, "Details, means", _detail_table(block))


def _print_curves(console: Console, result: Comparison, panel: Panel) -> None:
    """The answer along a parameter, and a small curve of each policy."""
    for line in result.told(panel):
        console.print(line, soft_wrap=True, markup=False)
    metric = result.decisive(*panel.mixes()[0])
    render.print_curves(
        console,
        panel.head,
        {line.policy: line.means() for line in panel.lines},
        metric.text,
    )


def _print_verdict(console: Console, result: Comparison, machine: str, workload: str) -> None:
    """The answer: which policy is best, by how much, how sure that is."""
    if len(result.policies) == 1:
        return
    for line in result.sentences(machine, workload):
        console.print(line, soft_wrap=True, markup=False)
    console.print()


def _marked(text: str, best: bool, rivals: int) -> str:
    """The text with a star, or a blank, behind it."""
    return f"{text}{'*' if best and rivals > 1 else ' '}"


def _main_table(block: _Block) -> Table:
    table = render.table(
        *block.heads(),
        "H_ANTT",
        render.tied("change %"),
        render.picture(),
        "H_STP",
        render.tied("change %"),
        "makespan ms",
        *block.verdict_head(),
    )
    rows = block.rows()
    worst = max(each.summary.h_antt.mean for each in rows)
    for each in rows:
        row = each.summary
        table.add_row(
            *block.cells(row),
            _marked(render.fixed(row.h_antt.mean, 3), each.is_best, each.rivals),
            each.change(row.h_antt_change, lower_is_better=True),
            render.bar(row.h_antt.mean / worst),
            render.fixed(row.h_stp.mean, 3),
            each.change(row.h_stp_change, lower_is_better=False),
            render.milliseconds(row.makespan_ms.mean * 1e6),
            *block.word(row),
            style="bold" if each.is_best and each.rivals > 1 else "",
        )
    return table


def _work_table(block: _Block) -> Table:
    """What policies differ in if programs run for a stated time."""
    table = render.table(
        *block.heads(),
        "10^9 instr.",
        render.tied("change %"),
        render.picture(),
        "waiting ms",
        "longest ms",
        *block.verdict_head(),
    )
    rows = block.rows(lambda row: row.instructions.mean, max)
    most = max(each.summary.instructions.mean for each in rows)
    for each in rows:
        row = each.summary
        table.add_row(
            *block.cells(row),
            _marked(render.fixed(row.instructions.mean / 1e9, 3), each.is_best, each.rivals),
            each.change(row.instructions_change, lower_is_better=False),
            render.bar(row.instructions.mean / most if most else 0.0),
            render.milliseconds(row.waiting_ms * 1e6),
            render.milliseconds(row.longest_wait_ms * 1e6),
            *block.word(row),
        )
    return table


def _energy_table(block: _Block) -> Table:
    """Energy, its change against the first policy, energy x makespan."""
    table = render.table(*block.heads(), "energy J", render.tied("change %"), "EDP J s")
    for each in block.rows():
        row = each.summary
        assert row.energy_j, "only printed if energy is known"
        assert row.energy_change, "it comes with energy"
        assert row.edp_js, "it comes with energy"
        table.add_row(
            *block.cells(row),
            render.fixed(row.energy_j.mean, 3),
            each.change(row.energy_change, lower_is_better=True),
            render.fixed(row.edp_js.mean, 3),
        )
    return table


def _slowdown_table(block: _Block) -> Table:
    """H_NTT of each application under each policy."""
    policies, parameters = block.result.policies, block.parameters
    columns = list(parameters.values(*block.mixes[0])) if block.is_along else []
    table = render.table(
        render.label("program"), *(Column(parameters.head(each)) for each in columns), *policies
    )
    for mix in block.mixes:
        values = parameters.values(*mix)
        runs = [block.result.select(*mix, policy) for policy in policies]
        for app, outcome in enumerate(runs[0][0].outcome.apps):
            means = [fmean(run.metrics.h_ntt[app] for run in each) for each in runs]
            cells = [_marked(render.fixed(mean, 2), mean == min(means), len(means)) for mean in means]
            table.add_row(outcome.name, *(shown(values[each]) for each in columns), *cells)
    return table


def _detail_table(block: _Block) -> Table:
    """Switches, migrations, mean waiting and blocked time of a thread, wake-up latency, utilisation, fairness."""
    every = [each.summary for each in block.rows()]
    periodic = any(row.missed for row in every)
    heads = (
        "switches",
        "migr.",
        "waiting ms",
        "blocked ms",
        "wake-up p99 ms",
        *(["missed"] if periodic else []),
    )
    heads += ("busy %", "unfair", "uniform")
    table = render.table(*block.heads(), *heads)
    for row in every:
        runs: list[Run] = block.result.select(row.machine, row.workload, row.policy)
        threads = [thread for run in runs for thread in run.outcome.threads]
        table.add_row(
            *block.cells(row),
            render.count(row.switches),
            render.count(row.migrations),
            render.milliseconds(fmean(thread.ready_ns for thread in threads)),
            render.milliseconds(fmean(thread.blocked_ns for thread in threads)),
            render.fixed(row.latency_p99_ms.mean, 3),
            *([render.fixed(row.missed.mean if row.missed else 0, 1)] if periodic else []),
            render.share(row.utilisation),
            render.fixed(row.unfairness, 2),
            render.fixed(row.uniformity, 3),
        )
    return table
