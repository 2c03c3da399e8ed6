"""How timely threads were: distributions of times and periods, of simulations and of live sessions alike.

*Wake-up latency* is the time from the moment at which a thread that was blocked becomes runnable until it gets a core;
docs/reference/latency.md defines it, periods and frames.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

PERCENTILES = ("p50_ns", "p95_ns", "p99_ns", "max_ns")


@dataclass(frozen=True, slots=True)
class Distribution:
    """How long something took, each time: percentiles by nearest rank, at most 0.8 % too long."""

    count: int
    """How many times it did."""
    p50_ns: int
    """Median; 0 if there is nothing."""
    p95_ns: int
    p99_ns: int
    max_ns: int
    """The longest, exactly."""
    upper_ns: tuple[int, ...] = ()
    """Of the buckets of the histogram that are not empty, the longest time that each counts, ascending.

    Empty for single threads of a comparison, which keeps the histograms of programs only.
    """
    counts: tuple[int, ...] = ()
    """How many each counts."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From the JSON of a simulation or a session."""
        numbers = {name: values[name] for name in ("count", *PERCENTILES)}
        return cls(**numbers, upper_ns=tuple(values["upper_ns"]), counts=tuple(values["counts"]))

    def row(self) -> dict[str, int]:
        """Count and percentiles, for a row of a frame."""
        return {"count": self.count, **{name: getattr(self, name) for name in PERCENTILES}}


@dataclass(frozen=True, slots=True)
class Periods:
    """Periods of a thread, or of all threads of a program."""

    count: int
    """Periods whose work has ended or is overdue."""
    missed: int
    """Missed deadlines: work that ended after it was due, or has not ended though it is due."""
    slack_p50_ns: int
    """Median of the time from the end of a period's work until it was due; below 0: so much too late."""
    slack_min_ns: int
    response: Distribution
    """From the beginning of a period to the end of its work."""
    frame: Distribution
    """Frame times: between the ends of the work of successive periods of a thread."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From the JSON of a simulation."""
        parts = (Distribution.from_dict(values[name]) for name in ("response", "frame"))
        numbers = (values[name] for name in ("count", "missed", "slack_p50_ns", "slack_min_ns"))
        return cls(*numbers, *parts)

    @classmethod
    def maybe(cls, values: Mapping[str, Any] | None) -> Self | None:
        """The same of something that may have no periods."""
        return None if values is None else cls.from_dict(values)

    def row(self) -> dict[str, int]:
        """All numbers, for a row of a frame."""
        parts = {"response": self.response, "frame": self.frame}
        return {
            "periods": self.count,
            "missed": self.missed,
            "slack_p50_ns": self.slack_p50_ns,
            "slack_min_ns": self.slack_min_ns,
            **{f"{part}_{name}": getattr(of, name) for part, of in parts.items() for name in PERCENTILES},
        }


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose distributions rows of a frame are about: a thread, or all of a program (no thread)."""

    program: str
    thread: str | None
    repetition: int | None
    latency: Distribution
    periods: Periods | None

    @property
    def keys(self) -> dict[str, Any]:
        """The first columns of its rows."""
        return {"program": self.program, "thread": self.thread, "repetition": self.repetition}


def latency_rows(owners: Sequence[Owner]) -> list[dict[str, Any]]:
    """One row per owner: its wake-ups and their latency."""
    return [{**owner.keys, **owner.latency.row()} for owner in owners]


def period_rows(owners: Sequence[Owner]) -> list[dict[str, Any]]:
    """One row per owner that has periods."""
    return [{**owner.keys, **owner.periods.row()} for owner in owners if owner.periods]


def histogram_rows(owners: Sequence[Owner]) -> list[dict[str, Any]]:
    """One row per bucket of each owner.

    It says what is counted (``latency``, ``response`` or ``frame``), up to how long it lasts, and how many did.
    """
    return [
        {**owner.keys, "of": of, "upper_ns": upper_ns, "count": count}
        for owner in owners
        for of, times in _histograms(owner).items()
        for upper_ns, count in zip(times.upper_ns, times.counts, strict=True)
    ]


def _histograms(owner: Owner) -> dict[str, Distribution]:
    found = {"latency": owner.latency}
    if owner.periods:
        found |= {"response": owner.periods.response, "frame": owner.periods.frame}
    return found


_KEYS = {"program": str, "thread": str, "repetition": int}
LATENCY_SCHEMA: dict[str, type] = {**_KEYS, "count": int, **dict.fromkeys(PERCENTILES, int)}
PERIOD_SCHEMA: dict[str, type] = {
    **_KEYS,
    **dict.fromkeys(("periods", "missed", "slack_p50_ns", "slack_min_ns"), int),
    **{f"{part}_{name}": int for part in ("response", "frame") for name in PERCENTILES},
}
HISTOGRAM_SCHEMA: dict[str, type] = {**_KEYS, "of": str, "upper_ns": int, "count": int}
