"""How a measured number compares with the paper's: one row per kind of comparison."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ampsched.experiments.claims.measured import Count, Measured, Name, Number, Pair, Range
from ampsched.statistics import Estimate

Verdict = Literal["reproduced", "direction only", "not reproduced", "not testable here"]

RULE = """\
A number counts as **reproduced** if ours has the claim's sign and the paper's value lies within our 95 %
confidence interval widened by the tolerance: 3 percentage points or a quarter of the paper's value,
whichever is more, unless the claim states a range. It counts as **direction only** if it has the sign and
its interval excludes 0. A claim of no effect is reproduced if ours is within 3 percentage points of 0. A
count is reproduced within a tenth of its total and has the direction if it lies on the same side of one
half. An ordering is reproduced if it holds for the means. The rule was fixed before the experiment was
run."""

TOLERANCE = 0.03
TOLERANCE_SHARE = 0.25
COUNT_TOLERANCE = 0.1

PaperValue = float | tuple[float, float] | str | None


@dataclass(frozen=True, slots=True)
class Published:
    """What the paper says, in the scale of what is measured."""

    value: Any = None
    """As the kind of comparison takes it."""
    tolerance: float | None = None
    """How far ours may be from it."""
    tolerance_share: float | None = None
    """The same as a share of the paper's value."""
    side_of: float | None = None
    """The direction is right if ours is on the paper's side of this."""

    @property
    def either_tolerance(self) -> float:
        """How far ours may be from the paper's number."""
        if self.tolerance is not None:
            return self.tolerance
        assert self.tolerance_share is not None, "claims are checked when they are read"
        return self.tolerance_share * abs(float(self.value))


def judge_change(ours: Number, paper: Published) -> Verdict:
    """A relative change against the paper's."""
    tolerance = paper.tolerance
    if tolerance is None:
        tolerance = max(TOLERANCE, TOLERANCE_SHARE * abs(paper.value))
    if paper.value == 0.0:
        return _whether(abs(ours.mean) <= tolerance)
    if ours.mean * paper.value <= 0:
        return "not reproduced"
    interval = (
        ours.value if isinstance(ours.value, Estimate) else Estimate(ours.mean, ours.mean, ours.mean, 1)
    )
    if interval.low - tolerance <= paper.value <= interval.high + tolerance:
        return "reproduced"
    return "direction only" if interval.excludes_zero else "not reproduced"


def judge_value(ours: Number, paper: Published) -> Verdict:
    """A number against the paper's, by what is nearest in all seeds: the mean."""
    if abs(ours.mean - paper.value) <= paper.either_tolerance:
        return "reproduced"
    side = paper.side_of
    right = side is not None and (ours.mean - side) * (paper.value - side) > 0
    return "direction only" if right else "not reproduced"


def judge_count(ours: Count, paper: Published) -> Verdict:
    """A share of a total against the paper's."""
    if abs(ours.mean - paper.value) <= COUNT_TOLERANCE:
        return "reproduced"
    return "direction only" if (ours.mean - 0.5) * (paper.value - 0.5) > 0 else "not reproduced"


def judge_range(ours: Range, paper: Published) -> Verdict:
    """The extremes of some values against the paper's; the direction is right if the ranges overlap."""
    low, high = paper.value
    near = [
        abs(mine - theirs) <= Published(theirs, paper.tolerance, paper.tolerance_share).either_tolerance
        for mine, theirs in ((ours.low, low), (ours.high, high))
    ]
    if all(near):
        return "reproduced"
    return "direction only" if ours.low <= high and low <= ours.high else "not reproduced"


def judge_within(ours: Range, paper: Published) -> Verdict:
    """Whether all values are within a range that the paper states."""
    low, high = paper.value
    return _whether(low <= ours.low and ours.high <= high)


def judge_alike(ours: Range, paper: Published) -> Verdict:
    """Whether the greatest of some values exceeds the least by no more than the tolerance."""
    assert paper.tolerance_share is not None, "claims are checked when they are read"
    return _whether(ours.high <= ours.low * (1.0 + paper.tolerance_share))


def judge_ordering(ours: Pair, _paper: Published) -> Verdict:
    """Whether one mean is below another."""
    return _whether(ours.first.mean < ours.second.mean)


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
    tolerance: tuple[str, ...] = ()
    """One of these keys a claim has to state."""
    published: str = "{}"
    """How the paper's value is printed."""
    unit: str = ""
    """The unit of claims that state none."""


COMPARISONS: dict[str, Comparison] = {
    "change": Comparison((Number,), "number", judge_change, unit="%"),
    "up to": Comparison((Number,), "number", judge_change, published="up to {}", unit="%"),
    "value": Comparison((Number,), "number", judge_value, ("tolerance", "tolerance_share")),
    "count": Comparison((Count,), "share", judge_count),
    "range": Comparison((Range,), "range", judge_range, ("tolerance", "tolerance_share")),
    "within": Comparison((Range,), "range", judge_within),
    "alike": Comparison((Range,), "none", judge_alike, ("tolerance_share",)),
    "below": Comparison((Number, Count), "number", lambda ours, paper: _whether(ours.mean < paper.value)),
    "above": Comparison((Number, Count), "number", lambda ours, paper: _whether(ours.mean > paper.value)),
    "at most": Comparison((Number,), "number", lambda ours, paper: _whether(ours.mean <= paper.value)),
    "at least": Comparison((Number,), "number", lambda ours, paper: _whether(ours.mean >= paper.value)),
    "ordering": Comparison((Pair,), "none", judge_ordering, published="first is lower", unit="%"),
    "name": Comparison((Name,), "name", judge_name),
}
"""By the name that claims state as `compare`."""
