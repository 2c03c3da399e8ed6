"""What is measured for the claims of COLAB: changes against other policies over workloads on machines."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NewType

from ampsched.execution import Run
from ampsched.experiments.claims.measured import Count, Measurements, Number, Pair, one_of
from ampsched.experiments.colab.runs import NEEDS
from ampsched.experiments.colab.setup import BASELINE, NAMES, cases_of
from ampsched.experiments.normalised import Filter, Metric, Normalised
from ampsched.experiments.registry import RULES
from ampsched.statistics import Estimate

Policy = NewType("Policy", str)
measurement = Measurements({Filter: cases_of, Policy: one_of("policy", NAMES)})
MEASUREMENTS = dict.fromkeys(NEEDS, measurement)
"""By part of the experiment; all parts have the same kind of results."""


@measurement
def change(
    data: Normalised, *, policy: Policy, against: Policy, cases: Filter, metric: Metric = "h_antt"
) -> Number:
    """The mean change."""
    return Number(data.change(cases, policy, against, metric))


@measurement
def best_change(
    data: Normalised, *, policy: Policy, against: Policy, cases: Filter, metric: Metric = "h_antt"
) -> Number:
    """The change in the case that gains most: "up to"."""
    value, case = data.best(cases, policy, against, metric)
    return Number(value, of=str(case))


@measurement
def worst_change(
    data: Normalised, *, policy: Policy, against: Policy, cases: Filter, metric: Metric = "h_antt"
) -> Number:
    """The change in the case that loses most."""
    value, case = data.worst(cases, policy, against, metric)
    return Number(value, of=str(case))


@measurement
def wins(data: Normalised, *, policy: Policy, against: Policy, cases: Filter) -> Count:
    """In how many cases a policy has the lower mean H_ANTT."""
    return Count(*data.wins(cases, policy, against))


@measurement
def slowdown(data: Normalised, *, policy: Policy, cases: Filter) -> Number:
    """How much longer than alone on only big cores."""
    level = data.level(cases, policy, "h_antt")
    return Number(Estimate(level.mean - 1, level.low - 1, level.high - 1, level.n))


@measurement
def changes(data: Normalised, *, policy: Policy, against: Policy, cases: Filter, than: Filter) -> Pair:
    """The mean changes of H_ANTT in some cases and in others."""
    first, second = (data.change(where, policy, against, "h_antt") for where in (cases, than))
    return Pair(first, second)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the causes of misses say of all runs: shares of programs with several threads."""

    split_linux: float
    """Some of whose threads are mostly on big cores, others mostly on little ones: under Linux."""
    split_rules: float
    """The same with rules in Linux's place."""
    big_linux: float
    """All of whose threads are mostly on big cores: under Linux."""
    big_rules: float
    """The same with rules in Linux's place."""

    @classmethod
    def of(cls, runs: Sequence[Run]) -> "Facts":
        """What runs say."""
        linux, rules = (
            list(_on_big(run for run in runs if run.policy == policy)) for policy in (BASELINE.policy, RULES)
        )
        return cls(
            split_linux=fmean(any(each) and not all(each) for each in linux),
            split_rules=fmean(any(each) and not all(each) for each in rules),
            big_linux=fmean(map(all, linux)),
            big_rules=fmean(map(all, rules)),
        )


def _on_big(runs: Iterable[Run]) -> Iterable[list[bool]]:
    """Which threads of each program with several were mostly on big cores."""
    for run in runs:
        for app in range(len(run.outcome.apps)):
            threads = [thread for thread in run.outcome.threads if thread.app == app]
            if len(threads) > 1:
                yield [thread.big_ns > thread.little_ns for thread in threads]
