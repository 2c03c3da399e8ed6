"""A recording on a terminal."""

import json

from rich.console import Console

from ampsched._core import Recording
from ampsched.cli import render
from ampsched.naming import in_number
from ampsched.recording import goals, summary
from ampsched.recording.frames import Frames


def print_recording(console: Console, recording: Recording) -> None:
    """Prints what a recording says: threads, who woke whom, what is known, what is not."""
    info = json.loads(recording.info)
    threads = len(recording.threads)
    count, wall_ms = f"{threads:,} {in_number(threads, 'thread')}", info["wall_ns"] / 1e6
    render.print_head(
        console,
        info["name"] or "recording",
        f"from {info['recorder']}: {count}, {recording.events:,} events, {wall_ms:,.1f} ms",
    )
    _print_threads(console, recording)
    _print_asks(console, recording)
    _print_pairs(console, recording)
    blocked_ns, _ = recording.blocked_ns
    share = summary.coverage(recording)
    if share is not None:
        console.print(f"blocked {blocked_ns / 1e6:,.1f} ms, cause known of {share:.1%}")
    found = goals.interaction(recording)
    if found is not None:
        console.print(f"interactive: {goals.words(found)}", soft_wrap=True)
    if found is not None and found["frames"]:
        console.print(f"frames: {Frames.from_dict(found['frames']).lengths()}", soft_wrap=True)
    if info["lost_events"]:
        console.print(f"lost: {info['lost_events']:,} events (choose a larger buffer)", soft_wrap=True)
    for line in info["unknown"]:
        console.print(f"unknown: {line}", style="dim", soft_wrap=True)


def _print_threads(console: Console, recording: Recording) -> None:
    rows = summary.rows(recording)
    table = render.table("threads", "process", "count", "events", "CPU ms", "work ms", "blocked ms")
    for row in rows[: summary.THREADS_MAX]:
        numbers = (row.process, row.threads, row.events)
        times = (row.cpu_ns, row.work_ns, row.blocked_ns)
        table.add_row(row.name, *map(render.count, numbers), *map(render.milliseconds, times))
    console.print(table)
    if len(rows) > summary.THREADS_MAX:
        console.print(f"and {len(rows) - summary.THREADS_MAX} more")


def _print_asks(console: Console, recording: Recording) -> None:
    rows = summary.asks(recording)
    if not rows:
        return
    table = render.table("class", "group", "CPUs", "uclamp_min", "uclamp_max", "threads", "CPU ms")
    for row in rows[: summary.THREADS_MAX]:
        clamps = ("" if clamp is None else str(clamp) for clamp in (row.uclamp_min, row.uclamp_max))
        cells = (row.sched_class, row.group or "/", row.cpus or "all", *clamps)
        table.add_row(*cells, render.count(row.threads), render.milliseconds(row.cpu_ns))
    console.print(table)
    if len(rows) > summary.THREADS_MAX:
        console.print(f"and {len(rows) - summary.THREADS_MAX} more")


def _print_pairs(console: Console, recording: Recording) -> None:
    pairs = summary.pairs(recording)
    if not pairs:
        return
    table = render.table("waited for", render.label("by"), "times", "ms")
    for waker, woken, count, wait_ns in pairs[: summary.PAIRS_MAX]:
        table.add_row(waker, woken, render.count(count), render.milliseconds(wait_ns))
    console.print(table)
