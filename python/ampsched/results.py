"""What a simulation yields."""

import dataclasses
import functools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self, get_origin

from ampsched import timeliness
from ampsched.timeliness import Distribution, Owner, Periods

if TYPE_CHECKING:
    import polars
    from _typeshed import DataclassInstance


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
    """Time for which heat capped its frequency."""
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
class Counts(_FromDict):
    """Totals of a simulation."""

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


@dataclass(frozen=True, slots=True, repr=False)
class Outcome:
    """Results of one simulation; times in ns."""

    machine: str
    workload: str
    policy: str
    seed: int
    makespan_ns: int
    """When the last thread ended, or the run was stopped."""
    apps: tuple[AppOutcome, ...]
    threads: tuple[ThreadOutcome, ...]
    cores: tuple[CoreOutcome, ...]
    clusters: tuple[ClusterOutcome, ...]
    peak_c: float | None
    """Highest temperature of the machine in degrees Celsius, if heat was accounted for."""
    counts: Counts
    latency: Distribution
    """Wake-up latencies of all threads."""
    classes: tuple[ClassOutcome, ...]
    """Per class of cores, the slowest first."""
    caveat: str | None = None
    """What the policy could not do on this machine, for want of what it would have to know."""
    noise: str | None = None
    """Name of the system's noise, if there was any."""
    board_uj: float | None = None
    """Used by what is no cluster, if energy was accounted for and the machine states that power."""

    def __repr__(self) -> str:
        """A line; `to_dict` and `to_polars` show everything."""
        where = f"{self.workload} on {self.machine} under {self.policy}"
        return f"<Outcome: {where}, seed {self.seed}, {self.makespan_ns / 1e6:g} ms, {len(self.threads)} threads>"

    def _repr_html_(self) -> str:
        from ampsched.report import notebook

        return notebook.outcome(self)

    @staticmethod
    def from_json(text: str, policy: str | None = None) -> "Outcome":
        """From the simulator's JSON; `policy` replaces the policy's name."""
        return Outcome.from_values(json.loads(text), policy)

    @staticmethod
    def from_values(values: Mapping[str, Any], policy: str | None = None) -> "Outcome":
        """The same from what the JSON holds."""
        return Outcome(
            machine=values["machine"],
            workload=values["workload"],
            policy=policy or values["policy"],
            seed=values["seed"],
            makespan_ns=values["makespan_ns"],
            apps=tuple(map(AppOutcome.from_dict, values["apps"])),
            threads=tuple(map(ThreadOutcome.from_dict, values["threads"])),
            cores=tuple(map(CoreOutcome.from_dict, values["cores"])),
            clusters=tuple(map(ClusterOutcome.from_dict, values["clusters"])),
            peak_c=values["peak_c"],
            counts=Counts.from_dict(values["counts"]),
            latency=Distribution.from_dict(values["latency"]),
            classes=tuple(map(ClassOutcome.from_dict, values["classes"])),
            caveat=values["caveat"],
            noise=values["noise"],
            board_uj=values["board_uj"],
        )

    @property
    def energy_j(self) -> float | None:
        """Energy of all clusters, and of the board if its power is stated, in J, if it was accounted for."""
        parts = [cluster.energy.total_uj for cluster in self.clusters if cluster.energy is not None]
        return (sum(parts) + (self.board_uj or 0.0)) / 1e6 if parts else None

    @property
    def power_w(self) -> float | None:
        """Mean power in W, if energy was accounted for."""
        return None if self.energy_j is None else self.energy_j / (self.makespan_ns / 1e9)

    @property
    def edp_js(self) -> float | None:
        """Energy x makespan in J s, if energy was accounted for."""
        return None if self.energy_j is None else self.energy_j * self.makespan_ns / 1e9

    @property
    def ed2p_js2(self) -> float | None:
        """Energy x makespan^2 in J s^2, if energy was accounted for."""
        return None if self.edp_js is None else self.edp_js * self.makespan_ns / 1e9

    @property
    def instructions_per_j(self) -> float | None:
        """Instructions retired per joule (IPW: instructions per second and watt), if energy was accounted for."""
        done = sum(thread.instructions for thread in self.threads)
        return None if self.energy_j is None else done / self.energy_j

    @property
    def utilisation(self) -> float:
        """Mean utilisation of the cores, 0 to 1."""
        return sum(core.utilisation for core in self.cores) / len(self.cores)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return dataclasses.asdict(self)

    def to_polars(self) -> "polars.DataFrame":
        """A data frame with one row per thread."""
        import polars

        names = [f"{each.name}_ns" for each in self.classes]
        rows = [
            {
                "app": self.apps[thread.app].name,
                "program": self.apps[thread.app].program,
                **_flat(thread, "app", "class_ns"),
                **dict(zip(names, thread.class_ns, strict=True)),
                "wakeups": thread.latency.count,
                **{f"latency_{name}": getattr(thread.latency, name) for name in timeliness.PERCENTILES},
                "missed": thread.periods.missed if thread.periods else None,
            }
            for thread in self.threads
        ]
        return polars.DataFrame(rows, infer_schema_length=None)

    def apps_to_polars(self) -> "polars.DataFrame":
        """A data frame with one row per application."""
        import polars

        return polars.DataFrame([_flat(app) for app in self.apps], infer_schema_length=None)

    def cores_to_polars(self) -> "polars.DataFrame":
        """A data frame with one row per core."""
        import polars

        rows = [
            {"core": number, **_flat(core, "residency"), "utilisation": core.utilisation}
            for number, core in enumerate(self.cores)
        ]
        return polars.DataFrame(rows, infer_schema_length=None)

    def classes_to_polars(self) -> "polars.DataFrame":
        """A data frame with one row per class of cores, the slowest first."""
        return frame_of(self.classes)

    def clusters_to_polars(self) -> "polars.DataFrame":
        """A data frame with one row per cluster; its energy, if it was accounted for, is a column of each part."""
        import polars

        rows = [
            {
                **_flat(cluster, "residency", "energy"),
                "mean_mhz": cluster.mean_mhz,
                **(dataclasses.asdict(cluster.energy) if cluster.energy else {}),
            }
            for cluster in self.clusters
        ]
        return polars.DataFrame(rows, infer_schema_length=None)

    def residency_to_polars(self) -> "polars.DataFrame":
        """A data frame with one row per core and frequency at which it was busy.

        Columns: ``core``, ``core_class``, ``cluster``, ``mhz``, ``busy_ns``, and ``share`` of the whole run.
        """
        import polars

        rows = [
            {
                "core": number,
                "core_class": core.core_class,
                "cluster": core.cluster,
                "mhz": mhz,
                "busy_ns": busy_ns,
                "share": busy_ns / max(1, self.makespan_ns),
            }
            for number, core in enumerate(self.cores)
            for mhz, busy_ns in core.residency
        ]
        texts, numbers = ("core_class", "cluster"), ("mhz", "busy_ns")
        columns = {"core": int, **dict.fromkeys(texts, str), **dict.fromkeys(numbers, int), "share": float}
        return polars.DataFrame(rows, schema=columns)

    def owners(self) -> list[Owner]:
        """Whose wake-up latencies and periods there are: each program, then its threads."""
        found = []
        for number, app in enumerate(self.apps):
            found.append(Owner(app.name, None, None, app.latency, app.periods))
            own = [thread for thread in self.threads if thread.app == number]
            found += [Owner(app.name, it.name, it.repetition, it.latency, it.periods) for it in own]
        return found

    def latency_to_polars(self) -> "polars.DataFrame":
        """Wake-up latencies: a data frame with one row per program (no ``thread``) and one per thread.

        Columns: ``program`` (the application's name), ``thread``, ``repetition``, ``count`` (wake-ups), ``p50_ns``,
        ``p95_ns``, ``p99_ns``, ``max_ns``.
        """
        import polars

        return polars.DataFrame(timeliness.latency_rows(self.owners()), schema=timeliness.LATENCY_SCHEMA)

    def periods_to_polars(self) -> "polars.DataFrame":
        """Periods: a data frame with one row per program and thread that has any.

        Columns: ``program``, ``thread``, ``repetition``, ``periods``, ``missed``, ``slack_p50_ns``,
        ``slack_min_ns``, and the percentiles of response and frame times, such as ``response_p99_ns``.
        """
        import polars

        return polars.DataFrame(timeliness.period_rows(self.owners()), schema=timeliness.PERIOD_SCHEMA)

    def histograms_to_polars(self) -> "polars.DataFrame":
        """Histograms: a data frame with one row per bucket that is not empty.

        Columns: ``program``, ``thread``, ``repetition``, ``of`` (``latency``, ``response`` or ``frame``),
        ``upper_ns`` (the longest time that the bucket counts) and ``count``. Runs of a comparison keep those of
        whole programs only.
        """
        import polars

        return polars.DataFrame(timeliness.histogram_rows(self.owners()), schema=timeliness.HISTOGRAM_SCHEMA)


def _flat(row: "DataclassInstance", *without: str) -> dict[str, Any]:
    """The fields of a result that fit into a frame's row."""
    left_out = {*without, "latency", "periods"}
    names = (field.name for field in dataclasses.fields(row))
    return {name: getattr(row, name) for name in names if name not in left_out}


def frame_of(rows: Iterable[Any]) -> "polars.DataFrame":
    """A data frame of data class instances, one row each."""
    import polars

    return polars.DataFrame([dataclasses.asdict(row) for row in rows], infer_schema_length=None)
