"""``ampsched compare``."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated

import typer
from rich.console import Console

from ampsched import api
from ampsched._core import InputError
from ampsched.cli import options, perfetto, render, reporting
from ampsched.cli.output import Output, with_format
from ampsched.cli.progress import progress_bar
from ampsched.cli.settings import SIMULATION, with_settings
from ampsched.cli.tables import Table
from ampsched.comparison import Comparison, SummaryRow, limit_line
from ampsched.execution import Run
from ampsched.policy import PolicySpec
from ampsched.settings import CompareSettings, SimulateSettings, only
from ampsched.uncertainty import MARGIN, sentences

EXAMPLES = render.examples(
    "ampsched compare -m 2B2S -w sync-2 -p linux,wash,colab",
    "ampsched compare -m 2B2S,4B4S -w ferret -p cfs,colab:literal=1 --repeat 5",
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
    html: options.Html = None,
    output: Output,
) -> None:
    """Compare policies on workloads and machines.

    H_ANTT is the mean slowdown of the programs against running alone on as many cores, all of them big (lower is
    better); H_STP is the sum of their progress (higher is better). Changes are against the first policy.
    """
    machines, workloads = options.split(machine, "machine"), options.split(workload, "workload")
    policies = [PolicySpec.of(each) for each in options.split(policy, "policy")]
    if trace and (len(machines) > 1 or len(workloads) > 1):
        raise InputError("--trace needs a single machine and a single workload")
    perfetto.check(open_, trace)
    if open_ and len(policies) > 1:
        raise InputError("--open shows one trace (give one --policy, or leave out --open)")
    with progress_bar("Simulating", hidden=output.is_data) as progress:
        result = api.compare(
            machines, workloads, policies, limits=limits, margin=margin, progress=progress, **settings
        )
    traces = _write_traces(trace, result, machines[0], workloads[0], policies, settings) if trace else []

    def text(console: Console) -> None:
        print_comparison(console, result, details=details)
        for path in traces:
            console.print(f"trace written to {path} (open it in https://ui.perfetto.dev)", soft_wrap=True)

    output.show(
        value=lambda: result.to_dict() | {"traces": [str(path) for path in traces]},
        rows=lambda: map(dataclasses.asdict, result.summary()),
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


def print_comparison(console: Console, result: Comparison, *, details: bool) -> None:
    """Prints the tables of a comparison."""
    rows = result.summary()
    for machine, workload in result.mixes():
        _print_verdict(console, result, machine, workload)
        mix = [row for row in rows if (row.machine, row.workload) == (machine, workload)]
        runs = [result.select(machine, workload, policy) for policy in result.policies]
        apps = [app.name for app in runs[0][0].outcome.apps]
        timed = result.timed(machine, workload)
        if timed:
            title = f"{workload} on {machine}, work done until it was stopped"
            render.print_table(console, title, _work_table(mix))
        if timed != apps:
            render.print_table(console, f"{workload} on {machine}", _main_table(mix))
            console.print(f"{limit_line(mix)}\n", style="dim", soft_wrap=True)
        if timed != apps and len(apps) > 1:
            render.print_table(
                console, "Slowdown of each program (H_NTT)", _slowdown_table(result.policies, runs)
            )
        if all(row.energy_j is not None for row in mix):
            render.print_table(console, "Energy", _energy_table(mix))
        if details:
            render.print_table(console, "Details, means", _detail_table(mix, runs))
    orders = len({run.core_order for run in result.runs})
    many = f"means of {orders} core orders; " if orders > 1 else ""
    seeds = "± is the 95 % interval over seeds; " if rows[0].h_antt.n > 1 else ""
    best = "* best; " if len(result.policies) > 1 else ""
    console.print(f"{many}{seeds}{best}{', '.join(result.notes)}", style="dim", soft_wrap=True)
    render.print_notes(console, result.caveats())


def _print_verdict(console: Console, result: Comparison, machine: str, workload: str) -> None:
    """The answer: which policy is best, by how much, how sure that is."""
    if len(result.policies) == 1:
        return
    metric = result.decisive(machine, workload)
    conditions = result.recorded.get((machine, workload))
    if conditions and conditions.against:
        console.print(f"no basis of advice: {'; '.join(conditions.against)}", soft_wrap=True, markup=False)
    told = sentences(result.verdict(machine, workload), workload, machine, metric.name, metric.text)
    for line in told:
        console.print(line, soft_wrap=True, markup=False)
    console.print()


def _marked(text: str, best: bool, rivals: int) -> str:
    """The text with a star, or a blank, behind it."""
    return f"{text}{'*' if best and rivals > 1 else ' '}"


def _main_table(rows: list[SummaryRow]) -> Table:
    table = render.table(
        "policy",
        "H_ANTT",
        render.tied("change %"),
        render.picture(),
        "H_STP",
        render.tied("change %"),
        "makespan ms",
    )
    worst = max(row.h_antt.mean for row in rows)
    best = min(row.h_antt.mean for row in rows)
    for number, row in enumerate(rows):
        is_best = row.h_antt.mean == best
        table.add_row(
            row.policy,
            _marked(render.fixed(row.h_antt.mean, 3), is_best, len(rows)),
            "" if number == 0 else render.change(row.h_antt_change, lower_is_better=True),
            render.bar(row.h_antt.mean / worst),
            render.fixed(row.h_stp.mean, 3),
            "" if number == 0 else render.change(row.h_stp_change, lower_is_better=False),
            render.milliseconds(row.makespan_ms.mean * 1e6),
            style="bold" if is_best and len(rows) > 1 else "",
        )
    return table


def _work_table(rows: list[SummaryRow]) -> Table:
    """What policies differ in if programs run for a stated time."""
    table = render.table(
        "policy", "10^9 instr.", render.tied("change %"), render.picture(), "waiting ms", "longest ms"
    )
    most = max(row.instructions.mean for row in rows)
    for number, row in enumerate(rows):
        is_best = row.instructions.mean == most
        table.add_row(
            row.policy,
            _marked(render.fixed(row.instructions.mean / 1e9, 3), is_best, len(rows)),
            "" if number == 0 else render.change(row.instructions_change, lower_is_better=False),
            render.bar(row.instructions.mean / most if most else 0.0),
            render.milliseconds(row.waiting_ms * 1e6),
            render.milliseconds(row.longest_wait_ms * 1e6),
        )
    return table


def _energy_table(rows: list[SummaryRow]) -> Table:
    """Energy, its change against the first policy, energy x makespan."""
    table = render.table("policy", "energy J", render.tied("change %"), "EDP J s")
    for number, row in enumerate(rows):
        assert row.energy_j, "only printed if energy is known"
        assert row.energy_change, "it comes with energy"
        assert row.edp_js, "it comes with energy"
        table.add_row(
            row.policy,
            render.fixed(row.energy_j.mean, 3),
            "" if number == 0 else render.change(row.energy_change, lower_is_better=True),
            render.fixed(row.edp_js.mean, 3),
        )
    return table


def _slowdown_table(policies: Sequence[str], runs: Sequence[Sequence[Run]]) -> Table:
    """H_NTT of each application under each policy."""
    table = render.table("program", *policies)
    for app, outcome in enumerate(runs[0][0].outcome.apps):
        means = [fmean(run.metrics.h_ntt[app] for run in each) for each in runs]
        cells = [_marked(render.fixed(mean, 2), mean == min(means), len(means)) for mean in means]
        table.add_row(outcome.name, *cells)
    return table


def _detail_table(rows: list[SummaryRow], runs: Sequence[Sequence[Run]]) -> Table:
    """Switches, migrations, mean waiting and blocked time of a thread, wake-up latency, utilisation, fairness."""
    periodic = any(row.missed for row in rows)
    heads = (
        "switches",
        "migr.",
        "waiting ms",
        "blocked ms",
        "wake-up p99 ms",
        *(["missed"] if periodic else []),
    )
    heads += ("busy %", "unfair", "uniform")
    table = render.table("policy", *heads)
    for row, each in zip(rows, runs, strict=True):
        threads = [thread for run in each for thread in run.outcome.threads]
        table.add_row(
            row.policy,
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
