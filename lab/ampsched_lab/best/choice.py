"""Chooses the parameter `fairness` of abreast on the training mixes, by a rule that was written down before.

The rule: the least whole number with which unfairness, against `cfs`, is at most that of every other shipped policy.
"""

from ampsched import policies
from ampsched.sweeps.sweep import sweep
from ampsched_lab.best.mixes import MACHINES, mixes
from ampsched_lab.best.rows import BASELINE, Changes, Row, changes

POLICY = "abreast"
CANDIDATES = range(9)


def others() -> list[str]:
    """All shipped policies but abreast, the baseline first."""
    names = [info.name for info in policies() if info.name not in (POLICY, BASELINE)]
    return [BASELINE, *names]


def candidate(fairness: int) -> str:
    """The policy with a value of the parameter."""
    return f"{POLICY}:fairness={fairness}"


def measure(jobs: int) -> dict[str, Changes]:
    """All policies and all candidates on the training mixes: a sweep."""
    values = f"{POLICY}:fairness={CANDIDATES[0]}..{CANDIDATES[-1]}:{len(CANDIDATES)}"
    found = sweep(MACHINES, mixes("train"), [*others(), values], jobs=jobs)
    metrics = ["h_antt", "h_stp", "makespan_ns", "unfairness"]
    columns = found.summary(metrics).select("machine", "workload", "policy", *metrics)
    return changes([Row("training", *row) for row in columns.iter_rows()])


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
