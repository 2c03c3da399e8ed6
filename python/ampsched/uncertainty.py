"""How sure an answer is: by chance, as draws that all policies share tell, and by the model's own error.

Chance: every policy meets the same draws, so differences are paired by draw, and Student's interval of their mean is
chance's share. The model: `ModelErrors` are ln(measured / predicted) where predictions were put to the test, so a
prediction times their exponentials is what would have been measured. More draws shrink the first, never the second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ampsched.ranges import Range
from ampsched.statistics import LEVEL, Estimate, estimate

MARGIN = 0.01
"""By how much more a policy may have and still count as no worse than the best one, unless somebody says otherwise."""
MARGIN_RANGE = Range(0, 1)
COVERED = 0.9
"""Share of measured values that a band of the model's error shall hold."""
PROBABLE = 0.75
"""Share of measured errors that leave a difference its sign from which on it is probable."""
NAMED_MOST = 8
"""So many of those that are no worse are named."""

WIDE = 0.25
"""From this half-width of chance on nothing is near: a difference of less than a quarter could not be seen."""
NO_BASIS = "no basis of advice"
"""How an answer begins that cannot be relied on."""
UNMEASURED = "how far the model is off {} was not measured"
"""What is said of the model's own error where predictions of a kind were never put to the test."""

Word = Literal["better", "probably better", "better in simulation", "not known", "first"]


@dataclass(frozen=True, slots=True)
class ModelErrors:
    """Errors of predictions of one kind, ln(measured / predicted) each."""

    values: tuple[float, ...]

    def band(self, change: float) -> tuple[float, float]:
        """What would be measured if a change is predicted, with `COVERED`; -0.1 is 10 % less.

        The ends are those of split conformal prediction: of n errors those whose ranks leave (n + 1) (1 - COVERED) / 2
        on either side, at most the outermost ones.
        """
        ordered, n = sorted(self.values), len(self.values)
        outside = max(1, math.floor((n + 1) * (1 - COVERED) / 2))
        low, high = ordered[outside - 1], ordered[n - outside]
        return (1 + change) * math.exp(low) - 1, (1 + change) * math.exp(high) - 1

    def agreeing(self, change: float) -> int:
        """How many of the errors leave a change its sign."""
        log = math.log1p(change)
        return sum((log + error < 0) == (log < 0) for error in self.values)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What may be said of the best of several policies against the first one.

    Attributes:
        word: ``better`` if chance and the model's error leave no doubt, ``probably better`` if chance leaves none and
            the model would be wrong about it in less than a quarter of its checks; ``better in simulation`` if chance
            leaves none and the model's error was not measured; ``first`` if the first one is the best; else ``not
            known``, also if the first is no worse by the margin.
        best: The best policy.
        first: What it is compared with.
        values: Mean of the best one and of the first one.
        change: Of the best against the first, paired by draw: -0.1 is 10 % less.
        band: The change with the model's own error; none if that was not measured.
        agreeing: In how many of so many checks the model's error would leave the change its sign.
        alike: Policies that are no worse than the best one by more than the margin, paired by draw; the best first.
        margin: That margin.
        of_shares: Whether values are shares, whose differences are told.
    """

    word: Word
    best: str
    first: str
    values: tuple[float, float]
    change: Estimate
    band: tuple[float, float] | None
    agreeing: tuple[int, int] | None
    alike: tuple[str, ...]
    margin: float
    of_shares: bool = False

    @property
    def is_worth_it(self) -> bool:
        """Whether to run another policy than the first."""
        return self.word not in ("not known", "first")

    @property
    def is_wide(self) -> bool:
        """Whether chance moves the change so far that nothing is near."""
        return self.change.n > 1 and self.change.half_width >= WIDE


def judge(
    draws: Mapping[str, Sequence[float]],
    errors: ModelErrors | Callable[[str], ModelErrors | None] | None = None,
    *,
    more_is_better: bool = False,
    of_shares: bool = False,
    margin: float = MARGIN,
    effort: Callable[[str], int] = lambda _: 0,
) -> Verdict:
    """What may be said of the best of several policies.

    Args:
        draws: What is compared, of each policy: a value above 0 for each draw, in the same order; the first policy is
            what others are measured against.
        errors: The model's own, of such changes; or what tells them of each.
        more_is_better: Whether more is better.
        of_shares: Whether values are shares, 0 to 1, whose differences are told, and not their ratios.
        margin: By how much worse than the best others may be and still count as no worse.
        effort: Of those that are no worse than the one with the best mean, the first with the least is called the best.
    """
    compared = difference if of_shares else paired
    first = next(iter(draws))
    sign = -1.0 if more_is_better else 1.0
    means = {policy: math.fsum(values) / len(values) for policy, values in draws.items()}
    best = min(draws, key=lambda policy: sign * means[policy])
    against = {policy: compared(values, draws[best]) for policy, values in draws.items() if policy != best}
    found = [policy for policy, each in against.items() if _worst(each, sign) <= margin]
    alike = [best, *sorted(found, key=lambda policy: sign * means[policy])]
    is_first_alike = first in alike and first != best
    best = best if is_first_alike else min(alike, key=effort)
    near = [policy for policy in alike if policy != best]
    change = compared(draws[best], draws[first])
    errors = errors(best) if callable(errors) else errors
    checked = None if errors is None else (errors.agreeing(change.mean), len(errors.values))
    band = None if errors is None else errors.band(change.mean)
    return Verdict(
        _word(change, band, checked, sign, is_first=best == first, is_alike=is_first_alike),
        best,
        first,
        (means[best], means[first]),
        change,
        band,
        checked,
        (best, *near),
        margin,
        of_shares,
    )


def paired(mine: Sequence[float], others: Sequence[float], level: float = LEVEL) -> Estimate:
    """Relative difference of values that met the same draws: -0.1 is 10 % less; 0 against nothing.

    Args:
        mine: The values.
        others: What they are compared with.
        level: Of the interval.
    """
    changes = [value / other - 1 if other else 0.0 for value, other in zip(mine, others, strict=True)]
    return estimate(changes, level)


def difference(mine: Sequence[float], others: Sequence[float]) -> Estimate:
    """Difference of shares that met the same draws: -0.1 is 10 points less."""
    return estimate([value - other for value, other in zip(mine, others, strict=True)])


def sentences(
    verdict: Verdict,
    name: str,
    machine: str,
    what: str,
    text: Callable[[float], str],
    against: Sequence[str] = (),
) -> list[str]:
    """A verdict in lines: the answer; by how much, and chance; the model's own error; which policies are no worse.

    Of what is no basis of advice there is none, but why.

    Args:
        verdict: The verdict.
        name: The workload.
        machine: The machine.
        what: What was compared.
        text: Makes a text of its value.
        against: Why it is no basis of advice, a reason each.
    """
    if against:
        return [no_basis(against)]
    where, first, (value, reference) = f"Simulated on {machine}", verdict.first, verdict.values
    if verdict.word == "first":
        told = [
            f"{where}: stay with {first} for {name}: no policy can be shown to be better",
            f"{what} {text(value)}",
        ]
    else:
        answer = f"{verdict.best} is {verdict.word} for {name} than {first}"
        if not verdict.is_worth_it:
            nearest = f"({verdict.word}); {verdict.best} comes closest"
            if verdict.is_wide:
                nearest = f"(chance alone moves it by {100 * verdict.change.half_width:.0f} {_unit(verdict)})"
            answer = f"for {name} no difference from {first} can be shown {nearest}"
        by = f"{what} {text(value)} instead of {text(reference)}: {_change(verdict)}"
        told = [f"{where}: {answer}", by, _of_model(verdict)]
    others = [policy for policy in verdict.alike if policy != verdict.best]
    within = f"no worse within {100 * verdict.margin:.3g} {_unit(verdict)}"
    more = [f"{len(others) - NAMED_MOST} more"] if len(others) > NAMED_MOST else []
    return [*told, *([f"{within}: {', '.join([*others[:NAMED_MOST], *more])}"] if others else [])]


def no_basis(doubts: Sequence[str]) -> str:
    """What is said instead of a verdict on recordings that allow none.

    Args:
        doubts: Why, a reason each.
    """
    return f"{NO_BASIS}: {'; '.join(doubts)}; what follows was simulated all the same"


def _unit(verdict: Verdict) -> str:
    return "points" if verdict.of_shares else "%"


def _change(verdict: Verdict) -> str:
    change = verdict.change
    chance = (
        f"by chance ±{100 * change.half_width:.1f}" if change.n > 1 else "chance is not known of one draw"
    )
    return f"{100 * change.mean:+.1f} {_unit(verdict)}, {chance}"


def _of_model(verdict: Verdict) -> str:
    if verdict.band is None or verdict.agreeing is None:
        return UNMEASURED.format("here")
    low, high = (f"{100 * end:+.0f}" for end in verdict.band)
    agree, checks = verdict.agreeing
    return f"with the model's own error {low} to {high} %; {agree} of {checks} checks agree"


def _worst(change: Estimate, sign: float) -> float:
    """By how much worse it may be by chance; a single draw tells nothing but itself."""
    return change.high if sign > 0 else -change.low


def _word(
    change: Estimate,
    band: tuple[float, float] | None,
    checked: tuple[int, int] | None,
    sign: float,
    *,
    is_first: bool,
    is_alike: bool,
) -> Word:
    if is_first:
        return "first"
    if change.n < 2 or is_alike or _worst(change, sign) >= 0:
        return "not known"
    if band is None or checked is None:
        return "better in simulation"
    if band[1] < 0 if sign > 0 else band[0] > 0:
        return "better"
    return "probably better" if checked[0] >= PROBABLE * checked[1] else "not known"
