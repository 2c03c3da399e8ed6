"""Results relative to a reference policy: the averages and best cases that papers quote."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Literal

from ampsched.comparison import Comparison, h_antt, h_stp, per_seed
from ampsched.statistics import Estimate, estimate

Metric = Literal["h_antt", "h_stp"]
METRICS = {"h_antt": h_antt, "h_stp": h_stp}
LINUX = "linux"
"""The name of whatever policy stands for the paper's Linux."""


@dataclass(frozen=True, slots=True, order=True)
class Case:
    """A workload on a machine."""

    machine: str
    workload: str

    def __str__(self) -> str:
        return f"{self.workload} on {self.machine}"


Filter = Callable[[Case], bool]


def everywhere(_case: Case) -> bool:
    """Fits every case."""
    return True


class Normalised:
    """Values per case, policy and seed, averaged over core orders, and their changes against another policy.

    Cases may have been run with more seeds than others; what is said of several is said of the seeds that all have.

    Averages over cases are geometric means of ratios, as ratios call for; a change of -0.1 is 10 % less.
    """

    def __init__(
        self, comparison: Comparison, linux: str = "", others: Mapping[str, str] | None = None
    ) -> None:
        """Averages the results of a comparison.

        Args:
            comparison: What was run.
            linux: The policy that is asked for by the name `LINUX`.
            others: Other policies by the names by which they are asked for.
        """
        self._names = {**(others or {}), LINUX: linux}
        self._values = {
            (Case(machine, workload), policy, metric): per_seed(runs, function)
            for (machine, workload, policy), runs in comparison.by_case().items()
            for metric, function in METRICS.items()
        }
        self.cases = [Case(*mix) for mix in comparison.mixes()]

    def select(self, where: Filter) -> list[Case]:
        """The cases that fit.

        Raises:
            LookupError: If none does (the experiment was run in part).
        """
        cases = [case for case in self.cases if where(case)]
        if not cases:
            raise LookupError("no case fits")
        return cases

    def values(self, case: Case, policy: str, metric: Metric) -> list[float]:
        """The value of each seed.

        Raises:
            LookupError: If it was not run.
        """
        return self._values[case, self._names.get(policy, policy), metric]

    def _ratios(self, case: Case, policy: str, reference: str, metric: Metric) -> list[float]:
        mine, theirs = self.values(case, policy, metric), self.values(case, reference, metric)
        return [a / b for a, b in zip(mine, theirs, strict=True)]

    def level(self, where: Filter, policy: str, metric: Metric) -> Estimate:
        """Geometric mean of a metric over cases."""
        return self._over_seeds(self.values(case, policy, metric) for case in self.select(where))

    def change(self, where: Filter, policy: str, reference: str, metric: Metric) -> Estimate:
        """Mean change over cases, with its interval over seeds."""
        return estimate(self.changes(where, policy, reference, metric))

    def changes(self, where: Filter, policy: str, reference: str, metric: Metric) -> list[float]:
        """The mean change over cases with each seed."""
        per_case = [self._ratios(case, policy, reference, metric) for case in self.select(where)]
        return [geometric_mean(ratios) - 1 for ratios in zip(*per_case, strict=False)]

    def best(self, where: Filter, policy: str, reference: str, metric: Metric) -> tuple[Estimate, Case]:
        """The case with the greatest gain: least H_ANTT or greatest H_STP."""
        sign = 1 if metric == "h_antt" else -1
        changes = [(self.change(_only(case), policy, reference, metric), case) for case in self.select(where)]
        return min(changes, key=lambda pair: (sign * pair[0].mean, pair[1]))

    def worst(self, where: Filter, policy: str, reference: str, metric: Metric) -> tuple[Estimate, Case]:
        """The case with the greatest loss."""
        sign = 1 if metric == "h_antt" else -1
        changes = [(self.change(_only(case), policy, reference, metric), case) for case in self.select(where)]
        return max(changes, key=lambda pair: (sign * pair[0].mean, pair[1]))

    def wins(self, where: Filter, policy: str, reference: str) -> tuple[int, int]:
        """In how many cases a policy has the lower mean H_ANTT, and of how many."""
        cases = self.select(where)
        better = [case for case in cases if self.change(_only(case), policy, reference, "h_antt").mean < 0]
        return len(better), len(cases)

    @staticmethod
    def _over_seeds(per_case: Iterable[list[float]]) -> Estimate:
        by_seed = zip(*per_case, strict=False)
        return estimate([geometric_mean(values) for values in by_seed])


def _only(case: Case) -> Filter:
    return lambda other: other == case
