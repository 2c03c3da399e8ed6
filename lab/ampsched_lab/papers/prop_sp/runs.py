"""Prop-SP (Saez et al., Euro-Par 2014 workshops): what is run, with the paper's protocol, and what it yields.

All programs of a mix start together; one that has ended starts anew until each has ended three times; a
program's time is the geometric mean of its completion times. ASP and unfairness compare with each program
alone (`ampsched.alone`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from statistics import fmean, geometric_mean

from ampsched import metrics
from ampsched._core import Workload
from ampsched.alone import run_alone
from ampsched.analytic import TABLE_1, predict_all, table_1
from ampsched.catalog import Catalog
from ampsched.execution import Progress, job_of, run_all
from ampsched.policy import PolicySpec, policies
from ampsched.settings import AloneSettings
from ampsched.statistics import Estimate, estimate
from ampsched_lab.papers.prop_sp.setup import (
    DYNAMIC,
    IDEAL,
    LINUX,
    MIXES,
    MODEL_POLICIES,
    NICE,
    POLICIES,
    PRIORITY_POLICIES,
    REPETITIONS,
    SMALL,
    workload_of,
)
from ampsched_lab.shared.conditions import (
    ACTIVE,
    AS_JUDGED,
    BUSY,
    IDLE,
    LENGTH_300,
    LENGTH_1000,
    PREDICTED,
    SPIN,
    Condition,
)
from ampsched_lab.shared.constants import with_other_constants
from ampsched_lab.shared.machines import changed_machine
from ampsched_lab.shared.workloads import changed_workload


@dataclass(frozen=True, slots=True)
class Row:
    """A policy on a mix with one seed."""

    machine: str
    mix: str
    policy: str
    seed: int
    slowdowns: tuple[float, ...]
    """CT_sched / CT_fast of each program."""
    asp: float
    unfairness: float


@dataclass(frozen=True, slots=True)
class Results:
    """Rows of an experiment or of a part of it."""

    rows: tuple[Row, ...]

    def and_of(self, other: "Results") -> "Results":
        """With those of other seeds, in ascending order of seeds."""
        return Results(self.rows + other.rows)

    def of(self, mix: str, policy: str, machine: str | None = None) -> list[Row]:
        """The rows of a policy on a mix, a row per seed in ascending order."""
        return [
            row
            for row in self.rows
            if (row.mix, row.policy) == (mix, policy) and machine in (None, row.machine)
        ]

    def asp(self, mix: str, policy: str) -> Estimate:
        """ASP with its interval over seeds."""
        return estimate([row.asp for row in self.of(mix, policy)])

    def unfairness(self, mix: str, policy: str) -> Estimate:
        """Unfairness with its interval over seeds."""
        return estimate([row.unfairness for row in self.of(mix, policy)])

    def mean_asp(self, mixes: Sequence[str], policy: str) -> Estimate:
        """Arithmetic mean of ASP over mixes (it may be near 0), interval over seeds."""
        return estimate([fmean(values) for values in self._by_seed(mixes, policy, "asp")])

    def mean_unfairness(self, mixes: Sequence[str], policy: str) -> Estimate:
        """Geometric mean of unfairness over mixes, interval over seeds."""
        return estimate([geometric_mean(values) for values in self._by_seed(mixes, policy, "unfairness")])

    def asp_change(self, mixes: Sequence[str], policy: str, reference: str) -> Estimate:
        """Change of mean ASP against another policy, interval over seeds."""
        return estimate(self.asp_changes(mixes, policy, reference))

    def asp_changes(self, mixes: Sequence[str], policy: str, reference: str) -> list[float]:
        """The same with each seed."""
        pairs = zip(self._by_seed(mixes, policy, "asp"), self._by_seed(mixes, reference, "asp"), strict=True)
        return [fmean(ours) / fmean(theirs) - 1.0 for ours, theirs in pairs]

    def unfairness_change(self, mixes: Sequence[str], policy: str, reference: str) -> Estimate:
        """Change of mean unfairness against another policy, interval over seeds."""
        pairs = zip(
            self._by_seed(mixes, policy, "unfairness"),
            self._by_seed(mixes, reference, "unfairness"),
            strict=True,
        )
        return estimate([geometric_mean(ours) / geometric_mean(theirs) - 1.0 for ours, theirs in pairs])

    def _by_seed(self, mixes: Sequence[str], policy: str, metric: str) -> list[tuple[float, ...]]:
        """Values of all mixes, seed by seed."""
        per_mix = [[getattr(row, metric) for row in self.of(mix, policy)] for mix in mixes]
        return list(zip(*per_mix, strict=True))


def pareto_front(points: Mapping[str, tuple[float, float]]) -> set[str]:
    """The policies than which no other has both a higher ASP and a lower unfairness.

    Args:
        points: ASP and unfairness of each policy.
    """

    def beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
        return one != other and one[0] >= other[0] and one[1] <= other[1]

    return {name for name, own in points.items() if not any(beats(other, own) for other in points.values())}


@dataclass(frozen=True, slots=True)
class Part:
    """What is run together: mixes on their machines under policies."""

    mixes: tuple[tuple[str, str], ...]
    """Pairs of machine and mix."""
    policies: tuple[str, ...]
    condition: Condition = AS_JUDGED

    def run(self, jobs: int, seeds: range, progress: Progress | None = None) -> Results:
        """Runs it with some seeds.

        Args:
            jobs: Processors to use; 0: all. Results do not depend on it.
            seeds: Seeds.
            progress: Called with the number of finished steps and of all; a mix with a seed is a step.
        """
        rows: list[Row] = []
        steps = list(product(self.mixes, seeds))
        for number, ((machine, mix), seed) in enumerate(steps, start=1):
            rows += _rows(machine, mix, self, seed, jobs)
            if progress:
                progress(number, len(steps))
        return Results(tuple(rows))


DYNAMIC_LOOPS = Condition("multithreaded programs divide their loops dynamically", params={"dynamic": 1})
SLOW_CORES = "mhz = 800"
CHANGED = (
    IDLE,
    BUSY,
    SPIN,
    ACTIVE,
    DYNAMIC_LOOPS,
    LENGTH_300,
    LENGTH_1000,
    Condition("each program takes 10 s alone", length_ms=10_000),
    Condition("slow cores at 600 MHz", lines={SLOW_CORES: "mhz = 600"}, net_ratio=(2600 / 600 - 1) / 2.25),
    Condition("slow cores at 1300 MHz", lines={SLOW_CORES: "mhz = 1300"}, net_ratio=1 / 2.25),
)
"""Under which Figure 2 is run again. Stated net speed-ups change as those of code that never waits for memory, which
is 2600 / 800 - 1 = 2.25 as judged."""


PROP_SP = "prop-sp"
VARIANTS = (
    Condition("Prop-SP without speed-ups (RR)", policies={PROP_SP: "rr-amp"}),
    Condition(
        "Prop-SP with periods of 400 ms", policies={PROP_SP: "prop-sp:period_min_ms=400:period_max_ms=400"}
    ),
    Condition("Prop-SP gives the threads of a program equal credits", policies={PROP_SP: "prop-sp:even=1"}),
    Condition("Prop-SP reads speed-ups every 10 ms", policies={PROP_SP: "prop-sp:sample_ms=10"}),
    *with_other_constants("prop-sp"),
)
"""Ablations and variants, then constants that the papers do not print."""


def _workload(mix: str, condition: Condition) -> Workload:
    name = workload_of(mix)
    if condition.params:
        return changed_workload("prop-sp-table3", name, condition.params)
    fast_cores = Catalog.shipped().machine(MIXES.get(mix, SMALL)).only_big()
    return condition.of(Catalog.shipped().workload(name), fast_cores)


def _settings(condition: Condition, seed: int) -> AloneSettings:
    return AloneSettings(factors=condition.factors, seed=seed, repetitions=REPETITIONS, noise=condition.noise)


@cache
def _alone_ns(
    machine: str, mix: str, condition: Condition, seed: int, jobs: int
) -> tuple[list[int], list[int]]:
    """CT_fast and CT_slow of each program; parts with the same mixes share them."""
    where, what = changed_machine(machine, condition.lines), _workload(mix, condition)
    references = run_alone(where, what, _settings(condition, seed), processes=jobs)
    return [each.fast_ns for each in references], [each.slow_ns for each in references]


def _rows(machine: str, mix: str, part: Part, seed: int, jobs: int) -> list[Row]:
    where, what = changed_machine(machine, part.condition.lines), _workload(mix, part.condition)
    # Alone, nobody asks for speed-ups.
    alone = replace(part.condition, factors=AS_JUDGED.factors)
    fast_ns, slow_ns = _alone_ns(machine, mix, alone, seed, jobs)
    specs = [PolicySpec.of(policy) for policy in part.policies]
    settings = _settings(part.condition, seed)
    outcomes = run_all([(job_of(settings, where, what, spec), spec) for spec in specs], jobs)
    rows = []
    for policy, outcome in zip(part.policies, outcomes, strict=True):
        sched_ns = [app.turnaround_ns for app in outcome.apps]
        slowdowns = metrics.slowdowns(sched_ns, fast_ns)
        rows.append(
            Row(
                machine,
                mix,
                policy,
                seed,
                tuple(slowdowns),
                metrics.asp(sched_ns, slow_ns),
                max(slowdowns) / min(slowdowns),
            )
        )
    return rows


TABLE_1_MIXES = tuple(TABLE_1)
SIMULATED = tuple(MODEL_POLICIES.values())
PARTS = {
    "fig1": Part(tuple((machine, mix) for machine in (IDEAL, SMALL) for mix in TABLE_1_MIXES), SIMULATED),
    "fig2": Part(tuple((machine, mix) for mix, machine in MIXES.items()), POLICIES),
    "pareto": Part(
        tuple((machine, mix) for mix, machine in MIXES.items()),
        (*(info.name for info in policies()), LINUX),
    ),
    "priorities": Part(tuple((SMALL, f"nice-{nice}") for nice in NICE), PRIORITY_POLICIES),
}
"""The model simulated (Figure 1), the mixes of Table 3 (Figure 2), all policies, and static weights."""


def with_predictions(part: Part, results: Results, jobs: int) -> Results:
    """Results of a part in which the dynamic policies ran anew with speed-ups predicted from counters.

    Args:
        part: What was run.
        results: What came out.
        jobs: Processors to use; 0: all. Results do not depend on it.
    """
    seeds = sorted({row.seed for row in results.rows})
    again = replace(part, policies=DYNAMIC, condition=PREDICTED).run(jobs, range(seeds[0], seeds[-1] + 1))
    kept = tuple(row for row in results.rows if row.policy not in DYNAMIC)
    return Results(kept + again.rows)


def under_conditions(results: Results, again: Results, jobs: int, repeats: int) -> dict[str, Results]:
    """Results of Figure 2 by the name of the condition under which it was run.

    Args:
        results: As judged.
        again: With predicted speed-ups.
        jobs: Processors to use; 0: all. Results do not depend on it.
        repeats: Seeds of what is run anew.
    """
    seeds = range(1, repeats + 1)
    fig2 = PARTS["fig2"]
    changed = {each.name: replace(fig2, condition=each).run(jobs, seeds) for each in CHANGED}
    variants = {each.name: _instead(results, each, jobs, seeds) for each in VARIANTS}
    as_judged, predicted = (
        Results(tuple(row for row in each.rows if row.seed in seeds)) for each in (results, again)
    )
    return {AS_JUDGED.name: as_judged, **changed, PREDICTED.name: predicted, **variants}


def _instead(results: Results, condition: Condition, jobs: int, seeds: range) -> Results:
    """Results of Figure 2 with what a condition has run in the place of policies."""
    names = {str(run): name for name, run in condition.policies.items()}
    found = replace(PARTS["fig2"], policies=tuple(names)).run(jobs, seeds)
    known = [row for row in results.rows if row.policy not in names.values() and row.seed in seeds]
    return Results((*known, *(replace(row, policy=names[row.policy]) for row in found.rows)))


def model_errors(results: Results, machine: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Greatest relative errors of a slowdown and of ASP, simulated against modelled, by (mix, policy)."""
    errors = {}
    for mix in TABLE_1:
        predictions = {each.policy: each for each in predict_all(table_1(mix), list(MODEL_POLICIES))}
        for model, policy in MODEL_POLICIES.items():
            rows = results.of(mix, policy, machine)
            predicted = predictions[model]
            worst = max(
                abs(ours / theirs - 1.0)
                for row in rows
                for ours, theirs in zip(row.slowdowns, predicted.slowdowns, strict=True)
            )
            asp = max(abs(row.asp / predicted.asp - 1.0) for row in rows)
            errors[mix, model] = (worst, asp)
    return errors
