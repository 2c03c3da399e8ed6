"""What no policy can beat: bounds of a mix's metrics, and the best schedule of a small mix.

Bounds come from relaxations (work over capacity, chains, locks, each program alone), the best schedule from a search in
which the simulator judges. The page `docs/explanation/limit-of-policies.md` has the definitions and the proofs.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from ampsched import _core
from ampsched.results import Outcome

Objective = Literal["h_antt", "h_stp", "makespan"]
OBJECTIVES: tuple[Objective, ...] = ("h_antt", "h_stp", "makespan")
SIMULATIONS_MAX = 10**9
QUANTUM_US_MAX = 1e9
TELLING = 0.5
"""By how much of its time alone a repeated program's turnaround has to be bounded for a limit that says something."""
NO_LIMIT = "no limit: what repeated programs draw anew may be next to nothing"
"""Why there is none."""
POLICY = "optimum"
"""The name of the search's schedule among policies."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Bounds of one mix on one machine with one seed, whatever schedules it."""

    h_antt: float
    """H_ANTT is at least this."""
    h_stp: float
    """H_STP is at most this."""
    makespan_ns: float
    """The makespan is at least this."""
    turnaround_ns: tuple[float, ...]
    """Each application's turnaround is at least this."""

    unfairness: float = 1.0
    """Unfairness is at least this: a policy may let cores idle until all slowdowns are equal."""

    @classmethod
    def mean(cls, limits: "Sequence[Limit]") -> "Limit":
        """The means of several seeds' bounds, which are bounds of the means."""
        turnarounds = zip(*(each.turnaround_ns for each in limits), strict=True)
        return cls(
            fmean(each.h_antt for each in limits),
            fmean(each.h_stp for each in limits),
            fmean(each.makespan_ns for each in limits),
            tuple(map(fmean, turnarounds)),
            fmean(each.unfairness for each in limits),
        )

    @classmethod
    def of(cls, job: _core.Job, alone_ns: Sequence[float]) -> "Limit":
        """The bounds of a job.

        Args:
            job: What would be run; its policy does not matter.
            alone_ns: Time of each application alone, above 0, in ns: what H_ANTT and H_STP refer to.
        """
        found = json.loads(_core.limit(job, [float(ns) for ns in alone_ns]))
        return cls(**{**found, "turnaround_ns": tuple(found["turnaround_ns"])})

    def is_telling(self, alone_ns: Sequence[float]) -> bool:
        """Whether it says something of repeated programs: nobody knows how often they begin anew, nor what they draw.

        So they count with the least that may be drawn, which is nothing if amounts have no least one.
        """
        pairs = zip(self.turnaround_ns, alone_ns, strict=True)
        return all(least_ns >= TELLING * each_ns for least_ns, each_ns in pairs)


@dataclass(frozen=True, slots=True)
class Distance:
    """How far something is from the limit: 0.1 is 10 % worse than the bound; 0 is as good as possible."""

    h_antt: float
    h_stp: float
    makespan: float

    @classmethod
    def between(cls, limit: Limit, h_antt: float, h_stp: float, makespan_ns: float) -> "Distance":
        """The distance of values from a limit."""
        return cls(
            h_antt=_above(h_antt, limit.h_antt),
            h_stp=1.0 - h_stp / limit.h_stp,
            makespan=_above(makespan_ns, limit.makespan_ns),
        )


def _above(value: float, bound: float) -> float:
    """By which part a value is above its bound; 0 if the bound says nothing."""
    return value / bound - 1.0 if bound > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Stay:
    """A thread's stay on a core."""

    core: int
    thread: int
    """Its place in the outcome's threads."""
    from_ns: int
    to_ns: int


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best schedule that a search has found."""

    objective: Objective
    value: float
    """H_ANTT, H_STP, or the makespan in ns."""
    limit: float
    """The bound of it."""
    proven: bool
    """Whether no schedule of the searched kind is better by more than the tolerance."""
    simulations: int
    """Simulations that it took."""
    choices: int
    """Choices that the schedule makes."""
    outcome: Outcome
    timeline: tuple[Stay, ...]
    """By core and time."""

    @property
    def gap(self) -> float:
        """How far the bound may be from what can be reached: 0.02 is 2 %."""
        return 1.0 - self.value / self.limit if self.objective == "h_stp" else _above(self.value, self.limit)

    @classmethod
    def search(
        cls,
        job: _core.Job,
        alone_ns: Sequence[float],
        objective: Objective,
        *,
        quantum_ns: int,
        simulations: int,
        tolerance: float,
    ) -> "Optimum":
        """Searches; see `ampsched.optimum`."""
        alone = [float(ns) for ns in alone_ns]
        text = _core.optimum(job, alone, objective, quantum_ns, simulations, tolerance)
        found: dict[str, Any] = json.loads(text)
        return cls(
            **{
                **found,
                "objective": objective,
                "outcome": Outcome.from_values(found["outcome"], POLICY),
                "timeline": tuple(Stay(**stay) for stay in found["timeline"]),
            }
        )
