"""``ampsched sweep``."""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ampsched._core import InputError
from ampsched.cli import options, render, reporting
from ampsched.cli.completing import listed
from ampsched.cli.output import Output, with_format
from ampsched.cli.progress import progress_bar
from ampsched.cli.settings import SIMULATION, with_settings
from ampsched.drawing import check_matplotlib
from ampsched.files import check_suffix, check_target
from ampsched.settings import SweepSettings, declared
from ampsched.statistics import Estimate
from ampsched.sweeps.measures import MEASURES, measure
from ampsched.sweeps.optimise import Optimised
from ampsched.sweeps.optimise import optimise as run_optimise
from ampsched.sweeps.plan import OPTIONS
from ampsched.sweeps.sweep import sweep as run_sweep
from ampsched.uncertainty import MARGIN

if TYPE_CHECKING:
    from ampsched.sweeps.result import Sweep

EXAMPLES = render.examples(
    "ampsched sweep -m 2B2S,4B4S -w sync-1,sync-2 -p linux,colab:decay=0.5..1.0:6 --repeat 5 --out results",
    "ampsched sweep -m 2B2S -w ferret:n=2/4/8 -p linux,wash,colab --out results --plot ferret.svg",
    "ampsched sweep -m 2B2S,4B4S -w ferret -p linux,colab --over n=1..16x2 --repeat 5 --out results --html threads.html",
    "ampsched sweep -m exynos5422 -w sync-1 -p linux,eas --governor schedutil --governor ondemand --energy "
    "--pareto h_antt,energy_j",
    "ampsched sweep -m 2B2S -w sync-2 -p linux,colab:decay=0..1:epoch_ms=1..50 --sample 100 --out results",
    "ampsched sweep -m 2B2S -p linux,colab:decay=0..1 --optimise 50 --train sync-1,sync-2 --test sync-3,sync-4",
    "ampsched sweep -m 2B2S -w sync-2 -p linux,colab:decay=0..1:99 --out results --dask tcp://head:8786",
)
_FILES = declared(SweepSettings)["catalog"].setting.option
assert _FILES is not None, "a catalogue is read from files"
CURVES_MAX = 4
"""Machines and workloads of which curves are printed."""
ROWS_MAX = 20
"""Rows of a table; the folder and --json have all."""


def complete_measure(incomplete: str) -> list[str]:
    """Completes metrics."""
    return listed(incomplete, MEASURES)


@with_format
@with_settings(SweepSettings, SIMULATION, varied=OPTIONS, without=("catalog",))
def sweep(
    machine: options.Machines,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            "-p",
            metavar="NAMES",
            autocompletion=options.complete_policy,
            help=f"{options.POLICY_HELP}; or a list a,b: others are measured against the first. "
            "colab:decay=0.5..1.0:6 stands for six values, colab:decay=0.5/0.9 for two; so in machines, workloads and "
            "options.",
        ),
    ],
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload",
            "-w",
            metavar="NAMES",
            autocompletion=options.complete_workload,
            help=f"{options.WORKLOAD_HELP}; or a list a,b.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Keep results in this folder; what is there is not run again. It can be shared.",
        ),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            "--sample",
            parser=options.whole,
            metavar="N",
            help="Try N random combinations, not all; decay=0.5..1.0 is then any number between.",
        ),
    ] = None,
    sample_seed: Annotated[
        int,
        typer.Option(
            "--sample-seed", parser=options.whole, metavar="N", help="Seed of that choice, and of --optimise."
        ),
    ] = 1,
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            metavar="NAME",
            autocompletion=complete_measure,
            help="What tables and plots show, such as h_antt or energy_j.",
        ),
    ] = "h_antt",
    pareto: Annotated[
        str | None,
        typer.Option(
            "--pareto",
            metavar="NAMES",
            autocompletion=complete_measure,
            help="Print and plot the policies that no other beats in all of these metrics a,b.",
        ),
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw the result (.svg or .png).")] = None,
    optimise: Annotated[
        int | None,
        typer.Option(
            "--optimise",
            parser=options.whole,
            metavar="N",
            help="Search the ranges of the last policy in N trials, instead of all combinations (needs Optuna).",
        ),
    ] = None,
    train: Annotated[
        str | None,
        typer.Option(
            "--train",
            metavar="NAMES",
            autocompletion=options.complete_workload,
            help="Workloads that --optimise tunes on.",
        ),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            "--test",
            metavar="NAMES",
            autocompletion=options.complete_workload,
            help="Workloads that judge what --optimise has found.",
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option("--dask", metavar="ADDRESS", help="Simulate on the workers of this Dask scheduler."),
    ] = None,
    catalog: Annotated[
        list[Path] | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help=_FILES.help,
        ),
    ] = None,
    over: options.OverOption = None,
    margin: options.Margin = MARGIN,
    html: options.Html = None,
    *,
    settings: SweepSettings,
    output: Output,
) -> None:
    """Simulate many combinations of machines, workloads, policies, parameters and options.

    Results are cached by their inputs: a sweep that was stopped goes on, one with more values adds to it, and if a
    policy changes, only its results are made anew. Prints which policy is best and how sure that is, means over all
    machines and workloads, and the best policy of each.
    """
    measure(metric)
    fronts = options.split(pareto, "pareto") if pareto else []
    if len(fronts) == 1:
        raise InputError(f'--pareto "{pareto}" needs two metrics, such as h_antt,energy_j')
    for name in fronts:
        measure(name)
    check_suffix("--plot", plot, ".svg", ".png")
    check_target("--plot", plot)
    if plot:
        check_matplotlib()
    machines, policies = options.split(machine, "machine"), options.split(policy, "policy")
    how: dict[str, Any] = {**settings, "files": catalog or [], "folder": out}
    if optimise is not None:
        _refuse_with_optimise(workload, sample, pareto, plot, over, html)
        with _executor(dask) as executor:
            how |= {"executor": executor, "optimiser_seed": sample_seed}
            _optimise(machines, policies, train, test, optimise, metric, how, output)
        return
    if train or test:
        raise InputError("--train and --test go with --optimise; without it, name workloads by --workload")
    if workload is None:
        raise InputError("no workload is given (--workload)")
    workloads = options.split(workload, "workload")
    with (
        _executor(dask) as executor,
        _told_where(out),
        progress_bar("Simulating", hidden=output.is_data) as progress,
    ):
        result = run_sweep(
            machines,
            workloads,
            policies,
            sample=sample,
            sample_seed=sample_seed,
            over=over,
            margin=margin,
            executor=executor,
            progress=progress,
            **how,
        )
    wrong = _failed(result) + _plot(result, plot, metric, fronts)
    output.show(
        value=lambda: result.to_dict(metric) | {"plot": str(plot) if plot else None},
        rows=lambda: result.summary().iter_rows(named=True),
        text=lambda console: _print(console, result, metric, fronts, out, plot),
    )
    reporting.sweep(html, result, metric, quiet=output.is_data)
    if wrong:
        raise InputError("; ".join(wrong))


def _failed(result: "Sweep") -> list[str]:
    """What to say of simulations that failed, if some did."""
    failed, failures = result.frame["error"].drop_nulls().len(), result.failures()
    return (
        [f"{failed} of {result.frame.height} simulations failed, the first: {failures[0]}"] if failed else []
    )


def _refuse_with_optimise(
    workload: str | None,
    sample: int | None,
    pareto: str | None,
    plot: Path | None,
    over: str | None,
    html: Path | None,
) -> None:
    given = {
        "--workload": workload,
        "--sample": sample,
        "--pareto": pareto,
        "--plot": plot,
        "--over": over,
        "--html": html,
    }
    for option, value in given.items():
        if value is not None:
            hint = "name workloads by --train and --test" if option == "--workload" else "leave it out"
            raise InputError(f"{option} does not go with --optimise ({hint})")


@contextmanager
def _executor(address: str | None) -> Iterator[Executor | None]:
    """The executor of a Dask scheduler, if its address is given."""
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise InputError("--dask needs Dask: pip install 'ampsched[cluster]'") from None
    try:
        client = Client(address, timeout=5)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise InputError(
            f"--dask {address}: no scheduler answers ({error or type(error).__name__})"
        ) from None
    with client:
        yield client.get_executor()  # type: ignore[no-untyped-call]


@contextmanager
def _told_where(out: Path | None) -> Iterator[None]:
    """Says what is kept if somebody stops it."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        what = (
            f"what is done is in {out}; the same command goes on" if out else "nothing is kept without --out"
        )
        render.errors().print(f"stopped: {what}", soft_wrap=True)
        raise


def _print(
    console: Console, result: "Sweep", metric: str, fronts: list[str], out: Path | None, plot: Path | None
) -> None:
    _print_verdicts(console, result, metric)
    where = f"kept in {out}" if out else "--out FOLDER keeps them"
    total = f"{result.frame.height:,} simulations, {result.simulated:,} of them new; {where}"
    console.print(f"{total}\n", soft_wrap=True)
    label, lower = measure(metric).label, measure(metric).lower_is_better
    ranking = result.ranking(metric).rows(named=True)
    _print_table(
        console,
        f"{label}, {'of each value' if result.varied else 'mean over all machines and workloads'}",
        ranking,
        [*result.varied, "policy", metric],
        lower,
        result.baseline,
    )
    best = result.best(metric).rows(named=True)
    if len(best) > 1:
        _print_table(
            console,
            f"Best {label} of each",
            best,
            [*_told_apart(result), "policy", metric],
            lower,
            result.baseline,
        )
    if fronts:
        title = f"Beaten by none in {' and '.join(measure(name).label for name in fronts)}"
        rows = result.pareto(*fronts).rows(named=True)
        _print_table(console, title, rows, [*_told_apart(result), "policy", *fronts])
    _print_notes(console, result, metric, plot)


def _print_verdicts(console: Console, result: "Sweep", metric: str) -> None:
    """The answer, and a small curve of each policy along a parameter."""
    verdicts = result.verdicts(metric)
    for line in verdicts.told():
        console.print(line, soft_wrap=True, markup=False)
    for panel in verdicts.panels()[:CURVES_MAX]:
        if len(verdicts.panels()) > 1:
            console.print(f"{panel.name}:", soft_wrap=True, markup=False)
        lines = {line.policy: line.means() for line in panel.lines}
        render.print_curves(console, panel.head, lines, verdicts.text(panel))
    console.print()


def _told_apart(result: "Sweep") -> list[str]:
    """The columns by which machines, workloads and options of this sweep are told apart."""
    return [name for name in ("machine", "workload", *OPTIONS) if result.frame[name].n_unique() > 1]


def _print_table(
    console: Console,
    title: str,
    rows: list[dict[str, Any]],
    columns: list[str],
    lower: bool | None = None,
    baseline: str = "",
) -> None:
    """Prints some columns of rows, and, if it is told which way is better, the change of the last of them."""
    heads = [measure(name).label if name in MEASURES else name for name in columns]
    table = render.table(*heads, *([] if lower is None else [render.tied("change %")]))
    for row in rows[:ROWS_MAX]:
        cells: list[Any] = [
            render.significant(row[name]) if isinstance(row[name], float) else str(row[name])
            for name in columns
        ]
        if lower is not None:
            last = f"{columns[-1]}_change"
            value = Estimate(row[last], row[f"{last}_low"], row[f"{last}_high"], row["n"])
            is_first = row["policy"] == baseline
            cells.append("" if is_first else render.change(value, lower_is_better=lower))
        table.add_row(*cells)
    render.print_table(console, title, table)
    if len(rows) > ROWS_MAX:
        console.print(f"and {len(rows) - ROWS_MAX:,} more, which --json prints", style="dim", soft_wrap=True)
        console.print()


def _print_notes(console: Console, result: "Sweep", metric: str, plot: Path | None) -> None:
    seeds = result.frame["seed"].n_unique()
    what = (
        f"± is the 95 % interval over {seeds} seeds"
        if seeds > 1
        else "one seed, so no intervals (--repeat 5)"
    )
    console.print(f"changes are against {result.baseline}; {what}", style="dim", soft_wrap=True)
    caveats = result.caveats()
    render.print_notes(console, caveats[:ROWS_MAX])
    if len(caveats) > ROWS_MAX:
        console.print(f"note: and {len(caveats) - ROWS_MAX} more notes, which --json prints", soft_wrap=True)
    if plot and plot.exists():
        console.print(f"plot written to {plot}", soft_wrap=True)


def _plot(result: "Sweep", path: Path | None, metric: str, fronts: list[str]) -> list[str]:
    """Draws, if a file is named; what is wrong if that cannot be."""
    if path is None:
        return []
    from ampsched.sweeps import figures

    try:
        if fronts:
            figures.draw_front(result, path, *fronts[:2])
        else:
            figures.draw(result, path, metric)
    except InputError as error:
        return [str(error)]
    return []


def _optimise(
    machines: list[str],
    policies: list[str],
    train: str | None,
    test: str | None,
    trials: int,
    metric: str,
    how: dict[str, Any],
    output: Output,
) -> None:
    if not train or not test:
        raise InputError("--optimise needs workloads to tune on (--train) and others to judge by (--test)")
    if len(policies) != 2:
        raise InputError(
            "--optimise needs two policies: one to measure against, and one with ranges to search"
        )
    sets: dict[str, Any] = {"train": options.split(train, "train"), "test": options.split(test, "test")}
    with _told_where(how["folder"]), progress_bar("Optimising", hidden=output.is_data) as progress:
        found = run_optimise(
            machines,
            policies[1],
            baseline=policies[0],
            trials=trials,
            metric=metric,
            progress=progress,
            **(sets | how),
        )
    output.show(
        value=found.to_dict,
        rows=lambda: found.trials.iter_rows(named=True),
        text=lambda console: _print_optimised(console, found),
    )


def _print_optimised(console: Console, found: Optimised) -> None:
    measured = measure(found.metric)
    table = render.table("policy", "train", "test")
    rows = (
        (found.policy, found.train, found.test),
        (f"{found.default}, defaults", found.default_train, found.default_test),
    )
    for name, *values in rows:
        table.add_row(
            name, *(render.change(value, lower_is_better=measured.lower_is_better) for value in values)
        )
    render.print_table(console, f"{measured.label}, change % against {found.baseline}", table)
    console.print(
        f"{found.trials.height} trials; the test has other workloads and seeds: trust it, not the training",
        style="dim",
        soft_wrap=True,
    )
