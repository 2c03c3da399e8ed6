"""Why a recording is no basis of advice, and what to do instead."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ampsched.recording import Recording
from ampsched.recording.check import Check
from ampsched.recording.goals import TIME, Goal
from ampsched.recording.replay import MISS_MAX
from ampsched.recording.summary import coverage, ending, follows_text

FOREIGN_MAX = 0.1
"""Share of the CPUs' time; if others took more while it was recorded, the recording says more of them."""
COVERED_MIN = 0.8
"""Share of the blocked time whose end must have a known cause."""
SLOWDOWN_MAX = 1.1
"""If recording took more than so many times as long, that is named."""
WORK_MIN_NS = 20_000_000
"""CPU time, in ns; a program that has worked less is mostly its own start, which no policy changes."""
FOLLOWS_MIN = 0.5
"""Share of a program's time that must shrink on faster cores: what waits for clocks and devices no policy shortens."""
FIRST_CHOICE = "abreast"
"""What to run if nothing was compared, and of equally good policies: the best on mixes of programs."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why there is no advice.

    Attributes:
        why: The reason.
        instead: What to do.
    """

    why: str
    instead: str = ""


def text_of(path: Path, reason: Reason) -> str:
    """A reason as an error of a file."""
    instead = f"{reason.instead}, or use --anyway" if reason.instead else "--anyway takes it as it is"
    return f"{path} is no basis of advice: {reason.why} ({instead})"


def reasons_before(recording: Recording) -> list[Reason]:
    """What is known without a replay: it has failed, has hardly worked, or was disturbed."""
    return list(_before(recording))


def reasons(recording: Recording, checked: Check, goal: Goal = TIME) -> list[Reason]:
    """What its replay shows."""
    return list(_replayed(recording, checked, goal))


def refusal(path: Path, recording: Recording, checked: Check, goal: Goal = TIME) -> str | None:
    """Why a recording's replay is no basis of advice, if it is none."""
    return next((text_of(path, each) for each in _replayed(recording, checked, goal)), None)


def _before(recording: Recording) -> Iterator[Reason]:
    info = json.loads(recording.info)
    end = ending(info["exit_code"])
    if end is not None:
        yield Reason(f"the program {end}")
    if recording.cpu_ns < WORK_MIN_NS:
        yield Reason(
            f"the program has worked for {recording.cpu_ns / 1e6:.3g} ms, at least {WORK_MIN_NS / 1e6:g} ms are needed",
            "give it more to do; of a program that puts itself into the background, record what goes on by --pid",
        )
    foreign = info["foreign"] or 0.0
    if foreign > FOREIGN_MAX:
        yield Reason(
            f"other programs took {foreign:.0%} of the CPUs' time meanwhile, at most {FOREIGN_MAX:.0%} are allowed",
            "record it again on a quiet computer",
        )


def _replayed(recording: Recording, checked: Check, goal: Goal) -> Iterator[Reason]:
    if abs(checked.error) > MISS_MAX:
        yield _miss(recording, checked)
    if checked.violations:
        more = len(checked.violations) - 1
        others = f" (and {more} more)" if more else ""
        yield Reason(f"in its replay, {checked.violations[0]}{others}")
    if goal.name != "time":
        return
    if checked.follows < FOLLOWS_MIN:
        yield Reason(f"only {follows_text(checked.follows, checked.rest)}")
    # Waits whose cause nobody recorded keep their length: that counts only where they decide.
    known = coverage(recording)
    if known is not None and known < COVERED_MIN and checked.rest["unknown"] > 1 - COVERED_MIN:
        yield Reason(
            f"only {known:.0%} of the time in which threads were blocked has a known cause, and that decides its time",
            "record it as root, so that the kernel tells more",
        )


def _miss(recording: Recording, checked: Check) -> Reason:
    """By how much a replay misses the recording, and why."""
    known = coverage(recording)
    info = json.loads(recording.info)
    causes = []
    if recording.is_cut_off:
        causes.append("the recording was cut off")
    if info["lost_events"]:
        causes.append(f"{info['lost_events']} events were lost")
    if known is not None and known < COVERED_MIN:
        causes.append(f"only {known:.0%} of the time in which threads were blocked has a known cause")
    if (info["foreign"] or 0.0) > FOREIGN_MAX / 2:
        causes.append(f"other programs took {info['foreign']:.0%} of the CPUs' time meanwhile")
    if (info["slowdown"] or 1.0) > SLOWDOWN_MAX:
        causes.append(f"recording made it {info['slowdown']:.2f} times as slow")
    why = f"because {' and '.join(causes)}" if causes else "for reasons that the recording does not tell"
    return Reason(
        f"its replay on its own cores takes {checked.replayed_s:.3g} s where the program took "
        f"{checked.recorded_s:.3g} s, {why}",
        f"record it again on a quiet computer, or take {FIRST_CHOICE}, the best policy on average",
    )
