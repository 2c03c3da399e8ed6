"""Where abreast loses against the best of all other policies for the mix, and whether order is why.

The hypothesis: the winner runs the program that is shortest alone earlier, and the longest later, as the best schedule
of a mix does; it cannot know lengths, so it does so by luck. What it would show: in the winner's run the shortest
program is slowed down less, and the longest more, than under abreast.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from ampsched import api
from ampsched._core import Workload
from ampsched.comparison import Comparison
from ampsched_lab.best.choice import POLICY
from ampsched_lab.best.mixes import mixes
from ampsched_lab.best.rows import Row

SHARE = 0.25
"""Of the mixes, those with the greatest losses are looked at."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A mix."""

    loss: float
    """H_ANTT of abreast / that of the best other policy - 1."""
    machine: str
    workload: str
    other: str
    unfairness: float
    other_unfairness: float


@dataclass(frozen=True, slots=True)
class Order:
    """A mix that abreast loses: slowdowns of its programs under abreast and under the winner."""

    machine: str
    workload: str
    other: str
    shortest: float
    shortest_of_other: float
    longest: float
    longest_of_other: float

    @property
    def is_why(self) -> bool:
        """Whether the winner favours the shortest program over the longest."""
        return self.shortest_of_other < self.shortest and self.longest_of_other > self.longest


def losses(measured: Sequence[Row]) -> list[Loss]:
    """All mixes, the greatest loss first; where nothing is lost it is negative."""
    cases: dict[tuple[str, str], dict[str, Row]] = {}
    for row in measured:
        cases.setdefault((row.machine, row.workload), {})[row.policy] = row
    return sorted((_loss(by) for by in cases.values()), key=lambda each: each.loss, reverse=True)


def _loss(by: dict[str, Row]) -> Loss:
    own = by[POLICY]
    best = min((row for row in by.values() if row.policy != POLICY), key=lambda row: row.h_antt)
    loss = own.h_antt / best.h_antt - 1
    return Loss(loss, own.machine, own.workload, best.policy, own.unfairness, best.unfairness)


def worst(measured: Sequence[Row]) -> list[Loss]:
    """The mixes that are looked at."""
    found = losses(measured)
    return found[: round(SHARE * len(found))]


def orders(measured: Sequence[Row], jobs: int) -> list[Order]:
    """Runs the mixes with the greatest losses again, program by program."""
    fresh = {mix.name: mix for mix in mixes("fresh")}
    return [_order(each, fresh.get(each.workload, each.workload), jobs) for each in worst(measured)]


def _order(loss: Loss, workload: str | Workload, jobs: int) -> Order:
    comparison = api.compare(loss.machine, workload, [POLICY, loss.other], limits=False, jobs=jobs, repeat=1)
    own, other = (_slowdowns(comparison, policy) for policy in (POLICY, loss.other))
    alone = _alone_ns(comparison)
    shortest, longest = min(alone, key=lambda app: alone[app]), max(alone, key=lambda app: alone[app])
    names = loss.machine, loss.workload, loss.other
    return Order(*names, own[shortest], other[shortest], own[longest], other[longest])


def _slowdowns(comparison: Comparison, policy: str) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for row in comparison.apps_to_polars().filter(policy=policy).iter_rows(named=True):
        found.setdefault(row["app"], []).append(row["h_ntt"])
    return {app: fmean(values) for app, values in found.items()}


def _alone_ns(comparison: Comparison) -> dict[str, float]:
    return {row["app"]: row["alone_ns"] for row in comparison.apps_to_polars().iter_rows(named=True)}
