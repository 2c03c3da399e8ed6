"""What is measured for the claims of Prop-SP: of the model (section 2), and of simulations (section 4)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NewType

from ampsched.analytic import POLICIES as MODELLED
from ampsched.analytic import TABLE_1, Prediction, predict_all, table_1
from ampsched.metrics import geometric_mean
from ampsched.statistics import exactly
from ampsched_lab.papers.prop_sp.figures import figure_1
from ampsched_lab.papers.prop_sp.runs import Results, model_errors
from ampsched_lab.papers.prop_sp.setup import IDEAL, MIXES, MULTITHREADED, POLICIES, SINGLE_THREADED
from ampsched_lab.shared.claims.measured import (
    Count,
    Measurements,
    Name,
    Number,
    Pair,
    Range,
    one_of,
    some_of,
)

EQUAL = 1e-9
"""Far above rounding errors of the model, far below what its tables print."""
ALL = tuple(MIXES)


@dataclass(frozen=True, slots=True)
class Model:
    """What the model says of Table 1, by workload and policy, and its simulation."""

    predictions: dict[tuple[str, str], Prediction]
    simulated: Results

    @classmethod
    def with_simulation(cls, simulated: Results) -> "Model":
        """The model's predictions for Table 1, beside their simulation."""
        return cls(
            {(name, each.policy): each for name in TABLE_1 for each in predict_all(table_1(name))}, simulated
        )

    def faster(self, policy: str, other: str) -> set[str]:
        """The workloads for which a policy has a higher ASP than another; equal is not higher."""
        return {name for name in TABLE_1 if self.ratio(name, policy, other) > 1.0 + EQUAL}

    def fairer(self, policy: str, other: str) -> set[str]:
        """The workloads for which a policy has a lower unfairness than another; equal is not lower."""
        of = self.predictions
        return {
            name
            for name in TABLE_1
            if of[name, policy].unfairness < of[name, other].unfairness * (1.0 - EQUAL)
        }

    def ratio(self, workload: str, policy: str, other: str) -> float:
        """ASP / ASP under another policy."""
        return self.predictions[workload, policy].asp / self.predictions[workload, other].asp

    def worst(self, policy: str, against: str) -> str:
        """The workload with the smallest ratio of ASP."""
        return min(TABLE_1, key=lambda name: self.ratio(name, policy, against))


ModelPolicy = NewType("ModelPolicy", str)
"""A policy of the analytical model."""
Policy = NewType("Policy", str)
"""A policy of the simulator."""
Policies = tuple[Policy, ...]
Mixes = NewType("Mixes", tuple[str, ...])
GROUPS = {"all": ALL, "single-thread": SINGLE_THREADED, "multi-thread": MULTITHREADED}


def _mixes(text: str) -> tuple[str, ...]:
    return GROUPS[text] if text in GROUPS else (one_of("mix", (*GROUPS, *ALL))(text),)


of_model = Measurements({ModelPolicy: one_of("policy of the model", tuple(MODELLED))})
of_mixes = Measurements(
    {Policy: one_of("policy", POLICIES), Policies: some_of("policy", POLICIES), Mixes: _mixes}
)
MEASUREMENTS = {"fig1": of_model, "fig2": of_mixes}
"""By part of the experiment."""


@of_model
def highest_asp(model: Model, *, policy: ModelPolicy) -> Count:
    """For how many workloads no other policy has a higher ASP."""
    beaten = set[str]().union(*(model.faster(other, policy) for other in MODELLED if other != policy))
    return _of_table_1(set(TABLE_1) - beaten)


@of_model
def least_fair(model: Model, *, policy: ModelPolicy) -> Count:
    """For how many workloads every other policy is fairer."""
    others = (model.fairer(other, policy) for other in MODELLED if other != policy)
    return _of_table_1(set(TABLE_1).intersection(*others))


@of_model
def higher_asp(model: Model, *, policy: ModelPolicy, than: ModelPolicy) -> Count:
    """For how many workloads a policy has a higher ASP than another."""
    return _of_table_1(model.faster(policy, than))


@of_model
def less_unfair(model: Model, *, policy: ModelPolicy, than: ModelPolicy) -> Count:
    """For how many workloads a policy is fairer than another."""
    return _of_table_1(model.fairer(policy, than))


@of_model
def greatest_loss(model: Model, *, policy: ModelPolicy, against: ModelPolicy) -> Number:
    """The change of ASP for the workload that loses most."""
    name = model.worst(policy, against)
    return Number(exactly(model.ratio(name, policy, against) - 1.0), of=name)


@of_model
def loses_most(model: Model, *, policy: ModelPolicy, against: ModelPolicy) -> Name:
    """The workload that loses most ASP."""
    return Name(model.worst(policy, against))


@of_model
def mean_loss(model: Model, *, policy: ModelPolicy, against: ModelPolicy) -> Number:
    """The change of ASP, geometric mean of the ratios."""
    return Number(exactly(geometric_mean([model.ratio(name, policy, against) for name in TABLE_1]) - 1.0))


@of_model
def normalised_unfairness(_model: Model, *, policy: ModelPolicy) -> Range:
    """Unfairness of all workloads as Figure 1 shows it."""
    points = figure_1(policies=[policy]).points
    return Range.of([point.unfairness_normalised for point in points], digits=".1f")


@of_model
def simulation_error(model: Model, *, policy: ModelPolicy) -> Number:
    """The greatest error of a slowdown or of ASP, simulated without costs, against the model."""
    errors = model_errors(model.simulated, IDEAL)
    worst = max(max(both) for (_, modelled), both in errors.items() if modelled == policy)
    return Number(worst, text=f"at most {100 * worst:.2f} %")


def _of_table_1(workloads: set[str]) -> Count:
    return Count(len(workloads), len(TABLE_1))


@of_mixes
def some_has_highest_asp(results: Results, *, policies: Policies) -> Count:
    """For how many mixes none of the other policies has a higher ASP than the best of some."""
    return _of_table_3(
        _best(results, mix, policies) >= _best(results, mix, _others(policies)) * (1.0 - EQUAL) for mix in ALL
    )


def _best(results: Results, mix: str, policies: Sequence[str]) -> float:
    return max(results.asp(mix, policy).mean for policy in policies)


@of_mixes
def all_less_fair(results: Results, *, policies: Policies) -> Count:
    """For how many mixes some policies are less fair than all others."""
    return _of_table_3(
        min(_unfairness(results, mix, policies)) > max(_unfairness(results, mix, _others(policies)))
        for mix in ALL
    )


@of_mixes
def fairer(results: Results, *, policy: Policy, than: Policies) -> Count:
    """For how many mixes a policy is fairer than all of some others."""
    return _of_table_3(
        results.unfairness(mix, policy).mean < min(_unfairness(results, mix, than)) for mix in ALL
    )


def _unfairness(results: Results, mix: str, policies: Sequence[str]) -> list[float]:
    return [results.unfairness(mix, policy).mean for policy in policies]


def _others(policies: Sequence[str]) -> list[str]:
    return [policy for policy in POLICIES if policy not in policies]


def _of_table_3(holds: Iterable[bool]) -> Count:
    return Count(sum(holds), len(ALL))


@of_mixes
def asp_changes(results: Results, *, policy: Policy, against: Policy, mixes: Mixes, than: Mixes) -> Pair:
    """The changes of mean ASP for some mixes and for others."""
    return Pair.of(results.asp_changes(mixes, policy, against), results.asp_changes(than, policy, against))


@of_mixes
def asp_change(results: Results, *, policy: Policy, against: Policy, mixes: Mixes) -> Number:
    """The change of mean ASP."""
    return Number(results.asp_change(mixes, policy, against))


@of_mixes
def unfairness_change(results: Results, *, policy: Policy, against: Policy, mixes: Mixes) -> Number:
    """The change of mean unfairness."""
    return Number(results.unfairness_change(mixes, policy, against))
