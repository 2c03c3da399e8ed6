"""``ampsched check``."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ampsched._core import InputError
from ampsched.catalog import Catalog
from ampsched.cli import options, render, reporting
from ampsched.cli.completing import listed
from ampsched.cli.output import Output, with_format
from ampsched.naming import in_number
from ampsched.recording import trace_metrics
from ampsched.recording.observed import CpuSeen, Observed, ThreadSeen, observe
from ampsched.recording.trace_metrics import Culprit, Limit, Metric

if TYPE_CHECKING:
    from ampsched.report import Page

EXAMPLES = render.examples(
    "ampsched check trace.dat --machine juno",
    "ampsched check trace.dat --limit 'late_frames<=1%' --limit 'latency_p99_ms<=4'   (exit code 1 if not so)",
)
THREADS_MAX = 10
"""Most threads of a table."""
BAR_CELLS = 20
VIOLATED = 1
"""The exit code if a limit is violated."""


def _complete_limit(incomplete: str) -> list[str]:
    return listed(incomplete, [metric.name for metric in trace_metrics.METRICS])


def _metrics_help() -> str:
    """The metrics in a sentence."""
    names = ", ".join(metric.name for metric in trace_metrics.METRICS)
    of_cluster = ", ".join(f"{name}.CLUSTER" for name, *_ in trace_metrics.CLUSTER_METRICS)
    return f"{names}; with a machine {of_cluster}"


@with_format
def check(
    file: Annotated[Path, typer.Argument(help="A trace of a real scheduler.")],
    machine: options.TracedMachine = None,
    cpus: options.CpusOfTrace = None,
    command: options.ProgramsOfTrace = None,
    pid: options.PidsOfTrace = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            metavar="NAME<=VALUE",
            help=f"What may not be exceeded, or with >= not missed; repeatable. Names: {_metrics_help()}.",
            autocompletion=_complete_limit,
        ),
    ] = None,
    html: options.Html = None,
    *,
    output: Output,
) -> None:
    """Measure what a real scheduler did in a trace, and check limits.

    It counts migrations, wake-up latency, late frames, misplaced threads and more.

    The exit code is 1 if a limit is violated, so that a trace serves as a regression test; then the threads that have
    most part in it are named, each with when to look.
    """
    on = Catalog.shipped().machine(machine) if machine else None
    if cpus and not on:
        raise InputError(f"--cpus {cpus} needs --machine: the machine that {file} is of")
    wanted = list(trace_metrics.limits(limit or [], [name for name, *_ in on.clusters] if on else []))
    seen = observe(file, on, commands=command or [], pids=pid or [], cpus=cpus or "")
    excesses = [(each, each.excess(seen)) for each in wanted]
    known = trace_metrics.metrics(seen.clusters)
    reporting.write(html, lambda: _page(file, seen, known, excesses), quiet=output.is_data)

    def text(console: Console) -> None:
        _print(console, file, seen, known)

    output.show(value=lambda: _value(seen, known, excesses), rows=lambda: _rows(seen, known), text=text)
    violated = [(each, excess) for each, excess in excesses if excess > 0]
    on_machine = f" --machine {shlex.quote(machine)}" if machine else ""
    on_machine += f" --cpus {shlex.quote(cpus)}" if cpus else ""
    for each, excess in violated:
        lines = [f"limit violated: {_words(each, excess)}", *_blame(each, seen, file, on_machine)]
        for line in lines:
            render.errors().print(line, soft_wrap=True, markup=False, highlight=False)
    if violated:
        raise typer.Exit(VIOLATED)


def _culprits(limit: Limit, seen: Observed) -> list[Culprit]:
    """Who has most part in what is too much; nobody where something is too little."""
    return trace_metrics.culprits(limit.metric, seen) if limit.is_upper else []


def _culprit(culprit: Culprit) -> str:
    """A thread and its part in a metric."""
    return f"{culprit.name} {culprit.tid} ({f'{number(culprit.value)} {culprit.unit}'.strip()})"


def _blame(limit: Limit, seen: Observed, file: Path, on_machine: str) -> list[str]:
    """The threads that have most part in a violated limit, and how to look at the first."""
    found = _culprits(limit, seen)
    if not found:
        return []
    lines = [f"  most by {', '.join(map(_culprit, found))}"]
    first = found[0]
    if first.at_ms is not None:
        asked = f"--thread {first.tid} --at {first.at_ms:.3f}"
        lines.append(f"  look: ampsched explain {shlex.quote(str(file))}{on_machine} {asked}")
    return lines


def _words(limit: Limit, excess: float) -> str:
    """A violated limit and by how much."""
    of = trace_metrics.unit(limit.metric)
    value = limit.bound + excess if limit.is_upper else limit.bound - excess
    return f"{limit.text}: it is {value:.5g}{of}, {'over' if limit.is_upper else 'short'} by {excess:.5g}{of}"


def _rows(seen: Observed, known: Sequence[Metric]) -> Iterator[dict[str, Any]]:
    for metric in known:
        yield {
            "metric": metric.name,
            "value": metric.value(seen),
            "unit": metric.unit,
            "meaning": metric.meaning,
        }


def _value(
    seen: Observed, known: Sequence[Metric], excesses: Sequence[tuple[Limit, float]]
) -> dict[str, Any]:
    limits = [
        {
            "metric": each.metric.name,
            "limit": each.text,
            "holds": excess <= 0,
            "excess": max(excess, 0.0),
            "threads": list(map(asdict, _culprits(each, seen))) if excess > 0 else [],
        }
        for each, excess in excesses
    ]
    return {
        "metrics": {metric.name: metric.value(seen) for metric in known},
        "limits": limits,
        **asdict(seen),
    }


def number(value: float | None) -> str:
    """A metric's value, ``?`` if it is not known."""
    if value is None:
        return "?"
    return render.count(value) if value == round(value) and value < 1e6 else render.significant(value)


def _print(console: Console, file: Path, seen: Observed, known: Sequence[Metric]) -> None:
    rest = f"{seen.duration_ns / 1e6:,.1f} ms, {len(seen.cpus)} CPUs, {len(seen.threads):,} {in_number(len(seen.threads), 'thread')}"
    render.print_head(console, file.name, rest)
    of_all = known[: len(trace_metrics.METRICS)]
    table = render.table("metric", "value", render.label("unit"), render.prose("what it is"))
    for metric in of_all:
        if metric.value(seen) is not None:
            table.add_row(metric.name, number(metric.value(seen)), metric.unit, metric.meaning)
    console.print(table)
    if seen.frames:
        console.print(f"frames: {seen.frames.words()}", soft_wrap=True, markup=False, highlight=False)
    _print_residency(console, seen)
    _print_threads(console, seen)
    for line in seen.unknown:
        console.print(f"unknown: {line}", style="dim", soft_wrap=True, markup=False)


def groups(seen: Observed) -> list[tuple[str, list[CpuSeen]]]:
    """The CPUs by cluster, or each alone if no machine is known."""
    if seen.clusters:
        return [(name, seen.of_cluster(place)) for place, name in enumerate(seen.clusters)]
    return [(f"CPU {cpu.cpu}", [cpu]) for cpu in seen.cpus]


def _shares(seen: Observed, cpus: Sequence[CpuSeen]) -> tuple[float, float, float]:
    """Parts of the CPUs' time: busy, idle, unknown."""
    whole = max(len(cpus) * seen.duration_ns, 1)
    return (
        sum(cpu.busy_ns for cpu in cpus) / whole,
        sum(cpu.idle_ns for cpu in cpus) / whole,
        sum(cpu.unknown_ns for cpu in cpus) / whole,
    )


def clocks(cpus: Sequence[CpuSeen]) -> dict[int, int]:
    """Busy time in ns of CPUs at each clock in kHz, ascending."""
    found: dict[int, int] = {}
    for clock in (clock for cpu in cpus for clock in cpu.clocks if clock.khz is not None):
        found[clock.khz or 0] = found.get(clock.khz or 0, 0) + clock.busy_ns
    return dict(sorted(found.items()))


def _print_residency(console: Console, seen: Observed) -> None:
    has_clocks = any(clocks(cpus) for _, cpus in groups(seen))
    heads = [render.label("clocks while busy, MHz")] if has_clocks else []
    table = render.table("residency", "CPUs", "busy %", render.picture(), "idle %", *heads)
    for name, cpus in groups(seen):
        busy, idle, _ = _shares(seen, cpus)
        numbers = ", ".join(str(cpu.cpu) for cpu in cpus) or "none seen"
        row = [name, numbers, render.share(busy), render.bar(busy, BAR_CELLS), render.share(idle)]
        table.add_row(*row, *([_clocks(clocks(cpus))] if has_clocks else []))
    console.print(table)


def _clocks(times_ns: dict[int, int]) -> str:
    """Clocks as shades between the lowest and the highest one."""
    if not times_ns:
        return "?"
    most = max(max(times_ns.values()), 1)
    shades = render.shades(ns / most for ns in times_ns.values())
    low, high = next(iter(times_ns)), list(times_ns)[-1]
    return f"{low / 1e3:.0f} |{shades}| {high / 1e3:.0f}"


def _thread_row(seen: Observed, thread: ThreadSeen) -> list[str]:
    cpu_ns = sum(thread.cpu_ns.values())
    latency = thread.latency
    return [
        f"{thread.name} {thread.tid}",
        render.milliseconds(cpu_ns),
        *(
            render.share(seen.on_cluster(thread, place) / max(cpu_ns, 1), 0)
            for place in range(len(seen.clusters))
        ),
        render.count(thread.switches),
        render.count(thread.migrations),
        render.count(thread.preemptions),
        render.milliseconds(latency.p95_ns) if latency.count else "?",
        render.milliseconds(thread.longest_wait_ns),
    ]


def _heads(seen: Observed) -> list[str]:
    clusters = [f"{name} %" for name in seen.clusters]
    return [
        "thread",
        "CPU ms",
        *clusters,
        "switches",
        "migrations",
        "lost CPU",
        "latency p95 ms",
        "longest wait ms",
    ]


def _print_threads(console: Console, seen: Observed) -> None:
    table = render.table(*_heads(seen))
    for thread in seen.threads[:THREADS_MAX]:
        table.add_row(*_thread_row(seen, thread))
    console.print(table)
    if len(seen.threads) > THREADS_MAX:
        console.print(f"and {len(seen.threads) - THREADS_MAX:,} more")


def _page(
    file: Path, seen: Observed, known: Sequence[Metric], excesses: Sequence[tuple[Limit, float]]
) -> "Page":
    """The same as a page."""
    from ampsched.report.page import Cell, Head, Lanes, Notes, Page, Row, Section, Table

    values = [(metric, metric.value(seen)) for metric in known]
    numbers = Table(
        "Metrics",
        (
            Head("metric", is_number=False),
            Head("value"),
            Head("unit", is_number=False),
            Head("what it is", is_number=False),
        ),
        tuple(
            Row((Cell(metric.name), Cell(number(value), value), Cell(metric.unit), Cell(metric.meaning)))
            for metric, value in values
            if value is not None
        ),
    )
    names = ("busy", "idle", "unknown")
    rows = []
    for name, cpus in groups(seen):
        spans, start = [], 0.0
        for place, share in enumerate(_shares(seen, cpus)):
            spans.append((round(start, 2), round(100 * share, 2), place))
            start += 100 * share
        rows.append((name, tuple(spans)))
    busy = ", ".join(f"{name} {100 * _shares(seen, cpus)[0]:.1f} %" for name, cpus in groups(seen))
    at_clocks = Table(
        "Busy time at each clock",
        (Head("cores", is_number=False), Head("MHz"), Head("busy ms")),
        tuple(
            Row((Cell(name), Cell(f"{khz / 1e3:.0f}", khz), Cell(f"{ns / 1e6:.2f}", ns)))
            for name, cpus in groups(seen)
            for khz, ns in clocks(cpus).items()
        ),
    )
    threads = Table(
        "Threads",
        tuple(Head(text, is_number=place > 0) for place, text in enumerate(_heads(seen))),
        tuple(Row(tuple(map(Cell, _thread_row(seen, thread)))) for thread in seen.threads),
    )
    blame = tuple(
        f"{each.text}: {', '.join(map(_culprit, found))}."
        for each, excess in excesses
        if excess > 0 and (found := _culprits(each, seen))
    )
    broken = [_words(each, excess) for each, excess in excesses if excess > 0]
    state = (
        f"{len(broken)} of {len(excesses)} limits violated: {'; '.join(broken)}."
        if broken
        else "All limits hold."
    )
    answer = f"Busy: {busy}." if not excesses else state
    return Page(
        f"What the scheduler did: {file.name}",
        answer,
        (Lanes(f"Busy time: {busy}", names, tuple(rows)), numbers),
        (
            *((Section("Clocks", (at_clocks,)),) if at_clocks.rows else ()),
            *((Section("Who has most part in what is violated", (Notes(blame),)),) if blame else ()),
            Section("Threads", (threads,)),
            Section("What is not known", (Notes(seen.unknown),)),
        ),
    )
