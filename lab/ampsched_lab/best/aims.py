"""What the policy is to reach on a set, and what came out."""

from collections.abc import Sequence
from typing import NamedTuple


class Judged(NamedTuple):
    """An aim and its outcome."""

    aim: str
    outcome: str
    """With the figures that it was judged by."""
    met: bool


FEW = 3


def named(names: Sequence[str]) -> str:
    """Names of policies as code; ``none`` if there is none, and their number if there are many."""
    if len(names) > FEW:
        return f"{len(names)} policies"
    return ", ".join(f"`{name}`" for name in names) or "none"
