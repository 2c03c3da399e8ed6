"""What is measured for the claims of COLAB: changes against other policies over workloads on machines."""

from typing import NewType

from ampsched.experiments.claims.measured import Count, Measurements, Number, Pair, one_of
from ampsched.experiments.colab.runs import NEEDS
from ampsched.experiments.colab.setup import TEX_POLICIES, cases_of
from ampsched.experiments.normalised import Filter, Metric, Normalised
from ampsched.statistics import Estimate

Policy = NewType("Policy", str)
measurement = Measurements({Filter: cases_of, Policy: one_of("policy", TEX_POLICIES)})
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
