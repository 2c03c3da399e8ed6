"""``ampsched limit``."""

import dataclasses
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console

from ampsched import api
from ampsched._core import InputError, Machine, Workload
from ampsched.cli import consoles, options, render
from ampsched.cli.output import Output, with_format
from ampsched.cli.progress import progress_bar
from ampsched.cli.settings import SIMULATION, with_settings
from ampsched.comparison import SummaryRow
from ampsched.limits import NO_LIMIT, Limit, Objective, Optimum
from ampsched.placed import Placed, noise_of
from ampsched.ranges import Range
from ampsched.settings import CompareSettings, ReferenceSettings, catalog_of, only

EXAMPLES = render.examples(
    "ampsched limit -m 2B2S -w sync-2 -p linux,colab,max-fair",
    "ampsched limit -m 2B2S:big=1:little=1 -w pair.toml --optimum",
    "ampsched limit -m 2B2S -w prop-sp-w1 --work 0.01 --optimum --objective makespan --simulations 5000",
)
CELLS = 64
"""Columns of a timeline."""
NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SEARCH = "How the optimum is searched"


@with_format
@with_settings(CompareSettings, SIMULATION)
def limit(
    machine: options.Machine,
    workload: options.Workload,
    policy: options.Policies = "linux,wash,colab",
    *,
    settings: CompareSettings,
    work: Annotated[
        float,
        typer.Option(
            "--work",
            parser=options.number,
            metavar="FACTOR",
            help="Multiply the work of every step: 0.01 makes a small case of a long program.",
        ),
    ] = 1.0,
    optimum: Annotated[
        bool,
        typer.Option("--optimum", help="Search the best schedule, too: at most 6 threads on 4 cores."),
    ] = False,
    objective: Annotated[
        Objective,
        typer.Option("--objective", help="What to optimise.", rich_help_panel=_SEARCH),
    ] = "h_antt",
    quantum_us: Annotated[
        float | None,
        typer.Option(
            "--quantum-us",
            parser=options.number,
            metavar="US",
            help="Schedules may change at multiples of it; a 16th of the makespan's limit by default.",
            rich_help_panel=_SEARCH,
        ),
    ] = None,
    simulations: Annotated[
        int,
        typer.Option(
            "--simulations",
            parser=options.whole,
            metavar="N",
            help="Simulations at most.",
            rich_help_panel=_SEARCH,
        ),
    ] = 20_000,
    output: Output,
) -> None:
    """Print what no policy can beat, and how far policies are from it.

    Bounds hold for any schedule; --optimum searches the best one of a small workload and shows it.
    """
    Range(0, 1e6, without_low=True).check("work", work)
    if optimum and settings["until_ms"] is not None:
        raise InputError("--until-ms and --optimum: the best schedule is sought of programs that end")
    catalog = catalog_of(settings)
    placed = Placed.of(catalog, workload, catalog.machine(machine))
    on, mix = placed.machine, placed.workload
    # The best schedule is sought without noise.
    is_recorded = placed.conditions is not None and not optimum
    settings = {**settings, "noise": noise_of(settings["noise"], has_recordings=is_recorded)}
    asked: api.WorkloadLike = workload
    if work != 1.0:
        asked = mix = mix.with_work([work] * len(mix.apps))
    how = only(ReferenceSettings, settings)
    with progress_bar("Simulating", hidden=output.is_data) as progress:
        compared = api.compare(on, asked, options.split(policy, "policy"), progress=progress, **settings)
    bounds = [run.limit for run in compared.runs if run.limit]
    if len(bounds) < len(compared.runs):
        raise InputError(f"repetitions = {settings['repetitions']}: {NO_LIMIT}")
    rows, bound = compared.summary(), Limit.mean(bounds)
    # No schedule makes cores share less than nothing, so the bound holds; with siblings it is far away.
    shared = "the limit's cores share nothing: each of two threads of a core counts as a whole one"
    caveats = [*compared.caveats(), *([shared] if compared.runs[0].outcome.smt else [])]
    best = None
    if optimum:
        with consoles.errors().status("Searching the best schedule"):
            best = api.optimum(
                on, asked, objective=objective, quantum_us=quantum_us, simulations=simulations, **how
            )

    def text(console: Console) -> None:
        _print_limit(console, mix, on, bound, rows)
        if best is not None:
            _print_optimum(console, on, best, rows)
        render.print_notes(console, caveats)

    output.show(
        value=lambda: {**_values(bound, rows, best), "caveats": caveats},
        rows=lambda: [dataclasses.asdict(row) for row in rows],
        text=text,
    )


def _values(bound: Limit, rows: Sequence[SummaryRow], best: Optimum | None) -> dict[str, object]:
    """Everything as plain values."""
    found: dict[str, object] = {
        "limit": dataclasses.asdict(bound),
        "policies": [dataclasses.asdict(row) for row in rows],
        "optimum": None,
    }
    if best is not None:
        values = dataclasses.asdict(best)
        found["optimum"] = {**values, "gap": best.gap, "outcome": best.outcome.to_dict()}
    return found


def _print_limit(
    console: Console, mix: Workload, machine: Machine, bound: Limit, rows: Sequence[SummaryRow]
) -> None:
    above, below = render.tied("above %"), render.tied("below %")
    table = render.table("policy", "H_ANTT", above, "H_STP", below, "makespan ms", above)
    limits = (bound.h_antt, bound.h_stp, bound.makespan_ns / 1e6)
    table.add_row("limit", *(cell for value in limits for cell in (render.fixed(value, 3), "")))
    for row in rows:
        if row.distance is None:
            raise InputError(f"the limit of {row.workload} is not known")
        table.add_row(
            row.policy,
            render.fixed(row.h_antt.mean, 3),
            render.share(row.distance.h_antt),
            render.fixed(row.h_stp.mean, 3),
            render.share(row.distance.h_stp),
            render.fixed(row.makespan_ms.mean, 3),
            render.share(row.distance.makespan),
        )
    render.print_table(console, f"{mix.name} on {machine.name}", table)


def _print_optimum(console: Console, machine: Machine, best: Optimum, rows: Sequence[SummaryRow]) -> None:
    names = {"h_antt": "H_ANTT", "h_stp": "H_STP", "makespan": "makespan"}
    unit = " ms" if best.objective == "makespan" else ""
    scale = 1e6 if unit else 1.0
    console.print(
        f"best schedule found: {names[best.objective]} {best.value / scale:.3f}{unit}, "
        f"{100 * best.gap:.1f} % from the limit; {_proof(best)}",
        soft_wrap=True,
    )
    for row in rows:
        value = {"h_antt": row.h_antt.mean, "h_stp": row.h_stp.mean, "makespan": row.makespan_ms.mean * 1e6}
        ratio = value[best.objective] / best.value - 1.0
        console.print(f"  {row.policy} {render.percent(ratio)} %", soft_wrap=True, markup=False)
    console.print()
    for line in timeline(machine, best):
        console.print(line, soft_wrap=True, markup=False, highlight=False)


def _proof(best: Optimum) -> str:
    """What is known of how good it is."""
    if best.proven:
        return f"proven for schedules of its kind ({best.simulations:,} simulations)"
    return f"not proven: the search ended after {best.simulations:,} simulations (raise --simulations)"


def timeline(machine: Machine, best: Optimum) -> list[str]:
    """The schedule as text: a line per core, a letter per thread, and what the letters mean."""
    outcome = best.outcome
    cell_ns = max(1.0, outcome.makespan_ns / CELLS)
    lines = []
    clusters = (machine.clusters[owner][0] for owner in machine.cluster_of_core)
    for core, cluster in enumerate(clusters):
        cells = ["."] * CELLS
        for stay in (each for each in best.timeline if each.core == core):
            first, last = round(stay.from_ns / cell_ns), round(stay.to_ns / cell_ns)
            cells[first:last] = NAMES[stay.thread] * (last - first)
        lines.append(f"{cluster:>8} {core} {''.join(cells)}")
    lines.append(f"{'':>10} 0 to {outcome.makespan_ns / 1e6:.3f} ms; . idle")
    apps = [app.name for app in outcome.apps]
    lines.extend(
        f"{NAMES[number]:>10} {apps[thread.app]}/{thread.name}"
        for number, thread in enumerate(outcome.threads)
    )
    return lines
