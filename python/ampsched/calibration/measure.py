"""Runs the kernels on each kind of core and collects speeds and counters."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean

import polars as pl

from ampsched import _core
from ampsched._core import CoreKind
from ampsched.calibration.perf_event import Count, counting
from ampsched.counters import COLUMNS, vocabulary
from ampsched.cpus import allowed_cpus

NS_PER_MS = 1_000_000
# Rounds are doubled until a trial takes this part of a window.
TRIAL_SHARE = 8


@dataclass(frozen=True, slots=True)
class Window:
    """A kernel on a kind of core for a while."""

    kernel: str
    kind: CoreKind
    number: int
    rounds: int
    duration_s: float
    """CPU time of the thread: what others take does not count."""
    counts: dict[str, Count]

    @property
    def rounds_per_s(self) -> float:
        """Speed."""
        return self.rounds / self.duration_s


def measure(
    kinds: Sequence[CoreKind],
    window_ms: float,
    windows: int,
    step: Callable[[int, int], object] | None = None,
) -> list[Window]:
    """Runs every kernel on the first CPU of each kind.

    Args:
        kinds: Kinds of cores; the calling thread must be allowed to run on their CPUs.
        window_ms: Length of a window, about.
        windows: Windows per kernel and kind.
        step: Called with the number of finished kernels and of all.
    """
    allowed = allowed_cpus()
    found: list[Window] = []
    names = [name for name, _ in _core.kernels()]
    try:
        for place, kind in enumerate(kinds):
            os.sched_setaffinity(0, {kind.cpus[0]})
            for number, name in enumerate(names):
                found += _measure_kernel(name, kind, window_ms, windows)
                if step:
                    step(place * len(names) + number + 1, len(kinds) * len(names))
    finally:
        os.sched_setaffinity(0, allowed)
    return found


def relative_speeds(kinds: Sequence[CoreKind]) -> dict[int, float]:
    """How fast CPUs are against those of the fastest kind, 0 to 1, by small programs: a second or two for each kind.

    Cores whose highest clocks alone differ, by at most a tenth, count as one kind: processors have favoured cores.
    """
    alike: list[list[CoreKind]] = []
    for kind in sorted(kinds, key=lambda each: -(each.mhz or 0)):
        near = next((some for some in alike if _are_alike(some[0], kind)), None)
        if near is None:
            alike.append([kind])
        else:
            near.append(kind)
    if len(alike) < 2:
        return {}
    relative = mean_speeds(speeds(measure([some[0] for some in alike], 20, 3)))
    fastest = max(relative.values())
    return {cpu: relative[some[0].name] / fastest for some in alike for kind in some for cpu in kind.cpus}


def _are_alike(one: CoreKind, other: CoreKind) -> bool:
    are_same = (one.core_type, one.pmu) == (other.core_type, other.pmu)
    return are_same and (other.mhz or 0) >= 0.9 * (one.mhz or 0)


def mean_speeds(table: pl.DataFrame) -> dict[str, float]:
    """Geometric mean over kernels of each kind's speed relative to the first kind's."""
    kinds = list(dict.fromkeys(table["kind"].to_list()))
    first = dict(table.filter(pl.col("kind") == kinds[0]).select("kernel", "rounds_per_s").rows())
    return {
        kind: exp(
            fmean(
                log(speed / first[kernel])
                for kernel, speed in table.filter(pl.col("kind") == kind)
                .select("kernel", "rounds_per_s")
                .rows()
            )
        )
        for kind in kinds
    }


def _measure_kernel(name: str, kind: CoreKind, window_ms: float, windows: int) -> list[Window]:
    kernel = _core.Kernel(name)
    rounds, wanted_ns = 1024, window_ms * NS_PER_MS
    # Trials warm caches and clocks up, too.
    while (taken_ns := _timed_ns(kernel, rounds)) < wanted_ns / TRIAL_SHARE:
        rounds *= 2
    rounds = max(1, round(rounds * wanted_ns / max(1, taken_ns)))
    found = []
    for number in range(windows):
        with counting(kind.pmu) as counts:
            taken_ns = _timed_ns(kernel, rounds)
        found.append(Window(name, kind, number, rounds, max(1, taken_ns) / 1e9, counts))
    return found


def _timed_ns(kernel: _core.Kernel, rounds: int) -> int:
    begin_ns = time.thread_time_ns()
    kernel.run(rounds)
    return time.thread_time_ns() - begin_ns


def counter_table(windows: Sequence[Window]) -> pl.DataFrame:
    """The windows as a counter table; ``task_clock_ns`` is all it has where nothing could be counted."""
    units = {counter.name: counter.unit for counter in vocabulary()}
    rows = []
    for window in windows:
        clock = {"task_clock_ns": Count(window.duration_s * 1e9, 1.0)}
        rows += [
            {
                "source": "calibrate",
                "file": "this computer",
                "program": window.kernel,
                "window": window.number,
                "end_s": None,
                "duration_s": window.duration_s,
                "core": f"CPU{window.kind.cpus[0]}",
                "core_type": window.kind.name,
                "thread": None,
                "counter": name,
                "native": name,
                "unit": units[name],
                "value": count.value,
                "running_share": count.running_share,
            }
            for name, count in (clock | window.counts).items()
        ]
    texts = dict.fromkeys(("end_s", "thread"), pl.String)
    frame = pl.DataFrame(rows, schema_overrides={"window": pl.UInt32, **texts}, infer_schema_length=None)
    return frame.with_columns(pl.col("end_s").cast(pl.Float64)).select(COLUMNS)


def speeds(windows: Sequence[Window]) -> pl.DataFrame:
    """Rounds per second of each kernel on each kind of core: the median window."""
    rows = [(window.kernel, window.kind.name, window.rounds_per_s) for window in windows]
    frame = pl.DataFrame(rows, schema=["kernel", "kind", "rounds_per_s"], orient="row")
    return frame.group_by("kernel", "kind", maintain_order=True).agg(pl.col("rounds_per_s").median())
