"""The comparison of schedulers (Figures 10 to 14)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean
from typing import Any

from ampsched import _core, metrics
from ampsched._core import Machine
from ampsched.execution import Progress, job_of, run_all
from ampsched.outcome_parts import ClusterOutcome
from ampsched.policy import PolicySpec
from ampsched.results import Outcome
from ampsched.settings import RunSettings
from ampsched.statistics import Estimate, estimate
from ampsched_lab.papers.hfee import setup
from ampsched_lab.papers.hfee.setup import LINUX, MACHINES, SCHEDULERS, STAND_INS, WORKLOADS, Scheduler
from ampsched_lab.shared.conditions import AS_JUDGED, Condition


@dataclass(frozen=True, slots=True)
class Row:
    """A scheduler on a workload, started in one order."""

    machine: str
    mix: str
    scheduler: str
    seed: int
    slowdowns: tuple[float, ...]
    """Of each program in Table 3's order, against alone on a big core at its highest frequency."""
    makespan_s: float
    energy_j: float
    instructions_per_j: float
    big_s: float
    """Time of programs on big cores."""
    little_s: float
    """Time of programs on little cores."""
    big_mhz: tuple[tuple[int, int], ...]
    """Frequencies of the big cluster with the time at each in ns."""
    little_mhz: tuple[tuple[int, int], ...]
    peak_c: float
    throttled_s: float
    """Time for which heat capped a cluster's frequency."""
    migrations: int

    @property
    def uniformity(self) -> float:
        """Of slowdowns, population sigma: HFEE's text, section 3."""
        return metrics.uniformity(self.slowdowns)

    @property
    def power_w(self) -> float:
        """Mean power."""
        return self.energy_j / self.makespan_s

    @property
    def edp_js(self) -> float:
        """Energy x makespan."""
        return self.energy_j * self.makespan_s

    @property
    def ed2p_js2(self) -> float:
        """Energy x makespan^2."""
        return self.edp_js * self.makespan_s

    @property
    def big_share(self) -> float:
        """Share of the programs' time on cores that they spent on big ones."""
        return self.big_s / (self.big_s + self.little_s)

    def record(self) -> dict[str, Any]:
        """As flat values, every metric included."""
        uniformity = {
            f"uniformity_{of_what}_{sigma}": metrics.uniformity(
                self.slowdowns, of_progress=of_what == "progress", sample=sigma == "sample"
            )
            for of_what, sigma in product(("slowdown", "progress"), ("population", "sample"))
        }
        own = {name: getattr(self, name) for name in self.__slots__ if not name.endswith("_mhz")}
        lists = {name: [list(pair) for pair in getattr(self, name)] for name in ("big_mhz", "little_mhz")}
        derived = {name: getattr(self, name) for name in ("power_w", "edp_js", "ed2p_js2", "big_share")}
        return own | {"slowdowns": list(self.slowdowns)} | uniformity | derived | lists


@dataclass(frozen=True, slots=True)
class Results:
    """Rows of the comparison."""

    rows: tuple[Row, ...]

    def of(self, machine: str, mix: str, scheduler: str) -> list[Row]:
        """The rows of a scheduler on a workload, a row per seed in ascending order."""
        return [
            row for row in self.rows if (row.machine, row.mix, row.scheduler) == (machine, mix, scheduler)
        ]

    def and_of(self, other: "Results") -> "Results":
        """With those of other seeds, in ascending order of seeds."""
        return Results(self.rows + other.rows)

    def with_linux(self, stand_in: Scheduler) -> "Results":
        """The same results with another scheduler's in Linux's place."""
        kept = [row for row in self.rows if row.scheduler not in (LINUX.name, stand_in.name)]
        placed = [replace(row, scheduler=LINUX.name) for row in self.rows if row.scheduler == stand_in.name]
        return Results((*kept, *placed))

    def mean(self, machine: str, mix: str, scheduler: str, metric: str) -> Estimate:
        """A metric with its interval over seeds."""
        return estimate([getattr(row, metric) for row in self.of(machine, mix, scheduler)])

    def relative(self, machine: str, mix: str, scheduler: str, reference: str, metric: str) -> Estimate:
        """A metric / that of another scheduler, seed by seed."""
        pairs = zip(self.of(machine, mix, scheduler), self.of(machine, mix, reference), strict=True)
        return estimate([getattr(ours, metric) / getattr(theirs, metric) for ours, theirs in pairs])

    def change(self, machine: str, scheduler: str, reference: str, metric: str) -> Estimate:
        """Change of the mean over workloads against another scheduler, interval over seeds."""
        ours, theirs = (self._mean_by_seed(machine, each, metric) for each in (scheduler, reference))
        return estimate([own / other - 1.0 for own, other in zip(ours, theirs, strict=True)])

    def overall(self, machine: str, scheduler: str, metric: str) -> float:
        """The mean over workloads and seeds."""
        return fmean(self._mean_by_seed(machine, scheduler, metric))

    def _mean_by_seed(self, machine: str, scheduler: str, metric: str) -> list[float]:
        """Means over workloads by seed: geometric, but arithmetic of uniformity, which may be below 0."""
        mean = fmean if metric == "uniformity" else metrics.geometric_mean
        per_mix = [[getattr(row, metric) for row in self.of(machine, mix, scheduler)] for mix in WORKLOADS]
        return [mean(values) for values in zip(*per_mix, strict=True)]


ALL = (*SCHEDULERS, *STAND_INS)
LIMIT_S = 36_000
"""Simulated: at the lowest frequencies a workload takes hours."""


def run(
    jobs: int,
    orders: range,
    progress: Progress | None = None,
    *,
    machines: Sequence[Machine] = (),
    under: Sequence[Scheduler] = ALL,
    condition: Condition = AS_JUDGED,
) -> Results:
    """Runs every workload under schedulers, started in some orders.

    Args:
        jobs: Processors to use; 0: all. Results do not depend on it.
        orders: Their seeds.
        progress: Called with the number of finished simulations and of all.
        machines: Machines; both of the experiment if there are none.
        under: Schedulers.
        condition: Of it the noise, and how programs behave.
    """
    where = {each.name: each for each in machines or map(setup.machine, MACHINES)}
    steps = list(product(where, WORKLOADS, orders, under))
    outcomes = run_all([_job(where[step[0]], *step[1:], condition) for step in steps], jobs, progress)
    return Results(
        tuple(_row(step, outcome, condition) for step, outcome in zip(steps, outcomes, strict=True))
    )


def _job(
    where: Machine, mix: str, seed: int, scheduler: Scheduler, condition: Condition
) -> tuple[_core.Job, PolicySpec]:
    settings = RunSettings(
        energy=True, governor=scheduler.governor, seed=seed, noise=condition.noise, limit_s=LIMIT_S
    )
    policy = PolicySpec.of(scheduler.policy)
    work = condition.of(setup.in_order(mix, seed), setup.machine(setup.PAPER).only_big())
    return job_of(settings, where, work, policy), policy


def _row(step: tuple[str, str, int, Scheduler], outcome: Outcome, condition: Condition) -> Row:
    machine, mix, seed, scheduler = step
    clusters = {cluster.name: cluster for cluster in outcome.clusters}
    sched_ns = {app.name: app.turnaround_ns for app in outcome.apps}
    names = [name for name, _, _ in setup.mix(mix).apps]
    assert outcome.energy_j is not None
    assert outcome.instructions_per_j is not None
    assert outcome.peak_c is not None
    return Row(
        machine,
        mix,
        scheduler.name,
        seed,
        metrics.slowdowns(
            [sched_ns[name] for name in names],
            [setup.alone_ns(name, condition.length_ms) for name in names],
        ),
        outcome.makespan_ns / 1e9,
        outcome.energy_j,
        outcome.instructions_per_j,
        sum(thread.big_ns for thread in outcome.threads) / 1e9,
        sum(thread.little_ns for thread in outcome.threads) / 1e9,
        clusters[setup.BIG].residency,
        clusters[setup.LITTLE].residency,
        outcome.peak_c,
        max(map(_throttled_s, outcome.clusters)),
        outcome.counts.migrations,
    )


def _throttled_s(cluster: ClusterOutcome) -> float:
    return cluster.energy.throttled_ns / 1e9 if cluster.energy else 0.0


def share_at_least(residency: Sequence[tuple[int, int]], mhz: int) -> float:
    """Share of time at that frequency or a higher one."""
    return sum(ns for at, ns in residency if at >= mhz) / sum(ns for _, ns in residency)
