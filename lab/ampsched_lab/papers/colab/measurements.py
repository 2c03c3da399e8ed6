"""What is measured for the claims of COLAB: changes against other policies over workloads on machines."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NewType

from ampsched.execution import Run
from ampsched.statistics import Estimate
from ampsched_lab.papers.colab.conditions import (
    AGAINST_RULES,
    BLIND_LINUX,
    CONDITIONS,
    LITTLE_MHZ,
    NEXT_LINUX,
    NO_PULL,
    ONE_DOMAIN,
    ONLY_PULL,
)
from ampsched_lab.papers.colab.runs import NEEDS
from ampsched_lab.papers.colab.setup import BASELINE, NAMES, cases_of
from ampsched_lab.papers.registry import RULES
from ampsched_lab.shared.claims.judging import Check, Claim
from ampsched_lab.shared.claims.measured import Count, Measurements, Number, Pair, Range, one_of
from ampsched_lab.shared.conditions import AS_JUDGED, BUSY, Condition
from ampsched_lab.shared.normalised import LINUX, Filter, Metric, Normalised

Policy = NewType("Policy", str)
Filters = tuple[Filter, ...]


def _each_cases(text: str) -> Filters:
    return tuple(map(cases_of, text.split("; ")))


measurement = Measurements({Filter: cases_of, Filters: _each_cases, Policy: one_of("policy", NAMES)})
MEASUREMENTS = dict.fromkeys(NEEDS, measurement)
"""By part of the experiment; all parts have the same kind of results."""


def cases_of_claims(claims: Sequence[Claim]) -> Filter:
    """The cases that some claims need."""
    arguments = [claim.check.measurement.arguments for claim in claims if isinstance(claim.check, Check)]
    filters = [of[name] for of in arguments for name in ("cases", "than") if name in of]
    return lambda case: any(fits(case) for fits in filters if callable(fits))


@measurement
def change(
    data: Normalised, *, policy: Policy, against: Policy, cases: Filter, metric: Metric = "h_antt"
) -> Number:
    """The mean change."""
    return Number(data.change(cases, policy, against, metric))


@measurement
def change_by(
    data: Normalised, *, policy: Policy, against: Policy, cases: Filters, metric: Metric = "h_antt"
) -> Range:
    """The mean changes in several groups of cases."""
    return Range.of([data.change(each, policy, against, metric).mean for each in cases])


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
    first, second = (data.changes(where, policy, against, "h_antt") for where in (cases, than))
    return Pair.of(first, second)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the causes of misses say of all runs."""

    split_linux: float
    """The share of programs with several threads of which some are mostly on big cores, others on little ones."""
    split_rules: float
    """The same with rules in Linux's place."""
    big_linux: float
    """All of whose threads are mostly on big cores: under Linux."""
    big_rules: float
    """The same with rules in Linux's place."""
    same_big: float
    """The share of COLAB's time on big cores that the same threads have under WASH."""

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
            same_big=_common_share(runs, "colab", "wash"),
        )


def _on_big(runs: Iterable[Run]) -> Iterable[list[bool]]:
    """Which threads of each program with several were mostly on big cores."""
    for run in runs:
        for app in range(len(run.outcome.apps)):
            threads = [thread for thread in run.outcome.threads if thread.app == app]
            if len(threads) > 1:
                yield [thread.big_ns > thread.little_ns for thread in threads]


def _common_share(runs: Sequence[Run], policy: str, other: str) -> float:
    """The mean share of a policy's time on big cores that the same threads have under another one."""
    found: dict[tuple[object, ...], dict[str, list[int]]] = {}
    for run in runs:
        if run.policy in (policy, other):
            key = (run.machine, run.workload, run.core_order, run.seed)
            found.setdefault(key, {})[run.policy] = [thread.big_ns for thread in run.outcome.threads]
    pairs = [(each[policy], each[other]) for each in found.values() if len(each) == 2]
    return fmean(sum(map(min, ours, theirs)) / sum(ours) for ours, theirs in pairs)


@dataclass(frozen=True, slots=True)
class Tested:
    """What causes say of conditions: mean changes of COLAB against Linux over the 26 workloads, else as named."""

    as_judged: float
    busy: float
    one_domain: float
    next_linux: float
    blind_linux: float
    no_pull: float
    only_pull: float
    against_rules: float
    single: float
    """Over the single programs."""
    single_no_pull: float
    single_only_pull: float
    many_on_2b2s: float
    """Over those with many threads, on the smallest machine."""
    ferret_best: float
    """The least slowdown of ferret under any policy and condition on the same cores, against four big ones."""

    @classmethod
    def of(cls, mixes: Mapping[str, Normalised], single: Mapping[str, Normalised]) -> "Tested":
        """What results say, by the name of the condition."""

        def change(condition: Condition, cases: str = "all") -> float:
            return mixes[condition.name].change(cases_of(cases), "colab", LINUX, "h_antt").mean

        def alone(condition: Condition) -> float:
            return single[condition.name].change(cases_of("single"), "colab", LINUX, "h_antt").mean

        ferret = [
            single[condition.name].level(cases_of("single-ferret"), policy, "h_antt").mean
            for condition in CONDITIONS
            if LITTLE_MHZ not in condition.lines
            for policy in (LINUX, "wash", "colab")
        ]
        return cls(
            as_judged=change(AS_JUDGED),
            busy=change(BUSY),
            one_domain=change(ONE_DOMAIN),
            next_linux=change(NEXT_LINUX),
            blind_linux=change(BLIND_LINUX),
            no_pull=change(NO_PULL),
            only_pull=change(ONLY_PULL),
            against_rules=change(AGAINST_RULES),
            single=alone(AS_JUDGED),
            single_no_pull=alone(NO_PULL),
            single_only_pull=alone(ONLY_PULL),
            many_on_2b2s=change(AS_JUDGED, "many threads on 2B2S"),
            ferret_best=min(ferret) - 1,
        )
