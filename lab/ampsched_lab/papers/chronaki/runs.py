"""All programs under all methods on all configurations: times, power, energy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from statistics import fmean
from typing import Any, Literal

from ampsched import _core
from ampsched.execution import Progress, job_of, run_all
from ampsched.policy import PolicySpec
from ampsched.results import Outcome
from ampsched.settings import RunSettings
from ampsched.statistics import Estimate, estimate
from ampsched_lab.papers.chronaki import setup
from ampsched_lab.papers.chronaki.setup import (
    BESIDE,
    CORES,
    FOUR,
    GTS,
    LOOPS,
    METHODS,
    ONE_LITTLE,
    PROGRAMS,
    STATIC,
    WITH_LOOPS,
    Cores,
    Method,
)
from ampsched_lab.shared.conditions import AS_JUDGED, Condition

Metric = Literal["speedup", "power_w", "energy", "edp"]
ALL_ON = Cores(4, 4)
LITTLE = FOUR[0]
IDLE_PROGRAM = "blackscholes"


@dataclass(frozen=True, slots=True)
class Row:
    """A run."""

    program: str
    method: str
    big: int
    little: int
    seed: int
    time_s: float
    energy_j: float
    peak_c: float
    throttled_s: float
    """Time for which heat capped a cluster's frequency."""

    @property
    def power_w(self) -> float:
        """Mean power."""
        return self.energy_j / self.time_s

    def record(self) -> dict[str, Any]:
        """As flat values."""
        return asdict(self) | {"power_w": self.power_w}


class Results:
    """Rows, and the paper's metrics of them."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = tuple(rows)
        self._rows = {(row.program, row.method, Cores(row.big, row.little), row.seed): row for row in rows}
        self.seeds = sorted({row.seed for row in rows})

    def and_of(self, other: "Results") -> "Results":
        """With those of other seeds."""
        return Results(self.rows + other.rows)

    def row(self, program: str, method: Method, cores: Cores, seed: int) -> Row:
        """A run."""
        return self._rows[program, method.name, cores, seed]

    def value(self, metric: Metric, program: str, method: Method, cores: Cores, seed: int) -> float:
        """A metric of a run.

        The speed-up is that over one little core under the same method (equation 1), energy and energy x
        delay are relative to four little cores under static threading (section 4).
        """
        row = self.row(program, method, cores, seed)
        if metric == "speedup":
            return self.row(program, method, ONE_LITTLE, seed).time_s / row.time_s
        if metric == "power_w":
            return row.power_w
        base = self.row(program, STATIC, LITTLE, seed)
        energy = row.energy_j / base.energy_j
        return energy if metric == "energy" else energy * row.time_s / base.time_s

    def mean_of(
        self, metric: Metric, method: Method, cores: Cores, seed: int, programs: Sequence[str] = PROGRAMS
    ) -> float:
        """Arithmetic mean over programs."""
        return fmean(self.value(metric, program, method, cores, seed) for program in programs)

    def mean(
        self, metric: Metric, method: Method, cores: Cores, programs: Sequence[str] = PROGRAMS
    ) -> Estimate:
        """The same with its interval over seeds."""
        return self.over_seeds(lambda seed: self.mean_of(metric, method, cores, seed, programs))

    def change(
        self,
        metric: Metric,
        to: tuple[Method, Cores],
        since: tuple[Method, Cores],
        programs: Sequence[str] = PROGRAMS,
    ) -> Estimate:
        """Relative change of the mean over programs."""
        return self.over_seeds(
            lambda seed: (
                self.mean_of(metric, *to, seed, programs) / self.mean_of(metric, *since, seed, programs) - 1.0
            )
        )

    def with_idle_cluster(self, watts: Mapping[Cores, float]) -> "Results":
        """The same runs if clusters without cores idled at such a power by configuration, not off."""
        return Results(
            [
                replace(row, energy_j=row.energy_j + row.time_s * watts.get(Cores(row.big, row.little), 0.0))
                for row in self.rows
            ]
        )

    def instead(self, method: Method, other: Method) -> "Results":
        """The same with another method's runs in a method's place."""
        kept = [row for row in self.rows if row.method != method.name]
        placed = [replace(row, method=method.name) for row in self.rows if row.method == other.name]
        return Results([*kept, *placed])

    def replaced(self, found: "Results") -> "Results":
        """The same with other runs of the methods that are found."""
        methods = {row.method for row in found.rows}
        return Results([*(row for row in self.rows if row.method not in methods), *found.rows])

    def over_seeds(self, value: Callable[[int], float]) -> Estimate:
        """A value of each seed, with its interval."""
        return estimate([value(seed) for seed in self.seeds])


def run(
    jobs: int,
    seeds: range,
    methods: Sequence[Method],
    programs: Sequence[str],
    progress: Progress | None,
    condition: Condition = AS_JUDGED,
    configurations: Sequence[Cores] = CORES,
) -> Results:
    """Runs programs under methods on configurations.

    Args:
        jobs: Processors to use; 0: all. Results do not depend on it.
        seeds: Seeds; only the random amounts of dedup's and ferret's pools depend on them.
        methods: Methods; of those of Figure 9 that a program has no variant for, it is left out.
        programs: Programs.
        progress: Called with the number of finished simulations and of all.
        condition: Of it the noise, and how programs behave.
        configurations: Cores that are on.
    """
    steps = [
        step
        for step in product(programs, methods, configurations, seeds)
        if not step[1].variant.startswith("loop") or step[0] in WITH_LOOPS
    ]
    own = [step for step in steps if _first_alike(step, seeds, condition) == step]
    outcomes = dict(zip(own, run_all([_job(*step, condition) for step in own], jobs, progress), strict=True))
    return Results([_row(*step, outcomes[_first_alike(step, seeds, condition)]) for step in steps])


Step = tuple[str, Method, Cores, int]


def _first_alike(step: Step, seeds: range, condition: Condition) -> Step:
    """The first step whose outcome is the same: without noise and random amounts no seed makes a difference."""
    program, method, cores, seed = step
    alike = condition.noise == AS_JUDGED.noise and program not in setup.RANDOM
    return program, method, cores, seeds.start if alike else seed


def idle_cluster_w(jobs: int) -> dict[Cores, float]:
    """What a cluster without cores would draw if it idled instead of being off, in W, by the configuration.

    Measured with a program that has as many threads as cores under static threading.
    """
    settings, policy = RunSettings(energy=True), PolicySpec.of(STATIC.policy)
    tasks = []
    for cores in (LITTLE, FOUR[-1]):
        # Threads are pinned to the first cores.
        whole = setup.machine(ALL_ON, big_first=cores.big > 0)
        work = setup.workload(IDLE_PROGRAM, STATIC, cores.all)
        tasks += [(job_of(settings, where, work, policy), policy) for where in (whole, setup.machine(cores))]
    watts = [_power_w(outcome) for outcome in run_all(tasks, jobs)]
    return {LITTLE: watts[0] - watts[1], FOUR[-1]: watts[2] - watts[3]}


def four_and_eight(jobs: int, seeds: range, progress: Progress | None = None) -> Results:
    """What sections 5.1 and 5.2 need."""
    return run(jobs, seeds, (*METHODS, *BESIDE), PROGRAMS, progress)


def loops(jobs: int, seeds: range, progress: Progress | None = None) -> Results:
    """What section 5.3 needs."""
    return run(jobs, seeds, (*LOOPS, GTS), WITH_LOOPS, progress)


def _job(
    program: str, method: Method, cores: Cores, seed: int, condition: Condition
) -> tuple[_core.Job, PolicySpec]:
    policy = PolicySpec.of(method.policy)
    work = setup.workload(program, method, cores.all, condition)
    settings = RunSettings(energy=True, seed=seed, noise=condition.noise)
    return job_of(settings, setup.machine(cores, condition=condition), work, policy), policy


def _row(program: str, method: Method, cores: Cores, seed: int, outcome: Outcome) -> Row:
    assert outcome.energy_j is not None, "energy was asked for"
    assert outcome.peak_c is not None, "the board's heat is described"
    throttled_ns = [cluster.energy.throttled_ns for cluster in outcome.clusters if cluster.energy]
    return Row(
        program,
        method.name,
        cores.big,
        cores.little,
        seed,
        outcome.makespan_ns / 1e9,
        outcome.energy_j,
        outcome.peak_c,
        max(throttled_ns) / 1e9,
    )


def _power_w(outcome: Outcome) -> float:
    assert outcome.energy_j is not None, "energy was asked for"
    return outcome.energy_j * 1e9 / outcome.makespan_ns
