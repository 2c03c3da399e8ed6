"""Means of repetitions and how far they can be trusted."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
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


def estimate(values: Sequence[float], level: float = LEVEL) -> Estimate:
    """Mean and interval of values from independent seeds, by default of 95 %.

    Raises:
        ValueError: If there are none.
    """
    if not values:
        raise ValueError("an estimate needs at least one value")
    mean, n = fmean(values), len(values)
    half = t_quantile(n - 1, level) * stdev(values) / math.sqrt(n) if n > 1 else 0.0
    return Estimate(mean, mean - half, mean + half, n)


def exactly(value: float) -> Estimate:
    """A value without randomness."""
    return Estimate(value, value, value, n=0)


@cache
def t_quantile(degrees: int, level: float = LEVEL) -> float:
    """The quantile of Student's t distribution that bounds the middle, by default the middle 95 %.

    With t = sqrt(degrees) tan(a), the probability of the middle is an elementary function of the angle a (Abramowitz
    and Stegun, 26.7.3 and 26.7.4): a finite series in cos(a). It rises ever more slowly, so Newton's method from a = 0
    comes nearer from below until rounding ends it.

    Args:
        degrees: Degrees of freedom, a whole number of at least 1.
        level: Probability of the middle, above 0 and below 1.
    """
    log_density = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - math.log(math.pi) / 2
    angle = 0.0
    while True:
        slope = 2.0 * math.exp(log_density + (degrees - 1) * math.log(math.cos(angle)))
        closer = angle + (level - _middle(angle, degrees)) / slope
        if closer - angle <= 1e-15 * closer:
            return math.sqrt(degrees) * math.tan(closer)
        angle = closer


def _middle(angle: float, degrees: int) -> float:
    """Probability that |t| is at most sqrt(degrees) tan(angle)."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    term = cosine if odd else 1.0
    total = 0.0 if degrees == 1 else term
    for step in range(2 + odd, degrees - 1, 2):
        term *= cosine * cosine * (step - 1) / step
        total += term
    return 2.0 / math.pi * (angle + sine * total) if odd else sine * total
