"""What a simulation yields."""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ampsched import timeliness
from ampsched.naming import in_number
from ampsched.outcome_parts import (
    AppOutcome,
    ClassOutcome,
    ClusterOutcome,
    CoreOutcome,
    Counts,
    ThreadOutcome,
    Totals,
)
from ampsched.timeliness import Distribution, Owner

if TYPE_CHECKING:
    import polars
    from _typeshed import DataclassInstance

_BY_CAPACITY = "it places threads by capacity, not by energy"
"""How what `linux` says ends where the machine's power is not known."""


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
    totals: Totals
    """Sums and means over threads, cores and clusters."""
    caveat: str | None = None
    """What the policy could not do on this machine, for want of what it would have to know."""
    noise: str | None = None
    """Name of the system's noise, if there was any."""
    smt: str | None = None
    """How the two threads of a core (SMT) are modelled, if a core has two."""
    board_uj: float | None = None
    """Used by what is no cluster, if energy was accounted for and the machine states that power."""

    def __repr__(self) -> str:
        """A line; `to_dict` and `to_polars` show everything."""
        where = f"{self.workload} on {self.machine} under {self.policy}"
        count = len(self.threads)
        took = f"{self.makespan_ns / 1e6:g} ms, {count} {in_number(count, 'thread')}"
        return f"<Outcome: {where}, seed {self.seed}, {took}>"

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
            totals=Totals.from_dict(values["totals"]),
            caveat=_caveat(values),
            smt=values["smt"],
            noise=values["noise"],
            board_uj=values["board_uj"],
        )

    @property
    def energy_j(self) -> float | None:
        """Energy of all clusters, and of the board if its power is stated, in J, if it was accounted for."""
        return self.totals.energy_j

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
        return None if self.energy_j is None else self.totals.instructions / self.energy_j

    @property
    def utilisation(self) -> float:
        """Mean utilisation of the cores, 0 to 1."""
        return self.totals.utilisation

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


def _caveat(values: Mapping[str, Any]) -> str | None:
    """What the policy could not do; that `linux` places by capacity, only where energy is asked for."""
    has_energy = any(cluster["energy"] is not None for cluster in values["clusters"])
    caveat: str | None = values["caveat"]
    return None if caveat and not has_energy and caveat.endswith(_BY_CAPACITY) else caveat
