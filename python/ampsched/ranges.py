"""Ranges of numbers, and what is said of a number outside of its range."""

import math
from dataclasses import dataclass

from ampsched._core import InputError


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers from `low` to `high`, or only those above `low`."""

    low: float
    high: float = math.inf
    without_low: bool = False

    def check(self, name: str, value: float) -> None:
        """Raises `InputError` if a number is not within the range."""
        # Not a number is below everything.
        if not self.low <= value <= self.high or (self.without_low and value == self.low):
            raise InputError(f"{name} = {as_number(value)} {self._what_is_wrong()}")

    def _what_is_wrong(self) -> str:
        if self.without_low:
            return f"is not above {as_number(self.low)} and at most {as_number(self.high)}"
        if self.high == math.inf:
            return f"is below {as_number(self.low)}"
        return f"is not within {as_number(self.low)} to {as_number(self.high)}"


def as_number(value: float) -> str:
    """A number for a message."""
    return str(value) if isinstance(value, int) else f"{value:g}"
