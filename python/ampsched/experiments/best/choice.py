"""Chooses the parameter `fairness` of abreast on the training mixes, by a rule that was written down before.

The rule: the least whole number with which unfairness, against `cfs`, is at most that of every other shipped policy.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from ampsched import api, policies
from ampsched.comparison import Comparison, SummaryRow
from ampsched.experiments.best.mixes import MACHINES, mixes

BASELINE = "cfs"
POLICY = "abreast"
CANDIDATES = range(9)


@dataclass(frozen=True, slots=True)
class Changes:
    """A policy against the baseline: geometric means over cases of ratios; -0.1 is 10 % less."""

    h_antt: float
    h_stp: float
    makespan: float
    unfairness: float


MEASURES: dict[str, Callable[[SummaryRow], float]] = {
    "h_antt": lambda row: row.h_antt.mean,
    "h_stp": lambda row: row.h_stp.mean,
    "makespan": lambda row: row.makespan_ms.mean,
    "unfairness": lambda row: row.unfairness,
}


def changes(rows: Sequence[SummaryRow], baseline: str = BASELINE) -> dict[str, Changes]:
    """The changes of all policies but the baseline, from the rows of the same cases."""
    base = {(row.machine, row.workload): row for row in rows if row.policy == baseline}

    def ratio(policy: str, measure: Callable[[SummaryRow], float]) -> float:
        own = [row for row in rows if row.policy == policy]
        return geometric_mean(measure(row) / measure(base[row.machine, row.workload]) for row in own) - 1

    names = dict.fromkeys(row.policy for row in rows if row.policy != baseline)
    return {name: Changes(**{key: ratio(name, each) for key, each in MEASURES.items()}) for name in names}


def others() -> list[str]:
    """All shipped policies but abreast, the baseline first."""
    names = [info.name for info in policies() if info.name not in (POLICY, BASELINE)]
    return [BASELINE, *names]


def candidate(fairness: int) -> str:
    """The policy with a value of the parameter."""
    return f"{POLICY}:fairness={fairness}"


def measure(jobs: int) -> dict[str, Changes]:
    """All policies and all candidates on the training mixes."""
    names = others() + [candidate(value) for value in CANDIDATES]
    comparison: Comparison = api.compare(MACHINES, mixes("train"), names, limits=False, jobs=jobs)
    return changes(comparison.summary())


def chosen(found: dict[str, Changes]) -> int:
    """What the rule says.

    Raises:
        ValueError: If no candidate is fair enough.
    """
    least = min(found[name].unfairness for name in others() if name != BASELINE)
    for value in CANDIDATES:
        if found[candidate(value)].unfairness <= least:
            return value
    raise ValueError(f"no value up to {max(CANDIDATES)} is as fair as the fairest policy, {least:.3f}")
