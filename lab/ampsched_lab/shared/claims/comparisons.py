"""How a measured number compares with the paper's: one row per kind of comparison."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ampsched.statistics import Estimate, exactly
from ampsched_lab.shared.claims.measured import Count, Measured, Name, Number, Pair, Range

Verdict = Literal["reproduced", "direction only", "not reproduced", "not testable here"]

RULE = """\
A number counts as **reproduced** if the paper's value lies within our 95 % confidence interval widened by 3
percentage points (an absolute value: by 3 % of the paper's), if half that interval is no wider than 5 points (5
%), and if the whole interval has the claim's sign, unless the claim is one of no effect. Seeds are added until
the intervals are narrow enough, up to 50. What has the sign for certain, but another size, counts as **direction
only**. So does "up to" without the workload and the machine for which the paper found it: the best of ours may be
another one. A count is reproduced within 3 % of its total and has the direction if it lies on the same side of one
half. An ordering, or being above or below something, is reproduced if the whole interval says so. Nothing is
counted twice: claims of the same number, arithmetic from the paper's own inputs, and checks of ourselves are listed
apart. The rule was fixed before the results that are judged here."""

TOLERANCE = 0.03
"""By which an interval is widened: of 1 for shares and changes, else of the paper's value."""
HALF_WIDTH_MAX = 0.05
"""Of an interval that can reproduce a number, likewise."""

PaperValue = float | tuple[float, float] | str | None


@dataclass(frozen=True, slots=True)
class Published:
    """What the paper says, in the scale of what is measured."""

    value: Any = None
    """As the kind of comparison takes it."""
    is_share: bool = True
    """Whether it is a relative change or a share, whose differences are counted in percentage points."""
    side_of: float | None = None
    """The direction is right if ours is on the paper's side of this."""

    def scale(self, value: float) -> float:
        """Of what the tolerance is a share."""
        return 1.0 if self.is_share else abs(value)

    def is_near(self, ours: Estimate, value: float) -> bool:
        """Whether the paper's value is within our widened interval."""
        tolerance = TOLERANCE * self.scale(value) + ROUNDING
        return ours.low - tolerance <= value <= ours.high + tolerance

    def is_narrow(self, ours: Estimate) -> bool:
        """Whether our interval is narrow enough to say so; a single seed has none."""
        return ours.n != 1 and ours.half_width <= HALF_WIDTH_MAX * self.scale(self.value) + ROUNDING


ROUNDING = 1e-12
"""Of differences that are exact in decimals."""


def judge_change(ours: Number, paper: Published) -> Verdict:
    """A relative change against the paper's."""
    estimate = ours.estimate
    matches = paper.is_near(estimate, paper.value) and paper.is_narrow(estimate)
    if paper.value == 0.0:
        return _whether(matches)
    if not estimate.excludes_zero or ours.mean * paper.value <= 0:
        return "not reproduced"
    return "reproduced" if matches else "direction only"


def judge_up_to(ours: Number, paper: Published) -> Verdict:
    """The greatest of our changes against the paper's, found in another case perhaps: its sign alone."""
    is_certain = ours.estimate.excludes_zero and ours.mean * paper.value > 0
    return "direction only" if is_certain else "not reproduced"


def judge_value(ours: Number, paper: Published) -> Verdict:
    """A number against the paper's."""
    estimate = ours.estimate
    if paper.is_near(estimate, paper.value) and paper.is_narrow(estimate):
        return "reproduced"
    side = paper.side_of
    right = side is not None and (ours.mean - side) * (paper.value - side) > 0
    return "direction only" if right else "not reproduced"


def judge_count(ours: Count, paper: Published) -> Verdict:
    """A share of a total against the paper's."""
    if abs(ours.mean - paper.value) <= TOLERANCE:
        return "reproduced"
    return "direction only" if (ours.mean - 0.5) * (paper.value - 0.5) > 0 else "not reproduced"


def judge_range(ours: Range, paper: Published) -> Verdict:
    """The extremes of some values against the paper's; the direction is right if the ranges overlap."""
    low, high = paper.value
    pairs = ((ours.low, low), (ours.high, high))
    if all(paper.is_near(exactly(mine), theirs) for mine, theirs in pairs):
        return "reproduced"
    return "direction only" if ours.low <= high and low <= ours.high else "not reproduced"


def judge_within(ours: Range, paper: Published) -> Verdict:
    """Whether all values are within a range that the paper states."""
    low, high = paper.value
    return _whether(low <= ours.low and ours.high <= high)


def judge_alike(ours: Range, _paper: Published) -> Verdict:
    """Whether the greatest of some values exceeds the least by no more than the tolerance."""
    return _whether(ours.high <= ours.low * (1.0 + TOLERANCE))


def judge_ordering(ours: Pair, _paper: Published) -> Verdict:
    """Whether one number is below another for certain."""
    return _whether(ours.difference.high < 0)


def judge_below(ours: Number | Count, paper: Published) -> Verdict:
    """Whether a number is below the paper's for certain."""
    return _whether(_highest(ours) < paper.value)


def judge_above(ours: Number | Count, paper: Published) -> Verdict:
    """Whether a number is above the paper's for certain."""
    return _whether(_lowest(ours) > paper.value)


def judge_at_most(ours: Number, paper: Published) -> Verdict:
    """The same, or the same number."""
    return _whether(_highest(ours) <= paper.value)


def judge_at_least(ours: Number, paper: Published) -> Verdict:
    """The same, or the same number."""
    return _whether(_lowest(ours) >= paper.value)


def _lowest(ours: Number | Count) -> float:
    return ours.estimate.low if isinstance(ours, Number) else ours.mean


def _highest(ours: Number | Count) -> float:
    return ours.estimate.high if isinstance(ours, Number) else ours.mean


def judge_name(ours: Name, paper: Published) -> Verdict:
    """Whether what has a property is what the paper names."""
    return _whether(ours.name == paper.value)


def _whether(holds: bool) -> Verdict:
    return "reproduced" if holds else "not reproduced"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A kind of comparison."""

    takes: tuple[type[Measured], ...]
    """What a measurement has to yield for it."""
    paper: Literal["number", "range", "share", "name", "none"]
    """What a claim has to state as the paper's value."""
    judge: Callable[[Any, Published], Verdict]
    published: str = "{}"
    """How the paper's value is printed."""
    unit: str = ""
    """The unit of claims that state none."""
    needs_narrow: bool = False
    """Whether seeds are added as long as our interval is too wide."""


COMPARISONS: dict[str, Comparison] = {
    "change": Comparison((Number,), "number", judge_change, unit="%", needs_narrow=True),
    "up to": Comparison((Number,), "number", judge_up_to, published="up to {}", unit="%", needs_narrow=True),
    "value": Comparison((Number,), "number", judge_value, needs_narrow=True),
    "count": Comparison((Count,), "share", judge_count),
    "range": Comparison((Range,), "range", judge_range),
    "within": Comparison((Range,), "range", judge_within),
    "alike": Comparison((Range,), "none", judge_alike),
    "below": Comparison((Number, Count), "number", judge_below),
    "above": Comparison((Number, Count), "number", judge_above),
    "at most": Comparison((Number,), "number", judge_at_most),
    "at least": Comparison((Number,), "number", judge_at_least),
    "ordering": Comparison((Pair,), "none", judge_ordering, published="first is lower", unit="%"),
    "name": Comparison((Name,), "name", judge_name),
}
"""By the name that claims state as `compare`."""
