"""COLAB's experiments: what is run for its figures.

Each result is the mean of two runs, big cores first and little cores first (section 5.1), and is repeated
with several seeds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ampsched.api import compare
from ampsched.catalog import Catalog
from ampsched.comparison import Comparison
from ampsched.execution import Progress
from ampsched.policy import PolicyLike
from ampsched_lab.papers.colab.conditions import run_as
from ampsched_lab.papers.colab.setup import (
    MACHINES,
    POLICIES,
    SINGLES,
    STAND_INS,
    TEX,
    TEX_MACHINES,
    VARIANT,
    workloads,
)
from ampsched_lab.shared.conditions import AS_JUDGED, Condition
from ampsched_lab.shared.machines import changed_machine
from ampsched_lab.shared.normalised import Case, Filter, everywhere
from ampsched_lab.shared.progress import shares


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the experiment: what is run together."""

    machines: tuple[str, ...]
    workloads: tuple[str, ...]
    variants: tuple[str, ...] = ()
    """Policies beside `POLICIES`."""

    def policies(self, factors: str) -> tuple[str, ...]:
        """What is run; what stands in for Linux asks for no speed-ups."""
        return (*POLICIES, *self.variants, *(STAND_INS if factors == EXACT else ()))

    def cases(self, where: Filter) -> dict[str, list[str]]:
        """The cases that fit: workloads by machine."""
        return {
            machine: [each for each in self.workloads if where(Case(machine, each))]
            for machine in self.machines
        }

    def run(self, jobs: int, seeds: range, where: Filter, progress: Progress, factors: str) -> Comparison:
        """Runs some cases with some seeds; policies learn speed-ups from `factors`."""
        condition = replace(AS_JUDGED, factors=factors)
        return self._run(condition, self.policies(factors), jobs, seeds, where, progress)

    def run_under(
        self,
        condition: Condition,
        jobs: int,
        seeds: range,
        progress: Progress,
        as_judged: Comparison | None = None,
    ) -> Comparison:
        """Runs all cases with what a condition has run for the policies of claims, but for what was run already.

        Args:
            condition: What is changed.
            jobs: Processors to use; 0: all. Results do not depend on it.
            seeds: Seeds.
            progress: Called with the number of finished simulations and of all.
            as_judged: The results if nothing is changed, if there are some.
        """
        known = as_judged if as_judged and condition.changes_policies_only else Comparison((), ())
        policies = [run_as(condition, policy) for policy in (*POLICIES, *self.variants)]
        missing = [policy for policy in dict.fromkeys(policies) if policy not in known.policies]
        if not missing:
            return known
        found = self._run(condition, missing, jobs, seeds, everywhere, progress)
        return Comparison((*known.policies, *found.policies), known.runs + found.runs)

    def _run(
        self,
        condition: Condition,
        policies: Sequence[PolicyLike],
        jobs: int,
        seeds: range,
        where: Filter,
        progress: Progress,
    ) -> Comparison:
        cases = {machine: names for machine, names in self.cases(where).items() if names}
        steps = shares(progress, {machine: len(names) for machine, names in cases.items()})
        some = [
            compare(
                changed_machine(machine, condition.lines),
                [condition.of(Catalog.shipped().workload(name)) for name in names],
                policies,
                seed=seeds.start,
                repeat=len(seeds),
                factors=condition.factors,
                noise=condition.noise,
                # Only runs as judged are kept with all that is known of them.
                limits=condition == AS_JUDGED,
                jobs=jobs,
                progress=steps[machine],
            )
            for machine, names in cases.items()
        ]
        runs = tuple(run for each in some for run in each.runs)
        return Comparison(tuple(dict.fromkeys(run.policy for run in runs)), runs)

    def simulations(self, seeds: range, where: Filter, factors: str) -> int:
        """Simulations without baselines: for progress."""
        count = sum(map(len, self.cases(where).values()))
        return count * len(self.policies(factors)) * 2 * len(seeds)


EXACT, PREDICTED = SOURCES = ("oracle", "predicted")
"""Where policies learn speed-ups from: exact ones, or those that the shipped model predicts from counters."""

PARTS = {
    "fig4": Part(("2B2S",), SINGLES),
    "fig5": Part(MACHINES, tuple(workloads("sync", "nsync"))),
    "fig6": Part(MACHINES, tuple(workloads("comm", "comp"))),
    "fig7": Part(MACHINES, tuple(workloads("rand"))),
    "tex": Part(TEX_MACHINES, TEX, (VARIANT,)),
}
NEEDS = {
    "fig4": ("fig4",),
    "fig5": ("fig5",),
    "fig6": ("fig6",),
    "fig7": ("fig7",),
    "fig8": ("fig5", "fig6", "fig7"),
    "fig9": ("fig5", "fig6", "fig7"),
    "summary": ("fig5", "fig6", "fig7"),
    "tex": ("tex",),
}
"""What each figure needs to be run. Figures 8 and 9 and the summary group all 26 workloads anew."""

FAMILIES = (("fig4",), ("fig5", "fig6", "fig7", "fig8", "fig9", "summary"), ("tex",))
"""Figures that are made of the same runs, and so of the same seeds."""

Results = dict[str, dict[str, Comparison]]
"""By `SOURCES` and by the name of the part."""


def run(
    figures: Sequence[str],
    jobs: int,
    seeds: range,
    where: Filter = everywhere,
    progress: Progress | None = None,
) -> Results:
    """Runs the parts that figures need.

    Args:
        figures: Keys of `NEEDS`.
        jobs: Processors to use; 0: all. Results do not depend on it.
        seeds: Seeds.
        where: The cases.
        progress: Called with the number of finished simulations and of all.
    """
    names = dict.fromkeys(name for figure in figures for name in NEEDS[figure])
    sizes = {
        (source, name): PARTS[name].simulations(seeds, where, source) for source in SOURCES for name in names
    }
    steps = shares(progress, sizes)
    return {
        source: {name: PARTS[name].run(jobs, seeds, where, steps[source, name], source) for name in names}
        for source in SOURCES
    }


def run_under(
    condition: Condition,
    jobs: int,
    seeds: range,
    progress: Progress | None = None,
    as_judged: Mapping[str, Comparison] | None = None,
) -> dict[str, Comparison]:
    """Runs all parts under a condition; results by the name of the part. See `Part.run_under`."""
    sizes = {name: part.simulations(seeds, everywhere, PREDICTED) for name, part in PARTS.items()}
    steps, known = shares(progress, sizes), as_judged or {}
    return {
        name: part.run_under(condition, jobs, seeds, steps[name], known.get(name))
        for name, part in PARTS.items()
    }


def join(some: Results, more: Results) -> Results:
    """The same parts with the seeds of both."""
    return {
        source: {
            name: replace(each, runs=each.runs + more[source][name].runs) for name, each in parts.items()
        }
        for source, parts in some.items()
    }
