"""Loop schedules of OpenMP programs: what a replay can tell of them, and what to type for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ampsched._core import Recording
from ampsched.recording.replay import Sharing, number_of

SHARED_MIN: Final = 0.2
"""Least part of a program's work that must be shared for a loop schedule to matter (ours)."""
PIECES: Final = 32
"""Pieces per thread into which replays divide shared work."""
BY_TASKS = "as a task runtime would: the program itself must share its work so"

Environment = tuple[tuple[str, str], ...]
"""Names and values of environment variables."""

AT_RUN_TIME = "only loops that say schedule(runtime) ask the environment; of others, change the source"
NO_RUNTIME = (
    "neither GCC's nor LLVM's OpenMP runtime has it: share the loop out by speed in the program itself"
)


@dataclass(frozen=True, slots=True)
class LoopSchedule:
    """A schedule of parallel loops.

    Attributes:
        name: As OpenMP, or the paper on asymmetric iteration distribution (arXiv 2402.07664), names it.
        sharing: How a replay divides shared work then.
        environment: What to set for it; empty if no setting does it.
        needs: What has to be true besides, in words.
    """

    name: str
    sharing: Sharing
    environment: Environment
    needs: str

    @property
    def params(self) -> dict[str, float]:
        """The parameter of a recording that replays it."""
        return {"sharing": number_of(self.sharing)}


def is_openmp(recording: Recording) -> bool:
    """Whether a recorder has seen parallel regions of OpenMP."""
    return "begin parallel region" in dict(recording.counts)


def shared_part(recording: Recording) -> float:
    """Part of a program's work that several threads do up to a barrier or in a parallel region: 0 to 1."""
    return recording.shared_ns / max(recording.cpu_ns, 1)


def schedules(recording: Recording) -> tuple[LoopSchedule, ...]:
    """The schedules that an OpenMP program can be told to use, or that a program could be written for.

    None if less than `SHARED_MIN` of the work is shared: then the schedule of its loops hardly matters. Which schedule
    loops of OpenMP have now is not recorded, nor whether they ask the environment for it. Of programs that share work
    up to barriers by themselves there is only what a task runtime would do.
    """
    if shared_part(recording) < SHARED_MIN:
        return ()
    if not is_openmp(recording):
        return (LoopSchedule("piece by piece", "all", (), BY_TASKS),)
    chunk = f"; replayed with about {PIECES} chunks per thread, so add a chunk of that size (dynamic,N)"
    return (
        LoopSchedule("static", "static", (("OMP_SCHEDULE", "static"),), AT_RUN_TIME),
        LoopSchedule("dynamic", "all", (("OMP_SCHEDULE", "dynamic"),), AT_RUN_TIME + chunk),
        LoopSchedule("guided", "guided", (("OMP_SCHEDULE", "guided"),), AT_RUN_TIME),
        LoopSchedule("aid-static", "aid-static", (), NO_RUNTIME),
        LoopSchedule("aid-hybrid", "aid-hybrid", (), NO_RUNTIME),
    )
