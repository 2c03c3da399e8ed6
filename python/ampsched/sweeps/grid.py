"""Texts that stand for several: ``colab:decay=0.5..1.0:6``."""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol

from ampsched._core import InputError
from ampsched.ranges import Range

VALUES_MAX = 10_000
"""Most values of one range."""
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_PART = re.compile(
    rf":(?P<key>[A-Za-z_]\w*)=(?:(?P<low>{_NUMBER})\.\.(?P<high>{_NUMBER})(?::(?P<count>[^:=/]+)(?=:|$))?"
    r"|(?P<list>[^:=/]+(?:/[^:=/]+)+)(?=:|$))"
)
_DIGITS = 6
"""Significant digits of a value between the ends of a range."""


class Values(Protocol):
    """What a parameter may be."""

    def all(self) -> Sequence[str]:
        """All of them; raises `InputError` if they can't be counted."""

    def draw(self, chance: random.Random) -> str:
        """One of them by chance."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Values that are named or evenly spaced."""

    texts: tuple[str, ...]

    def all(self) -> Sequence[str]:
        """All of them."""
        return self.texts

    def draw(self, chance: random.Random) -> str:
        """One of them by chance."""
        return chance.choice(self.texts)


@dataclass(frozen=True, slots=True)
class Between:
    """All numbers of a range."""

    what: str
    low: float
    high: float

    def all(self) -> Sequence[str]:
        """There are too many.

        Raises:
            InputError: Always.
        """
        raise InputError(
            f"{self.what} has no number of values (such as {shown(self.low)}..{shown(self.high)}:6): "
            "only a sample or an optimiser can do without"
        )

    def draw(self, chance: random.Random) -> str:
        """A number by chance, evenly distributed."""
        return shown(chance.uniform(self.low, self.high))


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text with gaps, and what may stand in each."""

    parts: tuple[str, ...]
    """One more than there are gaps."""
    keys: tuple[str, ...]
    values: tuple[Values, ...]

    @staticmethod
    def of(text: str, what: str) -> "Pattern":
        """Reads ``name:key=low..high:count``, ``name:key=low..high`` and ``name:key=a/b/c``; all else stays itself.

        Args:
            text: The text.
            what: What it is, for messages.

        Raises:
            InputError: If a range is wrong.
        """
        parts, keys, values, place = [], [], [], 0
        for found in _PART.finditer(text):
            key = found["key"]
            if "@" in (found["list"] or ""):
                raise InputError(
                    f'{what} "{text}": bounds of clocks (@) and several values (/) cannot be one part; list machines: a,b'
                )
            parts.append(f"{text[place : found.start()]}:{key}=")
            place = found.end()
            keys.append(key)
            values.append(_values(f"{what} {text}: {key}", found))
        rest = text[place:]
        if ".." in rest.partition("=")[2]:
            raise InputError(
                f'{what} "{text}": a range is of the form key=0.5..1.0:6 or, for samples, key=0.5..1.0'
            )
        return Pattern((*parts, rest), tuple(keys), tuple(values))

    def filled(self, texts: Sequence[str]) -> str:
        """The text with its gaps filled."""
        return "".join(a + b for a, b in zip(self.parts, (*texts, ""), strict=True))

    def all(self) -> Iterator[str]:
        """Every text that it stands for, in order."""
        return map(self.filled, product(*(each.all() for each in self.values)))

    def draw(self, chance: random.Random) -> str:
        """One of them by chance."""
        return self.filled([each.draw(chance) for each in self.values])


def _values(what: str, found: re.Match[str]) -> Values:
    if found["list"]:
        texts = tuple(found["list"].split("/"))
        if len(set(texts)) < len(texts):
            raise InputError(f"{what}={found['list']} names a value twice")
        return Listed(texts)
    low, high = float(found["low"]), float(found["high"])
    if low >= high:
        raise InputError(f"{what}={found['low']}..{found['high']}: the first number is not below the second")
    if found["count"] is None:
        return Between(f"{what}={found['low']}..{found['high']}", low, high)
    if not found["count"].isdecimal():
        raise InputError(f'{what}: "{found["count"]}" is no number of values, such as 6')
    count = int(found["count"])
    Range(2, VALUES_MAX).check(f"{what}: number of values", count)
    inner = (shown(low + (high - low) * step / (count - 1)) for step in range(1, count - 1))
    texts = (found["low"], *inner, found["high"])
    if len(set(texts)) < count:
        raise InputError(
            f"{what}={found['low']}..{found['high']}:{count}: the values are not {_DIGITS} digits apart"
        )
    return Listed(texts)


def shown(value: float) -> str:
    """A number as short as its value allows."""
    return f"{value:.{_DIGITS}g}"


@dataclass(frozen=True, slots=True)
class Axes:
    """What is varied, each as patterns, in order: machines, workloads and so on."""

    patterns: Mapping[str, Sequence[Pattern]]

    def all(self) -> Iterator[dict[str, str]]:
        """Every combination, the last axis varying fastest."""
        texts = [
            [text for pattern in patterns for text in pattern.all()] for patterns in self.patterns.values()
        ]
        for choice in product(*texts):
            yield dict(zip(self.patterns, choice, strict=True))

    def draw(self, chance: random.Random) -> dict[str, str]:
        """A combination by chance: one pattern of each axis, and of it one text."""
        return {name: chance.choice(list(patterns)).draw(chance) for name, patterns in self.patterns.items()}


def sampled(axes: Axes, count: int, seed: int) -> list[dict[str, str]]:
    """Different combinations by chance, the same for the same seed; fewer if there are not so many.

    Args:
        axes: What is varied.
        count: How many combinations.
        seed: Seed of the choice.
    """
    chance = random.Random(seed)  # noqa: S311 (no secrets)
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for _ in range(100 * count):
        if len(found) == count:
            break
        drawn = axes.draw(chance)
        found.setdefault(tuple(drawn.values()), drawn)
    return list(found.values())
