"""``ampsched simulate``."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ampsched import api
from ampsched.catalog import machine_note
from ampsched.cli import options, perfetto, render, reporting
from ampsched.cli.output import Output, with_format
from ampsched.cli.settings import SIMULATION, with_settings
from ampsched.cli.tables import Table
from ampsched.governor import Governors
from ampsched.held_clocks import with_held_clocks
from ampsched.placed import noise_beside
from ampsched.results import Outcome
from ampsched.settings import SimulateSettings, catalog_of

EXAMPLES = render.examples(
    "ampsched simulate -m 2B2S -w ferret -p colab",
    "ampsched simulate -m opteron-2FC-2SC -w mcf -p cfs --repetitions 3",
    "ampsched simulate -m tensor -w my_app.json -p eevdf --until-ms 5000 --trace out.pftrace --open",
)


@with_format
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
    open_: perfetto.Open = False,
    html: options.Html = None,
    output: Output,
) -> None:
    """Simulate one workload under one policy and print what every program, thread and core did."""
    perfetto.check(open_, trace)
    outcome = api.simulate(machine, workload, policy, trace=trace, **settings)

    def text(console: Console) -> None:
        _print(console, outcome)
        for note in _notes(machine, workload, settings):
            console.print(f"note: {note}", soft_wrap=True, markup=False)
        beside = noise_beside(settings["noise"], workload, catalog=catalog_of(settings))
        noise = "" if outcome.noise is None else f", noise {beside}"
        console.print(
            f"seed {outcome.seed}, factors {settings['factors']}{noise}", style="dim", soft_wrap=True
        )
        if trace:
            console.print(f"trace written to {trace} (open it in https://ui.perfetto.dev)", soft_wrap=True)

    output.show(value=outcome.to_dict, rows=lambda: outcome.to_polars().to_dicts(), text=text)
    reporting.simulation(html, outcome, machine, workload, policy, settings, quiet=output.is_data)
    if trace and open_:
        perfetto.show(trace)


def _notes(machine: str, workload: str, settings: SimulateSettings) -> list[str]:
    """What a reader must know of the machine, and of the clocks of a trace that is replayed."""
    catalog = catalog_of(settings)
    on = catalog.machine(machine)
    is_governed = Governors.of(settings["governor"]) != Governors()
    held = with_held_clocks(on, catalog.workload(workload), is_governed)
    return [*machine_note(on), *([held.note] if held.note else [])]


def _print(console: Console, outcome: Outcome) -> None:
    title = f"{outcome.workload} on {outcome.machine} under {outcome.policy}"
    tables = {title: _apps(outcome), "Threads (ms)": _threads(outcome)}
    if outcome.latency.count:
        tables["Wake-up latency (ms)"] = _latency(outcome)
    if any(app.periods for app in outcome.apps):
        tables["Periods (ms)"] = _periods(outcome)
    tables |= {"Classes of cores": _classes(outcome), "Cores": _cores(outcome)}
    if outcome.energy_j is not None:
        tables["Energy"] = _energy(outcome)
    for title, table in tables.items():
        render.print_table(console, title, table)
    counts = outcome.counts
    console.print(
        f"{counts.switches:,} switches, {counts.migrations:,} migrations, {counts.wakeups:,} wake-ups, "
        f"{counts.preemptions:,} wake-up preemptions",
        soft_wrap=True,
    )
    if outcome.smt is not None:
        console.print(f"note: {outcome.machine}: {outcome.smt}", soft_wrap=True, markup=False)
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
    classes = [each.name for each in reversed(outcome.classes)]
    table = render.table("thread", *classes, "waiting", "blocked", "blamed", "sw.", "migr.")
    times = len(classes) + 3
    rows: dict[str, list[int]] = {}
    for thread in outcome.threads:
        waits = (thread.ready_ns, thread.blocked_ns, thread.blame_ns)
        values = (*reversed(thread.class_ns), *waits, thread.switches, thread.migrations)
        row = rows.setdefault(f"{outcome.apps[thread.app].name}/{thread.name}", [0] * len(values))
        row[:] = map(sum, zip(row, values, strict=True))
    for name, row in rows.items():
        table.add_row(name, *map(render.milliseconds, row[:times]), *map(render.count, row[times:]))
    return table


def _latency(outcome: Outcome) -> Table:
    """Wake-up latency of each program."""
    table = render.table("program", "wake-ups", "p50", "p95", "p99", "longest")
    for app in outcome.apps:
        row = app.latency.row()
        table.add_row(app.name, render.count(row.pop("count")), *map(_short, row.values()))
    return table


def _periods(outcome: Outcome) -> Table:
    """Periods of each program that has any."""
    heads = ("periods", "missed", "slack p50", "least", "resp. p99", "frame p50", "p99")
    table = render.table("program", *heads)
    for app in outcome.apps:
        if (periods := app.periods) is None:
            continue
        frame = periods.frame
        times = (periods.slack_p50_ns, periods.slack_min_ns, periods.response.p99_ns)
        counts = map(render.count, (periods.count, periods.missed))
        table.add_row(app.name, *counts, *map(_short, (*times, frame.p50_ns, frame.p99_ns)))
    return table


def _short(ns: int) -> str:
    """A time in ms that may be some us."""
    return render.thousands(ns / 1e6, 3)


def _classes(outcome: Outcome) -> Table:
    """Use of each cluster, by class of cores, the fastest first."""
    table = render.table("class", "cluster", "cores", "busy %", "mean MHz")
    table.columns[1].justify = "left"
    order = {each.name: number for number, each in enumerate(outcome.classes)}
    for cluster in sorted(outcome.clusters, key=lambda it: -order[it.core_class]):
        total_ns = max(1, outcome.makespan_ns * len(cluster.cores))
        busy = render.share(cluster.busy_ns / total_ns)
        cores = f"{len(cluster.cores)}"
        table.add_row(cluster.core_class, cluster.name, cores, busy, render.count(cluster.mean_mhz))
    return table


def _cores(outcome: Outcome) -> Table:
    noisy = outcome.noise is not None
    table = render.table(
        "core",
        "class",
        "busy %",
        render.picture(),
        "overhead %",
        *(["noise %"] if noisy else []),
        "switches",
    )
    table.columns[1].justify = "left"
    for number, core in enumerate(outcome.cores):
        total_ns = max(1, core.busy_ns + core.idle_ns + core.noise_ns)
        noise = [render.share((core.noise_ns + core.interrupted_ns) / total_ns, 2)] if noisy else []
        table.add_row(
            str(number),
            core.core_class,
            render.share(core.utilisation),
            render.bar(core.utilisation, 20),
            render.share(core.overhead_ns / total_ns, 2),
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
            render.count(cluster.mean_mhz),
            render.count(cluster.frequency_changes),
            *(render.thousands(uj / 1e3) for uj in (energy.running_uj, energy.idle_uj, energy.uncore_uj)),
            render.share(energy.throttled_ns / max(1, outcome.makespan_ns)),
        )
    return table
