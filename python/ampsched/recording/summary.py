"""What a recording says, in few lines."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ampsched._core import Recording, wake_ups, work_ns
from ampsched.children import SIGNALLED
from ampsched.naming import in_number

THREADS_MAX = 12
PAIRS_MAX = 5
KEPT = {
    "clock": "is waiting for a clock",
    "device": "is waiting for disks",
    "outside": "is input and output with others: networks, people, clients of a server",
    "unknown": "is waiting for what was not recorded",
    "start": "is before threads that begin at a fixed time, as who started them was not recorded",
    "scheduling": "is waking, placing and switching threads",
}
"""What stays as long on faster cores, in words."""
NAMED_MIN = 0.005
"""Share of the time from which on it is named."""


@dataclass(frozen=True)
class Row:
    """Threads of one name in one process.

    Attributes:
        name: Their name.
        process: Their process.
        threads: How many there are.
        events: Their events.
        cpu_ns: Their CPU time, in ns.
        work_ns: What that would have been on the fastest core, in ns.
        blocked_ns: How long they were blocked, in ns.
    """

    name: str
    process: int
    threads: int
    events: int
    cpu_ns: int
    work_ns: int
    blocked_ns: int


@dataclass(frozen=True, slots=True)
class Asks:
    """What threads ask of a scheduler, and how many ask for the same.

    Attributes:
        sched_class: Their class, by its name in programs.
        group: The path of their control group; empty for the root group, or if none is known.
        cpus: The CPUs that they may use, such as ``0-3,6``; empty for all.
        uclamp_min: Least utilisation, 0 to 1024; None if they state none.
        uclamp_max: Greatest utilisation, 0 to 1024; None if they state none.
        threads: How many threads.
        cpu_ns: Their CPU time, in ns.
    """

    sched_class: str
    group: str
    cpus: str
    uclamp_min: int | None
    uclamp_max: int | None
    threads: int
    cpu_ns: int


def asks(recording: Recording) -> list[Asks]:
    """What threads ask of a scheduler, those with the most CPU time first; empty if none asks for anything."""
    sums: dict[tuple[str, str, str, int | None, int | None], list[int]] = {}
    for asked, (*_, cpu_ns, _) in zip(recording.asks, recording.threads, strict=True):
        row = sums.setdefault(asked, [0, 0])
        row[0] += 1
        row[1] += cpu_ns
    if set(sums) <= {("fair", "", "", None, None)}:
        return []
    found = [Asks(*asked, *row) for asked, row in sums.items()]
    return sorted(found, key=lambda each: -each.cpu_ns)


def ending(exit_code: int | None) -> str | None:
    """How a program has failed, in words; None if it has not, or nobody knows."""
    if not exit_code:
        return None
    try:
        return f"was ended by {signal.Signals(exit_code - SIGNALLED).name} (exit code {exit_code})"
    except ValueError:
        return f"has ended with exit code {exit_code}"


def sources(info: Mapping[str, Any]) -> str | None:
    """Who has told what a recording says, in words; None if it was no recorder of ours."""
    if info["recorder"] in ("preload", "system"):
        return "told by the library" if info["recorder"] == "preload" else "told by the kernel"
    merged = info.get("merged")
    if merged is None:
        return None
    counts = f"{merged['tied']} waits tied to threads, {merged['added']} added"
    if merged["threads"]:
        counts += f", {merged['threads']} {in_number(merged['threads'], 'thread')} without the library"
    return f"told by the library and the kernel: {counts}"


def follows_text(follows: float, rest: Mapping[str, float]) -> str:
    """Which share of a program's time would shrink on faster cores, 0 to 1, and what the rest is, in words."""
    kept = [f"{rest[part]:.0%} {words}" for part, words in KEPT.items() if rest[part] >= NAMED_MIN]
    return "; ".join([f"{follows:.0%} of its time would shrink on faster cores", *kept])


def rows(recording: Recording) -> list[Row]:
    """Threads by name and process, those with the most CPU time first."""
    sums: dict[tuple[str, int], list[int]] = {}
    threads = zip(recording.threads, work_ns(recording), strict=True)
    for (name, process, events, cpu_ns, blocked_ns), work in threads:
        row = sums.setdefault((name, process), [0, 0, 0, 0, 0])
        for place, value in enumerate((1, events, cpu_ns, work, blocked_ns)):
            row[place] += value
    found = [Row(name, process, *row) for (name, process), row in sums.items()]
    return sorted(found, key=lambda row: -row.cpu_ns)


def pairs(recording: Recording) -> list[tuple[str, str, int, int]]:
    """Who woke whom, by names: waker, woken, how often, how long it was blocked in ns; longest first."""
    names = [name for name, *_ in recording.threads]
    sums: dict[tuple[str, str], list[int]] = {}
    for waker, woken, count, wait_ns in wake_ups(recording):
        row = sums.setdefault((names[waker], names[woken]), [0, 0])
        row[0] += count
        row[1] += wait_ns
    found = [(waker, woken, count, wait_ns) for (waker, woken), (count, wait_ns) in sums.items()]
    return sorted(found, key=lambda pair: -pair[3])


def coverage(recording: Recording) -> float | None:
    """Share of the blocked time whose end has a known cause, 0 to 1; None if nobody was blocked."""
    blocked_ns, known_ns = recording.blocked_ns
    return known_ns / blocked_ns if blocked_ns else None


def to_json(recording: Recording) -> dict[str, Any]:
    """The same as one value."""
    info = json.loads(recording.info)
    blocked_ns, known_ns = recording.blocked_ns
    return {
        **info,
        "frames": [each | {"spans": len(each["spans"])} for each in info.get("frames", [])],
        "threads": [vars(row) for row in rows(recording)],
        "asks": [asdict(each) for each in asks(recording)],
        "counts": dict(recording.counts),
        "blocked_ns": blocked_ns,
        "blocked_known_ns": known_ns,
        "wake_ups": [
            {"waker": waker, "woken": woken, "count": count, "wait_ns": wait_ns}
            for waker, woken, count, wait_ns in pairs(recording)
        ],
    }


def unknown(recording: Recording) -> Sequence[str]:
    """What the recording could not know, a sentence each."""
    found: list[str] = json.loads(recording.info)["unknown"]
    return found
