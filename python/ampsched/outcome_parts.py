"""What the outcome of a simulation consists of: programs, threads, classes of cores, cores, clusters, sums."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Self, get_origin

from ampsched.timeliness import Distribution, Periods


class _FromDict:
    """A data class that is made from a dictionary that may know more."""

    __slots__ = ()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From a dictionary that has at least the fields of the class."""
        read, has_lists = _fields_of(cls)  # type: ignore[arg-type]
        found = read(values)
        return cls(*map(_frozen, found)) if has_lists else cls(*found)


@functools.cache
def _fields_of(cls: type) -> tuple[Callable[[Mapping[str, Any]], tuple[Any, ...]], bool]:
    """What reads the fields of a data class from a dictionary, and whether there are lists among them.

    Outcomes are made by the thousand.
    """
    fields = dataclasses.fields(cls)
    return itemgetter(*(field.name for field in fields)), any(
        get_origin(field.type) is tuple for field in fields
    )


def _frozen(value: object) -> object:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


class _Timely(_FromDict):
    """The same of a class with latency and periods."""

    __slots__ = ()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From a dictionary that has at least the fields of the class."""
        latency, periods = Distribution.from_dict(values["latency"]), Periods.maybe(values["periods"])
        found: Self = super().from_dict({**values, "latency": latency, "periods": periods})
        return found


@dataclass(frozen=True, slots=True)
class AppOutcome(_Timely):
    """Results of one application."""

    name: str
    program: str
    start_ns: int
    turnaround_ns: int
    """From its start to the end of its last thread; the geometric mean of `completions_ns` if it was repeated."""
    completions_ns: tuple[int, ...]
    """The same of each repetition that ended; a single one unless repetitions were asked for."""
    threads: int
    """Threads that it had, in all repetitions."""
    latency: Distribution
    """Wake-up latencies of its threads."""
    periods: Periods | None
    """Of its periodic threads together; None if it has no such thread."""


@dataclass(frozen=True, slots=True)
class ThreadOutcome(_Timely):
    """Results of one thread."""

    app: int
    """Number of its application."""
    repetition: int
    """The repetition of the application that it belonged to, from 0."""
    name: str
    start_ns: int
    end_ns: int
    class_ns: tuple[int, ...]
    """Time on cores of each class, the slowest first, as in `Outcome.classes`."""
    ready_ns: int
    """Time in run queues."""
    ready_ns_max: int
    """Longest single stay in a run queue."""
    blocked_ns: int
    """Time blocked."""
    spin_ns: int
    """Of its time on cores, what it spun for while it waited."""
    blame_ns: int
    """Time that other threads waited for it."""
    instructions: int
    """Instructions retired."""
    switches: int
    """Times that it was put on a core after another thread."""
    voluntary: int
    """Times that it left a core to wait for something."""
    involuntary: int
    """Times that it lost a core to another thread while it could have gone on."""
    migrations: int
    """Times that it changed cores."""
    energy_uj: float | None
    """Energy that cores used while they ran it, if it was accounted for."""
    latency: Distribution
    """Its wake-up latencies."""
    periods: Periods | None
    """None if it has no period."""

    @property
    def run_ns(self) -> int:
        """Time on cores."""
        return sum(self.class_ns)

    @property
    def little_ns(self) -> int:
        """Time on cores of the slowest class; 0 on a symmetric machine."""
        return self.class_ns[0] if len(self.class_ns) > 1 else 0

    @property
    def big_ns(self) -> int:
        """Time on all other cores."""
        return self.run_ns - self.little_ns


@dataclass(frozen=True, slots=True)
class ClassOutcome(_FromDict):
    """Results of one class of cores."""

    name: str
    """``big`` and ``little``, with ``middle`` between them; ``all`` if all cores are alike."""
    clusters: tuple[str, ...]
    """Its clusters."""
    cores: int
    """How many cores it has."""
    busy_ns: int
    """Time of its cores with a thread, switching included."""
    idle_ns: int
    """Time of its cores without a thread."""
    instructions: int
    """Instructions retired there."""
    energy_uj: float | None
    """Energy of its clusters, if it was accounted for."""


@dataclass(frozen=True, slots=True)
class CoreOutcome(_FromDict):
    """Results of one core."""

    cluster: str
    """Name of its cluster."""
    core_class: str
    """Name of its class."""
    residency: tuple[tuple[int, int], ...]
    """Frequencies in MHz at which it was busy, ascending, with the time at each in ns."""
    busy_ns: int
    """Time with a thread, switching included."""
    overhead_ns: int
    """Of that, time spent on switching and migration, and on interrupts."""
    interrupted_ns: int
    """Of that, interrupts of the system's noise."""
    idle_ns: int
    noise_ns: int
    """Time of the system's noise while no thread had the core; with busy and idle time it is all time."""
    switches: int

    @property
    def utilisation(self) -> float:
        """Share of time with a thread, 0 to 1."""
        total_ns = self.busy_ns + self.idle_ns + self.noise_ns
        return self.busy_ns / total_ns if total_ns else 0.0


@dataclass(frozen=True, slots=True)
class ClusterEnergy(_FromDict):
    """Energy and heat of a cluster."""

    running_uj: float
    """Used by its cores while they ran threads."""
    idle_uj: float
    """Used by its cores while they idled."""
    uncore_uj: float
    """Used by what its cores share."""
    sensor_uj: float
    """The sum, as a sensor at its supply would integrate it."""
    throttled_ns: int
    """Time for which heat or the power limit capped its frequency."""
    temperature_c: float | None
    """Temperature of its hottest core at the end, if the machine describes how it heats."""

    @property
    def total_uj(self) -> float:
        """All of it."""
        return self.running_uj + self.idle_uj + self.uncore_uj


@dataclass(frozen=True, slots=True)
class ClusterOutcome(_FromDict):
    """Results of one cluster."""

    name: str
    core_class: str
    """Name of its class."""
    core_type: str
    """Name of the type of its cores."""
    cores: tuple[int, ...]
    """Numbers of its cores."""
    busy_ns: int
    """Time of its cores with a thread, switching included."""
    idle_ns: int
    """Time of its cores without a thread."""
    residency: tuple[tuple[int, int], ...]
    """Frequencies in MHz at which it ran, ascending, with the time at each in ns."""
    frequency_changes: int
    energy: ClusterEnergy | None
    """Energy and heat, if they were accounted for."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "ClusterOutcome":
        """From a dictionary that has at least the fields of the class."""
        energy = values["energy"]
        known = None if energy is None else ClusterEnergy.from_dict(energy)
        found: ClusterOutcome = super(ClusterOutcome, cls).from_dict({**values, "energy": known})
        return found

    @property
    def mean_mhz(self) -> float:
        """Mean frequency over time in MHz."""
        total_ns = sum(ns for _, ns in self.residency)
        return sum(mhz * ns for mhz, ns in self.residency) / total_ns if total_ns else 0.0


@dataclass(frozen=True, slots=True)
class Totals(_FromDict):
    """Sums and means over the threads, cores and clusters of a simulation."""

    threads: int
    """Number of threads, in all repetitions."""
    utilisation: float
    """Mean utilisation of the cores, 0 to 1."""
    instructions: int
    """Instructions that threads have retired."""
    ready_ns: int
    """Time of threads in run queues."""
    ready_ns_max: int
    """Longest single stay in a run queue."""
    blocked_ns: int
    """Time for which threads were blocked."""
    energy_j: float | None
    """Energy of all clusters, and of the board if its power is stated, in J, if it was accounted for."""


@dataclass(frozen=True, slots=True)
class Counts(_FromDict):
    """How often things happened in a simulation."""

    dispatches: int
    """Scheduling decisions that put a thread on a core."""
    switches: int
    """Decisions that put another thread on the core than before."""
    migrations: int
    """Threads that continued on another core."""
    wakeups: int
    preemptions: int
    """Wake-ups that interrupted the running thread."""
    noise: int
    """Interrupts and wake-ups of kernel threads."""
