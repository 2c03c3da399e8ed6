"""What a trace says of the scheduler that made it: measured times, metrics with names and units, limits for them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ampsched._core import InputError, Machine, observe_trace
from ampsched.files import read_bytes, shown
from ampsched.recording.traced import clusters_of_cpus
from ampsched.units import NS_PER_MS

_LIMIT = re.compile(r"\s*([^\s<>=]+)\s*(<=|>=)\s*(\S+?)\s*(%|ms|ms/s|1/s|MHz)?\s*")


@dataclass(frozen=True, slots=True)
class Distribution:
    """How long something took, each time; percentiles are at most 0.8 % too long."""

    count: int
    p50_ns: int
    p95_ns: int
    p99_ns: int
    max_ns: int

    @staticmethod
    def of(values: dict[str, Any]) -> Distribution:
        """From the core's values, without the histogram."""
        return Distribution(**{name: values[name] for name in Distribution.__dataclass_fields__})


@dataclass(frozen=True, slots=True)
class AtClock:
    """Time of a CPU at one clock.

    Attributes:
        khz: The clock; none before the first event that tells it.
        ns: How long.
        busy_ns: How long of it busy.
    """

    khz: int | None
    ns: int
    busy_ns: int


@dataclass(frozen=True, slots=True)
class CpuSeen:
    """What one CPU did.

    Attributes:
        cpu: Its number.
        cluster: Its cluster's place among the machine's; none without a machine.
        busy_ns: Time in which it ran threads.
        idle_ns: Time in which it ran none.
        unknown_ns: Time of which the trace does not tell.
        clocks: Time at each clock, ascending.
        idle_states: Time in ns in each idle state, by the kernel's number.
    """

    cpu: int
    cluster: int | None
    busy_ns: int
    idle_ns: int
    unknown_ns: int
    clocks: tuple[AtClock, ...]
    idle_states: dict[int, int]


@dataclass(frozen=True, slots=True)
class ThreadSeen:
    """What one thread did.

    Attributes:
        tid: The kernel's number.
        name: Its name, the last one.
        process: Its process, if the trace tells.
        cpu_ns: CPU time in ns by CPU.
        switches: Times when it got a CPU.
        migrations: Times when that was another CPU than the last one.
        cluster_migrations: Of these, to another cluster.
        preemptions: Times when it lost its CPU though it could go on; sched_yield counts, too.
        latency: From wake-up to a CPU.
        wait_ns: Time in run queues, also after losing a CPU.
        longest_wait_ns: The longest time in a run queue at a stretch.
        beside_idle_ns: Part of ``wait_ns`` in which another thread had the CPU and a third CPU was idle.
        beside_greater_ns: The same for an idle CPU of a greater cluster.
        too_small_ns: CPU time on a cluster that is too small for its load.
        too_big_ns: CPU time on a cluster though its load fits a smaller one.
    """

    tid: int
    name: str
    process: int | None
    cpu_ns: dict[int, int]
    switches: int
    migrations: int
    cluster_migrations: int
    preemptions: int
    latency: Distribution
    wait_ns: int
    longest_wait_ns: int
    beside_idle_ns: int
    beside_greater_ns: int
    too_small_ns: int
    too_big_ns: int


@dataclass(frozen=True, slots=True)
class Observed:
    """What a trace says of its scheduler.

    Attributes:
        machine: The machine's name; empty if none was given.
        clusters: Names of its clusters.
        has_sizes: Whether some clusters are greater than others.
        duration_ns: From the first event to the last one.
        cpus: The CPUs that were seen.
        threads: The threads that count, those with most CPU time first.
        latency: From wake-up to a CPU, of all these.
        runnable_mean: Runnable threads of the whole system on average: those that run and those that wait for a CPU.
        runnable_max: The most at a time.
        wakeups: Wake-ups that the trace tells.
        clock_events: Changes of clocks that it tells.
        lost_events: Events that were lost.
        unknown: What these numbers cannot know, a sentence each.
    """

    machine: str
    clusters: tuple[str, ...]
    has_sizes: bool
    duration_ns: int
    cpus: tuple[CpuSeen, ...]
    threads: tuple[ThreadSeen, ...]
    latency: Distribution
    runnable_mean: float
    runnable_max: int
    wakeups: int
    clock_events: int
    lost_events: int
    unknown: tuple[str, ...]

    @property
    def cpu_ns(self) -> int:
        """CPU time of the threads that count."""
        return sum(sum(thread.cpu_ns.values()) for thread in self.threads)

    def total(self, name: str) -> int:
        """Sum of a number of the threads that count."""
        return sum(getattr(thread, name) for thread in self.threads)

    def per_s(self, name: str) -> float:
        """The same per second of the trace."""
        return 1e9 * self.total(name) / max(self.duration_ns, 1)

    def of_cluster(self, cluster: int) -> list[CpuSeen]:
        """The CPUs of a cluster that were seen."""
        return [cpu for cpu in self.cpus if cpu.cluster == cluster]

    def on_cluster(self, thread: ThreadSeen, cluster: int) -> int:
        """CPU time in ns of a thread on a cluster."""
        return sum(thread.cpu_ns.get(cpu.cpu, 0) for cpu in self.of_cluster(cluster))


def observe(
    path: Path,
    machine: Machine | None = None,
    *,
    commands: Sequence[str] = (),
    pids: Sequence[int] = (),
    cpus: str = "",
) -> Observed:
    """What a trace says of the scheduler that made it.

    Args:
        path: The trace, in any form that `import_file` reads apart from columns of numpy.
        machine: The machine that it is of; with none, clusters and sizes are not known.
        commands: Programs whose threads count, with all that they create. Without these and ``pids``: all threads.
        pids: Processes and threads that count, with all that they create.
        cpus: Which CPUs are of which cluster, as for `import_file`.

    Raises:
        InputError: It cannot be read, has no switches, none of the wanted threads, or CPUs that the machine lacks.
    """
    clusters = clusters_of(machine, cpus) if machine else []
    asked = {"commands": list(commands), "pids": list(pids), "clusters": clusters}
    values = json.loads(observe_trace(shown(path), read_bytes(path), json.dumps(asked)))
    seen_cpus = [
        CpuSeen(
            **each
            | {
                "clocks": tuple(AtClock(**clock) for clock in each["clocks"]),
                "idle_states": dict(each["idle_states"]),
            }
        )
        for each in values["cpus"]
    ]
    threads = [
        ThreadSeen(**each | {"cpu_ns": dict(each["cpu_ns"]), "latency": Distribution.of(each["latency"])})
        for each in values["threads"]
    ]
    tops = {round(each["opps"][-1][1]) for each in clusters}
    found = {
        "machine": machine.name if machine else "",
        "clusters": tuple(each["name"] for each in clusters),
        "has_sizes": len(tops) > 1,
        "cpus": tuple(seen_cpus),
        "threads": tuple(threads),
        "latency": Distribution.of(values["latency"]),
        "unknown": tuple(values["unknown"]),
    }
    return Observed(**values | found)


def clusters_of(machine: Machine, cpus: str = "") -> list[dict[str, Any]]:
    """Clusters as the core wants them: name, CPUs, clocks in MHz and capacities."""
    owners = clusters_of_cpus(machine, cpus) if cpus else machine.cluster_of_core
    return [
        {
            "name": name,
            "cpus": [cpu for cpu, owner in enumerate(owners) if owner == place],
            "opps": [(mhz, capacity) for mhz, capacity, _ in machine.energy_model(place)],
        }
        for place, (name, *_) in enumerate(machine.clusters)
    ]


@dataclass(frozen=True, slots=True)
class Metric:
    """A number about a trace.

    Attributes:
        name: Its name, the unit last; of a metric of each cluster with the cluster's behind a point.
        unit: The unit, empty for counts.
        meaning: What it is, in a sentence without its end.
        value: What it is in a trace; none if the trace or the missing machine does not tell.
        needs: What is missing if it is not known.
    """

    name: str
    unit: str
    meaning: str
    value: Callable[[Observed], float | None]
    needs: str = ""


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
    Metric("busy_pct", "%", "busy time of all CPUs that were seen", lambda seen: _busy(seen.cpus)),
    Metric("switches_per_s", "1/s", "how often threads got a CPU", lambda seen: seen.per_s("switches")),
    Metric(
        "migrations_per_s",
        "1/s",
        "how often that was another CPU than the last one",
        lambda seen: seen.per_s("migrations"),
    ),
    Metric(
        "cluster_migrations_per_s",
        "1/s",
        "how often it was of another cluster",
        lambda seen: seen.per_s("cluster_migrations") if seen.clusters else None,
        "--machine",
    ),
    Metric(
        "preemptions_per_s",
        "1/s",
        "how often threads lost their CPU though they could go on",
        lambda seen: seen.per_s("preemptions"),
    ),
    Metric(
        "wakeups_per_s",
        "1/s",
        "how often woken threads got a CPU",
        lambda seen: 1e9 * seen.latency.count / max(seen.duration_ns, 1) if seen.wakeups else None,
        _WAKEUPS,
    ),
    Metric("latency_p50_ms", "ms", "from wake-up to a CPU, median", _latency("p50_ns"), _WAKEUPS),
    Metric("latency_p95_ms", "ms", "the same, of 95 % not longer", _latency("p95_ns"), _WAKEUPS),
    Metric("latency_p99_ms", "ms", "the same, of 99 % not longer", _latency("p99_ns"), _WAKEUPS),
    Metric("latency_max_ms", "ms", "the longest of these", _latency("max_ns"), _WAKEUPS),
    Metric(
        "longest_wait_ms",
        "ms",
        "longest wait in a run queue, also after losing a CPU",
        lambda seen: max(thread.longest_wait_ns for thread in seen.threads) / NS_PER_MS,
    ),
    Metric(
        "runnable_mean",
        "",
        "runnable threads of the whole system on average",
        lambda seen: seen.runnable_mean,
    ),
    Metric("runnable_max", "", "the most at a time", lambda seen: float(seen.runnable_max)),
    Metric(
        "beside_idle_ms_per_s",
        "ms/s",
        "waits of threads behind others while a third CPU was idle, per second",
        lambda seen: 1e3 * seen.total("beside_idle_ns") / max(seen.duration_ns, 1),
    ),
    Metric(
        "beside_idle_big_ms_per_s",
        "ms/s",
        "the same while a CPU of a greater cluster was idle",
        lambda seen: (
            1e3 * seen.total("beside_greater_ns") / max(seen.duration_ns, 1) if seen.has_sizes else None
        ),
        _MACHINE,
    ),
    Metric(
        "too_small_pct",
        "%",
        "CPU time on a cluster of which the thread's load in 100 ms takes more than 80 %, though there is a greater one",
        _cpu_share("too_small_ns"),
        _MACHINE,
    ),
    Metric(
        "too_big_pct",
        "%",
        "CPU time on a cluster though the thread's load in 100 ms takes at most 80 % of a smaller one",
        _cpu_share("too_big_ns"),
        _MACHINE,
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

            found.append(Metric(f"{name}.{cluster}", unit, meaning, of_it, needs))
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


def limits(texts: Sequence[str], clusters: Sequence[str]) -> Iterator[Limit]:
    """Limits of their texts, such as ``migrations_per_s<=50``.

    Raises:
        InputError: A text is no limit, or names no metric or another unit than the metric's.
    """
    known = {metric.name: metric for metric in metrics(clusters)}
    for text in texts:
        parts = _LIMIT.fullmatch(text)
        if not parts:
            raise InputError(f'--limit "{text}" is no limit (NAME<=VALUE or NAME>=VALUE)')
        name, sign, number, given = parts.groups()
        if name not in known:
            raise InputError(f'--limit "{text}": there is no metric "{name}" (there are {", ".join(known)})')
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
