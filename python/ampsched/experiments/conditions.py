"""Conditions under which claims are judged again: one thing is changed at a time."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ampsched.policy import PolicyLike

PART = "conditions"
"""What the part of an experiment is called that runs all of them."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What is changed."""

    name: str
    noise: str = "none"
    factors: str = "oracle"
    lines: Mapping[str, str] = field(default_factory=dict)
    """Of the machines' files: what stands there, and what stands there instead."""
    policies: Mapping[str, PolicyLike] = field(default_factory=dict)
    """By the name in claims, what is run instead."""

    @property
    def changes_policies_only(self) -> bool:
        """Whether all policies that it does not name do what they do as judged."""
        return (self.noise, self.factors, self.lines) == (AS_JUDGED.noise, AS_JUDGED.factors, AS_JUDGED.lines)


AS_JUDGED = Condition("as judged")
IDLE = Condition("noise: idle system", noise="idle")
BUSY = Condition("noise: busy system", noise="busy")
