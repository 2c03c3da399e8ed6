"""What a core's performance monitoring unit can count at once."""

import functools
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, slots=True)
class Pmu:
    """A performance monitoring unit.

    `counters` is the number of programmable counters; events in `fixed` have one of their own.
    """

    counters: int
    fixed: frozenset[str]

    def events(self, counters: Iterable[str]) -> int:
        """How many programmable counters these counters take."""
        return len(set(counters) - self.fixed)

    def running_share(self, counters: Iterable[str]) -> float:
        """Share of the time in which each event is counted if all of these take turns; 1 if they fit."""
        events = self.events(counters)
        return 1.0 if events <= self.counters else self.counters / events


def pmu_of(core_type: str) -> Pmu:
    """The PMU of a type of core; a usual one if it is not known."""
    rows = _shipped()
    row = rows.get(core_type, rows["default"])
    return Pmu(row["counters"], frozenset(row["fixed"]))


@functools.cache
def _shipped() -> dict[str, dict[str, Any]]:
    return tomllib.loads((files("ampsched") / "data" / "pmus.toml").read_text(encoding="utf-8"))
