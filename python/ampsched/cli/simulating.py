"""``ampsched simulate``."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ampsched import api
from ampsched.cli import options, render, reporting
from ampsched.cli.settings import SIMULATION, with_settings
from ampsched.results import Outcome
from ampsched.settings import SimulateSettings

EXAMPLES = render.examples(
    "ampsched simulate -m 2B2S -w ferret -p colab",
    "ampsched simulate -m opteron-2FC-2SC -w mcf -p cfs --repetitions 3",
    "ampsched simulate -m tensor -w my_app.json -p eevdf --until-ms 5000 --trace out.pftrace",
)


@with_settings(SimulateSettings, SIMULATION)
def simulate(
    machine: options.Machine,
    workload: options.Workload,
    policy: options.Policy = "cfs",
    *,
    settings: SimulateSettings,
    trace: Annotated[
        Path | None, typer.Option("--trace", help="Write a Perfetto trace to this file.")
    ] = None,
    html: options.Html = None,
    json: options.Json = False,
) -> None:
    """Simulate one workload under one policy and print what every program, thread and core did."""
    outcome = api.simulate(machine, workload, policy, trace=trace, **settings)
    if json:
        render.print_json(outcome.to_dict())
    else:
        console = render.console()
        _print(console, outcome)
        noise = "" if outcome.noise is None else f", noise {settings['noise']}"
        console.print(
            f"seed {outcome.seed}, factors {settings['factors']}{noise}", style="dim", soft_wrap=True
        )
        if trace:
            console.print(f"trace written to {trace} (open it in https://ui.perfetto.dev)", soft_wrap=True)
    reporting.simulation(html, outcome, machine, workload, policy, settings, quiet=json)


def _print(console: Console, outcome: Outcome) -> None:
    title = f"{outcome.workload} on {outcome.machine} under {outcome.policy}"
    tables = {title: _apps(outcome), "Threads (ms)": _threads(outcome), "Cores": _cores(outcome)}
    if outcome.energy_j is not None:
        tables["Energy"] = _energy(outcome)
    for title, table in tables.items():
        console.print(title, style="bold", soft_wrap=True, markup=False)
        console.print(table)
        console.print()
    counts = outcome.counts
    console.print(
        f"{counts.switches:,} switches, {counts.migrations:,} migrations, {counts.wakeups:,} wake-ups, "
        f"{counts.preemptions:,} wake-up preemptions",
        soft_wrap=True,
    )
    if outcome.caveat is not None:
        console.print(f"note: {outcome.policy}: {outcome.caveat}", soft_wrap=True, markup=False)
    if outcome.energy_j is not None:
        peak = "" if outcome.peak_c is None else f", at most {outcome.peak_c:.1f} °C"
        console.print(
            f"{outcome.energy_j:.3f} J, {outcome.power_w:.3f} W on average, EDP {outcome.edp_js:.3f} J s{peak}",
            soft_wrap=True,
        )


def _apps(outcome: Outcome) -> Table:
    repeated = any(len(app.completions_ns) > 1 for app in outcome.apps)
    table = render.table("program", "threads", *(["ended"] if repeated else []), "turnaround ms")
    for app in outcome.apps:
        ended = [str(len(app.completions_ns))] if repeated else []
        table.add_row(app.name, str(app.threads), *ended, render.milliseconds(app.turnaround_ns))
    return table


def _threads(outcome: Outcome) -> Table:
    """One row per thread; that of a repeated program has the sums over its repetitions."""
    heads = ("big", "little", "waiting", "blocked", "blamed", "sw.", "migr.")
    table = render.table("thread", *heads)
    rows: dict[str, list[int]] = {}
    for thread in outcome.threads:
        times = (thread.big_ns, thread.little_ns, thread.ready_ns, thread.blocked_ns, thread.blame_ns)
        values = (*times, thread.switches, thread.migrations)
        row = rows.setdefault(f"{outcome.apps[thread.app].name}/{thread.name}", [0] * len(values))
        row[:] = map(sum, zip(row, values, strict=True))
    for name, row in rows.items():
        table.add_row(name, *map(render.milliseconds, row[:5]), *map(render.count, row[5:]))
    return table


def _cores(outcome: Outcome) -> Table:
    noisy = outcome.noise is not None
    table = render.table("core", "busy %", "", "overhead %", *(["noise %"] if noisy else []), "switches")
    table.columns[2].justify = "left"
    for number, core in enumerate(outcome.cores):
        total_ns = max(1, core.busy_ns + core.idle_ns + core.noise_ns)
        noise = [f"{100 * (core.noise_ns + core.interrupted_ns) / total_ns:.2f}"] if noisy else []
        table.add_row(
            str(number),
            f"{100 * core.utilisation:.1f}",
            render.bar(core.utilisation, 20),
            f"{100 * core.overhead_ns / total_ns:.2f}",
            *noise,
            render.count(core.switches),
        )
    return table


def _energy(outcome: Outcome) -> Table:
    """One row per cluster."""
    table = render.table(
        "cluster", "mean MHz", "changes", "running mJ", "idle mJ", "uncore mJ", "throttled %"
    )
    for cluster in outcome.clusters:
        energy = cluster.energy
        assert energy is not None, "energy is accounted for on all clusters or on none"
        table.add_row(
            cluster.name,
            f"{cluster.mean_mhz:,.0f}",
            render.count(cluster.frequency_changes),
            *(f"{uj / 1e3:,.1f}" for uj in (energy.running_uj, energy.idle_uj, energy.uncore_uj)),
            f"{100 * energy.throttled_ns / max(1, outcome.makespan_ns):.1f}",
        )
    return table
