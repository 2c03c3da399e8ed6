"""What happened to one thread around one moment of a simulation, and why."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ampsched.units import NS_PER_MS

ToldValue = int | float | str | Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Told:
    """One thing that happened to the thread, or instead of it."""

    at_ns: int
    """When, since the start."""
    what: str
    """In a word: ``starts``, ``woken``, ``placed``, ``interrupts``, ``runs``, ``stops``, ``moved``, ``planned``,
    ``held``, ``ended``, ``passed`` (a core did not choose it) or ``instead`` (another thread runs where it waits)."""
    sentence: str
    """What happened and, if somebody decided it, why."""
    core: int | None
    """Where."""
    other: str | None
    """The other thread that has part in it, as ``app/thread``."""
    rule: str | None
    """Who decided, in the vocabulary of the policy's rules."""
    because: str | None
    """Why, in words."""
    values: Mapping[str, ToldValue] = field(default_factory=dict)
    """The values that counted in the decision, by name; the unit comes last in the name."""

    def details(self) -> str:
        """The rule and the values in one line; empty if nobody decided anything."""
        if self.rule is None:
            return ""
        values = ", ".join(_shown(name, value) for name, value in self.values.items())
        return f"{self.rule}; {values}" if values else self.rule


@dataclass(frozen=True, slots=True)
class Explanation:
    """What happened to a thread around a moment, and why."""

    thread: int
    """The thread's number."""
    name: str
    """The thread as ``app/thread``."""
    at_ns: int
    """The moment."""
    from_ns: int
    """What is told begins then, apart from what led to it."""
    to_ns: int
    """What is told ends then."""
    state: str
    """What the thread did at the moment: ``not started``, ``waiting``, ``running``, ``blocked``, ``held`` or
    ``ended``."""
    core: int | None
    """Where it ran or waited at the moment, or had run before."""
    since_ns: int
    """Since when it was in that state."""
    summary: str
    """The same in a sentence."""
    events: tuple[Told, ...]
    """What happened, in the order of time."""

    @staticmethod
    def from_json(text: str) -> "Explanation":
        """From the simulator's JSON."""
        values: dict[str, Any] = json.loads(text)
        events = tuple(Told(**each) for each in values.pop("events"))
        return Explanation(**values, events=events)

    def lines(self) -> Iterator[str]:
        """The explanation in plain sentences, each with the rule that decided and the values that counted."""
        yield self.summary
        for told in self.events:
            yield f"{told.at_ns / NS_PER_MS:>12.3f} ms  {told.sentence}."
            if details := told.details():
                yield f"{'':>17}[{details}]"


def _shown(name: str, value: ToldValue) -> str:
    """A value with its name, times in ms."""
    words = name.removesuffix("_ns").replace("_", " ")
    match value:
        case int() if name.endswith("_ns"):
            return f"{words} {value / NS_PER_MS:.3f} ms"
        case float():
            return f"{words} {value:.3f}"
        case Mapping():
            return f"{words} " + " ".join(f"core {core}: {load}" for core, load in value.items())
        case _:
            return f"{words} {value}"
