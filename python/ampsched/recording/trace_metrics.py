"""Metrics of traces with names and units, limits for them, and the threads that have most part in one."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ampsched._core import InputError
from ampsched.naming import unknown
from ampsched.recording.observed import CpuSeen, Observed, ThreadSeen
from ampsched.units import NS_PER_MS

_LIMIT = re.compile(r"\s*([^\s<>=]+)\s*(<=|>=)\s*(\S+?)\s*(%|ms|ms/s|1/s|MHz)?\s*")
_UNITS = {"%": "pct", "ms": "ms", "ms/s": "ms_per_s", "1/s": "per_s", "MHz": "mhz"}
"""How names of metrics say units."""
CULPRITS = 3
"""Most threads that are named for a limit that does not hold."""


@dataclass(frozen=True, slots=True)
class Part:
    """The part in a metric that one thread has.

    Attributes:
        value: How much.
        unit: Of what, empty for counts.
        when: The moment of interest, in ns since the first event; none if nothing happened.
    """

    value: Callable[[Observed, ThreadSeen], float]
    unit: str
    when: Callable[[Observed, ThreadSeen], int | None]


@dataclass(frozen=True, slots=True)
class Culprit:
    """A thread with much part in a metric.

    Attributes:
        tid: The kernel's number.
        name: Its name.
        value: How much of it.
        unit: The unit of that.
        at_ms: When to look, in ms since the first event; none if the trace does not tell.
    """

    tid: int
    name: str
    value: float
    unit: str
    at_ms: float | None


@dataclass(frozen=True, slots=True)
class Metric:
    """A number about a trace.

    Attributes:
        name: Its name, the unit last; of a metric of each cluster with the cluster's behind a point.
        unit: The unit, empty for counts.
        meaning: What it is, in a sentence without its end.
        value: What it is in a trace; none if the trace or the missing machine does not tell.
        needs: What is missing if it is not known.
        part: What of it one thread has, if threads have parts in it.
    """

    name: str
    unit: str
    meaning: str
    value: Callable[[Observed], float | None]
    needs: str = ""
    part: Part | None = None


def _worst(bad: str) -> Callable[[Observed, ThreadSeen], int | None]:
    return lambda seen, thread: thread.worst_at_ns.get(bad)


def _ran(seen: Observed, thread: ThreadSeen) -> int | None:
    """When it began to run for the last time where it ran most."""
    most = max(thread.cpu_ns, key=lambda cpu: thread.cpu_ns[cpu], default=-1)
    return thread.ran_at_ns.get(most)


def _per_s(name: str, bad: str = "") -> Part:
    def value(seen: Observed, thread: ThreadSeen) -> float:
        return 1e9 * float(getattr(thread, name)) / max(seen.duration_ns, 1)

    return Part(value, "1/s", _worst(bad) if bad else _ran)


def _ms_per_s(name: str, bad: str) -> Part:
    def value(seen: Observed, thread: ThreadSeen) -> float:
        return 1e3 * float(getattr(thread, name)) / max(seen.duration_ns, 1)

    return Part(value, "ms/s", _worst(bad))


def _of_latency(name: str) -> Part:
    return Part(lambda seen, thread: getattr(thread.latency, name) / NS_PER_MS, "ms", _worst("latency"))


def _of_cpu(name: str, bad: str) -> Part:
    return Part(
        lambda seen, thread: 100 * getattr(thread, name) / max(seen.cpu_ns, 1),
        "% of the CPU time",
        _worst(bad),
    )


_BUSY = Part(
    lambda seen, thread: 100 * sum(thread.cpu_ns.values()) / max(seen.cpu_ns, 1), "% of the CPU time", _ran
)
_RUNNABLE = Part(
    lambda seen, thread: (sum(thread.cpu_ns.values()) + thread.wait_ns) / max(seen.duration_ns, 1),
    "",
    _worst("wait"),
)


def _frame_until(seen: Observed, thread: ThreadSeen) -> int | None:
    return thread.frames.longest_until_ns if thread.frames.count else None


_LATE = Part(lambda seen, thread: float(thread.frames.late), "late frames", _frame_until)
_LENGTH = Part(lambda seen, thread: thread.frames.longest_ns / NS_PER_MS, "ms at most", _frame_until)
_FRAMES = "frames: marks of Choreographer or SurfaceFlinger, or threads that a clock wakes at a period"


def _frame(name: str) -> Callable[[Observed], float | None]:
    return lambda seen: getattr(seen.frames.times, name) / NS_PER_MS if seen.frames else None


_WAKEUPS = "wake-ups (sched_waking) in the trace"
_MACHINE = "--machine with unequal clusters"
_CLOCKS = "clocks (cpu_frequency) in the trace"


def _latency(name: str) -> Callable[[Observed], float | None]:
    return lambda seen: getattr(seen.latency, name) / NS_PER_MS if seen.latency.count else None


def _cpu_share(name: str) -> Callable[[Observed], float | None]:
    return lambda seen: 100 * seen.total(name) / max(seen.cpu_ns, 1) if seen.has_sizes else None


METRICS = (
    Metric(
        "duration_ms", "ms", "from the first event to the last one", lambda seen: seen.duration_ns / NS_PER_MS
    ),
    Metric(
        "busy_pct", "%", "busy time of all CPUs that were seen", lambda seen: _busy(seen.cpus), part=_BUSY
    ),
    Metric(
        "switches_per_s",
        "1/s",
        "how often threads got a CPU",
        lambda seen: seen.per_s("switches"),
        part=_per_s("switches"),
    ),
    Metric(
        "migrations_per_s",
        "1/s",
        "how often that was another CPU than the last one",
        lambda seen: seen.per_s("migrations"),
        part=_per_s("migrations", "migration"),
    ),
    Metric(
        "cluster_migrations_per_s",
        "1/s",
        "how often it was of another cluster",
        lambda seen: seen.per_s("cluster_migrations") if seen.clusters else None,
        "--machine",
        _per_s("cluster_migrations", "cluster_migration"),
    ),
    Metric(
        "preemptions_per_s",
        "1/s",
        "how often threads lost their CPU though they could go on",
        lambda seen: seen.per_s("preemptions"),
        part=_per_s("preemptions", "preemption"),
    ),
    Metric(
        "wakeups_per_s",
        "1/s",
        "how often woken threads got a CPU",
        lambda seen: 1e9 * seen.latency.count / max(seen.duration_ns, 1) if seen.wakeups else None,
        _WAKEUPS,
        Part(
            lambda seen, thread: 1e9 * thread.latency.count / max(seen.duration_ns, 1),
            "1/s",
            _worst("latency"),
        ),
    ),
    Metric(
        "latency_p50_ms",
        "ms",
        "from wake-up to a CPU, median",
        _latency("p50_ns"),
        _WAKEUPS,
        _of_latency("p50_ns"),
    ),
    Metric(
        "latency_p95_ms",
        "ms",
        "the same, of 95 % not longer",
        _latency("p95_ns"),
        _WAKEUPS,
        _of_latency("p95_ns"),
    ),
    Metric(
        "latency_p99_ms",
        "ms",
        "the same, of 99 % not longer",
        _latency("p99_ns"),
        _WAKEUPS,
        _of_latency("p99_ns"),
    ),
    Metric(
        "latency_max_ms", "ms", "the longest of these", _latency("max_ns"), _WAKEUPS, _of_latency("max_ns")
    ),
    Metric(
        "longest_wait_ms",
        "ms",
        "longest wait in a run queue, also after losing a CPU",
        lambda seen: max(thread.longest_wait_ns for thread in seen.threads) / NS_PER_MS,
        part=Part(lambda seen, thread: thread.longest_wait_ns / NS_PER_MS, "ms", _worst("wait")),
    ),
    Metric(
        "late_frames_pct",
        "%",
        "frames that ended later than a period after they began",
        lambda seen: 100 * seen.frames.late / seen.frames.frames if seen.frames else None,
        _FRAMES,
        _LATE,
    ),
    Metric(
        "frame_p50_ms", "ms", "from a frame's begin to its end, median", _frame("p50_ns"), _FRAMES, _LENGTH
    ),
    Metric("frame_p95_ms", "ms", "the same, of 95 % not longer", _frame("p95_ns"), _FRAMES, _LENGTH),
    Metric("frame_p99_ms", "ms", "the same, of 99 % not longer", _frame("p99_ns"), _FRAMES, _LENGTH),
    Metric("frame_max_ms", "ms", "the longest of these", _frame("max_ns"), _FRAMES, _LENGTH),
    Metric(
        "frames_per_s",
        "1/s",
        "frames, each counted once",
        lambda seen: 1e9 * seen.frames.frames / max(seen.duration_ns, 1) if seen.frames else None,
        _FRAMES,
        Part(lambda seen, thread: float(thread.frames.count), "frames", _frame_until),
    ),
    Metric(
        "runnable_mean",
        "",
        "runnable threads of the whole system on average",
        lambda seen: seen.runnable_mean,
        part=_RUNNABLE,
    ),
    Metric("runnable_max", "", "the most at a time", lambda seen: float(seen.runnable_max)),
    Metric(
        "beside_idle_ms_per_s",
        "ms/s",
        "waits of threads behind others while a third CPU was idle, per second",
        lambda seen: 1e3 * seen.total("beside_idle_ns") / max(seen.duration_ns, 1),
        part=_ms_per_s("beside_idle_ns", "beside_idle"),
    ),
    Metric(
        "beside_idle_big_ms_per_s",
        "ms/s",
        "the same while a CPU of a greater cluster was idle",
        lambda seen: (
            1e3 * seen.total("beside_greater_ns") / max(seen.duration_ns, 1) if seen.has_sizes else None
        ),
        _MACHINE,
        _ms_per_s("beside_greater_ns", "beside_greater"),
    ),
    Metric(
        "too_small_pct",
        "%",
        "CPU time on a cluster of which the thread's load in 100 ms takes more than 80 %, though there is a greater one",
        _cpu_share("too_small_ns"),
        _MACHINE,
        _of_cpu("too_small_ns", "too_small"),
    ),
    Metric(
        "too_big_pct",
        "%",
        "CPU time on a cluster though the thread's load in 100 ms takes at most 80 % of a smaller one",
        _cpu_share("too_big_ns"),
        _MACHINE,
        _of_cpu("too_big_ns", "too_big"),
    ),
    Metric(
        "lost_events", "", "events that the recorder had no room for", lambda seen: float(seen.lost_events)
    ),
)
"""Metrics of every trace."""


def _busy(cpus: Sequence[CpuSeen]) -> float | None:
    known = sum(cpu.busy_ns + cpu.idle_ns for cpu in cpus)
    return 100 * sum(cpu.busy_ns for cpu in cpus) / known if known else None


def _mean_mhz(cpus: Sequence[CpuSeen]) -> float | None:
    clocks = [clock for cpu in cpus for clock in cpu.clocks if clock.khz is not None]
    busy_ns = sum(clock.busy_ns for clock in clocks)
    return sum((clock.khz or 0) / 1e3 * clock.busy_ns for clock in clocks) / busy_ns if busy_ns else None


def _cpu_pct(seen: Observed, cluster: int) -> float | None:
    ns = sum(seen.on_cluster(thread, cluster) for thread in seen.threads)
    return 100 * ns / seen.cpu_ns if seen.cpu_ns else None


CLUSTER_METRICS: tuple[tuple[str, str, str, Callable[[Observed, int], float | None], str], ...] = (
    ("cpu_time_pct", "%", "part of the threads' CPU time on the cluster", _cpu_pct, ""),
    (
        "busy_pct",
        "%",
        "busy time of its CPUs",
        lambda seen, at: _busy(seen.of_cluster(at)),
        "its CPUs in the trace",
    ),
    (
        "busy_clock_mhz",
        "MHz",
        "mean clock of its CPUs while they are busy",
        lambda seen, at: _mean_mhz(seen.of_cluster(at)),
        _CLOCKS,
    ),
)
"""Metrics of each cluster of a machine: name, unit, meaning, value, what it needs."""


def _on_cluster(cluster: int) -> Part:
    """The part of the time on a cluster that is a thread's: percent of all threads' CPU time."""

    def value(seen: Observed, thread: ThreadSeen) -> float:
        return 100 * seen.on_cluster(thread, cluster) / max(seen.cpu_ns, 1)

    def when(seen: Observed, thread: ThreadSeen) -> int | None:
        times = (thread.ran_at_ns.get(cpu.cpu) for cpu in seen.of_cluster(cluster))
        return max((at_ns for at_ns in times if at_ns is not None), default=None)

    return Part(value, "% of the CPU time", when)


def metrics(clusters: Sequence[str] = ()) -> list[Metric]:
    """All metrics, those of clusters with their names behind a point, such as ``busy_pct.big``."""
    found = list(METRICS)
    for place, cluster in enumerate(clusters):
        for name, unit, meaning, value, needs in CLUSTER_METRICS:

            def of_it(
                seen: Observed,
                value: Callable[[Observed, int], float | None] = value,
                place: int = place,
            ) -> float | None:
                return value(seen, place)

            part = None if name == "busy_clock_mhz" else _on_cluster(place)
            found.append(Metric(f"{name}.{cluster}", unit, meaning, of_it, needs, part))
    return found


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound of a metric.

    Attributes:
        metric: The metric.
        is_upper: Whether the metric may not be greater; else it may not be smaller.
        bound: The bound, in the metric's unit.
    """

    metric: Metric
    is_upper: bool
    bound: float

    def excess(self, seen: Observed) -> float:
        """By how much a trace violates it, at most 0 if it doesn't.

        Raises:
            InputError: The trace does not tell this metric.
        """
        value = self.metric.value(seen)
        if value is None:
            raise InputError(f"{self.metric.name} is not known: it needs {self.metric.needs}")
        return value - self.bound if self.is_upper else self.bound - value

    @property
    def text(self) -> str:
        """As it was given, with its unit."""
        return f"{self.metric.name} {'<=' if self.is_upper else '>='} {self.bound:g}{unit(self.metric)}"


def unit(metric: Metric) -> str:
    """The unit behind a number, with a blank before it."""
    return f" {metric.unit}" if metric.unit else ""


def culprits(metric: Metric, seen: Observed) -> list[Culprit]:
    """The threads that have most part in a metric, the first with most; none if threads have no parts in it."""
    if metric.part is None:
        return []
    parts = [(metric.part.value(seen, thread), thread) for thread in seen.threads]
    parts.sort(key=lambda part: -part[0])
    found = []
    for value, thread in parts[:CULPRITS]:
        at_ns = metric.part.when(seen, thread)
        at_ms = None if at_ns is None else at_ns / NS_PER_MS
        if value > 0:
            found.append(Culprit(thread.tid, thread.name, value, metric.part.unit, at_ms))
    return found


def _with_unit(name: str, given: str | None) -> str:
    """A metric's name whose unit stands behind the bound instead, as in ``late_frames<=1%``."""
    base, point, cluster = name.partition(".")
    return f"{base}_{_UNITS[given]}{point}{cluster}" if given else name


def limits(texts: Sequence[str], clusters: Sequence[str]) -> Iterator[Limit]:
    """Limits of their texts, such as ``migrations_per_s<=50`` or ``late_frames<=1%``.

    Raises:
        InputError: A text is no limit, or names no metric or another unit than the metric's.
    """
    known = {metric.name: metric for metric in metrics(clusters)}
    for text in texts:
        parts = _LIMIT.fullmatch(text)
        if not parts:
            raise InputError(f'--limit "{text}" is no limit (NAME<=VALUE or NAME>=VALUE)')
        name, sign, number, given = parts.groups()
        name = name if name in known else _with_unit(name, given)
        if name not in known:
            raise InputError(f'--limit "{text}": {unknown("metric", parts[1], known)}')
        metric = known[name]
        if given not in (None, metric.unit):
            raise InputError(f'--limit "{text}": {name} is in {metric.unit or "no unit"}, not in {given}')
        try:
            bound = float(number)
        except ValueError:
            bound = math.nan
        if not math.isfinite(bound):
            raise InputError(f'--limit "{text}": "{number}" is not a number')
        yield Limit(metric, sign == "<=", bound)
