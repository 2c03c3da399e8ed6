"""What the policy is to reach on a set, and what came out."""

from collections.abc import Iterable
from typing import NamedTuple


class Judged(NamedTuple):
    """An aim and its outcome."""

    aim: str
    outcome: str
    """With the figures that it was judged by."""
    met: bool


def named(names: Iterable[str]) -> str:
    """Names in a sentence, each as code; ``none`` if there is none."""
    return ", ".join(f"`{name}`" for name in names) or "none"
