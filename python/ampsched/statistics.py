"""Means of repetitions and how far they can be trusted."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds and its 95 % confidence interval.

    The interval is Student's: mean +- t(n - 1) x s / sqrt(n). It is the mean alone for a single seed. It tells how
    far the mean of more seeds may be from this one, not how far the model is from reality.

    Attributes:
        n: Number of seeds; 0 of a value without randomness.
    """

    mean: float
    low: float
    high: float
    n: int

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    @property
    def excludes_zero(self) -> bool:
        """Whether the whole interval lies on one side of 0."""
        return self.low > 0 or self.high < 0


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and interval of values from independent seeds.

    Raises:
        ValueError: If there are none.
    """
    if not values:
        raise ValueError("an estimate needs at least one value")
    mean, n = fmean(values), len(values)
    half = t_quantile(n - 1) * stdev(values) / math.sqrt(n) if n > 1 else 0.0
    return Estimate(mean, mean - half, mean + half, n)


def exactly(value: float) -> Estimate:
    """A value without randomness."""
    return Estimate(value, value, value, n=0)


def t_quantile(degrees: int) -> float:
    """The quantile of Student's t distribution that bounds the middle 95 %."""
    # scipy.special loads in a tenth of the time of scipy.stats.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + LEVEL) / 2))
