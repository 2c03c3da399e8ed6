"""What a trace says of the scheduler that made it: measured times of CPUs, threads and frames."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ampsched._core import Machine, observe_trace
from ampsched.files import read_bytes, shown
from ampsched.recording.frames import Frames
from ampsched.recording.traced import clusters_of_cpus
from ampsched.timeliness import Distribution


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
class FramesSeen:
    """Frames that one thread ends.

    Attributes:
        count: How many there are.
        late: How many were late.
        longest_ns: The longest.
        longest_until_ns: When that one ended, since the first event.
    """

    count: int
    late: int
    longest_ns: int
    longest_until_ns: int


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
        frames: Frames that it ends.
        worst_at_ns: When something was worst, since the first event: ``latency``, ``wait``, ``beside_idle``,
            ``beside_greater``, ``migration``, ``cluster_migration``, ``preemption``, ``too_small``, ``too_big``.
        ran_at_ns: When it began to run on a CPU for the last time, by CPU.
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
    frames: FramesSeen
    worst_at_ns: dict[str, int]
    ran_at_ns: dict[int, int]

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> ThreadSeen:
        """From the core's JSON."""
        found = {name: dict(values[name]) for name in ("cpu_ns", "worst_at_ns", "ran_at_ns")}
        latency, frames = Distribution.from_dict(values["latency"]), FramesSeen(**values["frames"])
        return ThreadSeen(**{**values, **found, "latency": latency, "frames": frames})


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
        frames: Frames of the programs, as `advise` finds them in the trace's recording; none if there are none.
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
    frames: Frames | None
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
    tops = {round(each["opps"][-1][1]) for each in clusters}
    found = {
        "machine": machine.name if machine else "",
        "clusters": tuple(each["name"] for each in clusters),
        "has_sizes": len(tops) > 1,
        "cpus": tuple(seen_cpus),
        "threads": tuple(map(ThreadSeen.from_dict, values["threads"])),
        "latency": Distribution.from_dict(values["latency"]),
        "frames": Frames.from_dict(values["frames"]) if values["frames"] else None,
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
