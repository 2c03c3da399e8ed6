"""What advice compares policies by: time, or what counts for an interactive program."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from ampsched._core import InputError, Machine, Recording
from ampsched.comparison import (
    Comparison,
    Value,
    edp_js,
    energy_j,
    latency_p99_ms,
    per_seed,
    time_text,
)
from ampsched.execution import Run
from ampsched.governor import Governors
from ampsched.naming import check_known
from ampsched.recording.frames import Frames
from ampsched.statistics import Estimate
from ampsched.uncertainty import difference, paired

GoalName = Literal["time", "frames", "latency", "energy", "edp"]
GOALS: dict[GoalName, str] = {
    "time": "turnaround",
    "frames": "late frames, or the 95th percentile of frames if none is late",
    "latency": "the 99th percentile of wake-up latencies",
    "energy": "energy",
    "edp": "energy x delay: turnaround, or of frames the 95th percentile",
}
"""What each goal compares."""
GOVERNOR = "schedutil"
"""What sets clocks by default if the goal is not time: Linux's own."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A number by which runs are compared; less is better.

    Attributes:
        name: What it is.
        value: Of a run.
        text: A value in words.
        less: What is said of a policy that has less of it.
        is_share: Whether values are shares, 0 to 1, whose differences are told, and not ratios.
    """

    name: str
    value: Value
    text: Callable[[float], str]
    less: str
    is_share: bool = False

    def draws(self, comparison: Comparison, policy: str) -> list[float]:
        """A value of each draw under a policy."""
        return per_seed(comparison.select(*comparison.mixes()[0], policy), self.value)

    def change(self, runs: Sequence[Run], reference: Sequence[Run]) -> Estimate:
        """Of runs against a reference, paired by seed: -0.1 is 10 % less, or 10 points less of shares."""
        return self.difference(per_seed(runs, self.value), per_seed(reference, self.value))

    def difference(self, mine: Sequence[float], others: Sequence[float]) -> Estimate:
        """Of draws against others that met the same, as `change` tells it."""
        return (difference if self.is_share else paired)(mine, others)


@dataclass(frozen=True, slots=True)
class Goal:
    """What is asked for, and why that.

    Attributes:
        name: Which.
        why: Who says so, or what was found in the recording, in words.
        is_interactive: Whether the recording is of an interactive program: its makespan says nothing.
        governor: Who sets clocks.
    """

    name: GoalName
    why: str
    is_interactive: bool = False
    governor: str = "none"

    @property
    def has_energy(self) -> bool:
        """Whether energy is accounted for."""
        return self.name in ("energy", "edp")

    @property
    def text(self) -> str:
        """The goal and the governor, in words."""
        clocks = f"; governor {self.governor}" if self.governor != "none" else ""
        return f"{self.name} ({self.why}){clocks}"


TIME = Goal("time", "nothing waits for a clock, vsync or input most of the time")


def interaction(recording: Recording) -> dict[str, Any] | None:
    """What is known of a recording as of an interactive program; None if it is not one."""
    found = recording.interactive()
    return None if found is None else json.loads(found)


def check_goal(asked: str | None, governor: str | None) -> None:
    """Tries what is asked for, whatever the recording.

    Raises:
        InputError: There is no such goal or governor.
    """
    if asked is not None:
        check_known("goal", asked, GOALS)
    if governor is not None:
        Governors.of(governor)


def goal_of(
    recording: Recording, machine: Machine, asked: GoalName | None = None, governor: str | None = None
) -> Goal:
    """The goal that is asked for, else the one that fits the recording.

    Raises:
        InputError: There is no such goal, the recording has no frames, or the machine has no power.
    """
    check_goal(asked, governor)
    found = interaction(recording)
    frames = found and found["frames"]
    name, why = asked or "time", "asked for" if asked else TIME.why
    if asked is None and found is not None:
        name, why = ("frames" if frames else "latency"), words(found)
    if name == "frames" and not frames:
        raise InputError(
            "--goal frames: no period of frames was found in the recording (without one: time, latency, energy, edp)"
        )
    clusters = range(len(machine.clusters))
    if name in ("energy", "edp") and not has_power(machine):
        raise InputError(
            f"--goal {name}: {machine.name} says nothing of its power (take a machine with power, or --goal latency)"
        )
    has_clocks = any(len(machine.frequencies_mhz(cluster)) > 1 for cluster in clusters)
    default = GOVERNOR if has_clocks and name != "time" else "none"
    return Goal(name, why, found is not None, governor or default)


def has_power(machine: Machine) -> bool:
    """Whether the power of all of a machine's clusters is known."""
    clusters = range(len(machine.clusters))
    return all(power_mw > 0 for each in clusters for *_, power_mw in machine.energy_model(each))


def words(found: dict[str, Any]) -> str:
    """What was found of an interactive program, in words."""
    if not found["frames"]:
        return f"{found['waiting']:.0%} of its time it waits for a clock or for outside, without a period"
    return Frames.from_dict(found["frames"]).words()


def metric_of(goal: Goal, comparison: Comparison) -> Metric:
    """By what these runs are compared."""
    if goal.name == "time":
        return TIME_METRIC
    if goal.name == "frames":
        if any(late_share(run) > 0 for run in comparison.runs):
            return Metric("late frames", late_share, lambda share: f"{share:.1%}", "fewer late frames", True)
        return Metric("frames, p95", frame_p95_ms, _ms, "shorter frames (p95; none is late)")
    if goal.name == "latency":
        return Metric("wake-up latency, p99", latency_p99_ms, _ms, "shorter wake-up latency (p99)")
    if goal.name == "energy":
        return Metric("energy", energy_j, lambda joule: f"{joule:.3g} J", "less energy")
    if not goal.is_interactive:
        return Metric(
            "energy x turnaround", edp_js, lambda product: f"{product:.3g} J s", "less energy x turnaround"
        )
    has_frames = any(app.periods for run in comparison.runs for app in run.outcome.apps)
    delay_ms, what = (frame_p95_ms, "frames") if has_frames else (latency_p99_ms, "latency")
    return Metric(
        f"energy x {what}",
        lambda run: energy_j(run) * delay_ms(run),
        lambda product: f"{product:.3g} J ms",
        f"less energy x {what}",
    )


def late_share(run: Run) -> float:
    """Share of a run's frames that are late, 0 to 1."""
    periods = [app.periods for app in run.outcome.apps if app.periods]
    return sum(each.missed for each in periods) / max(1, sum(each.count for each in periods))


def frame_p95_ms(run: Run) -> float:
    """95th percentile of the time from the begin of a run's frames to their end, in ms."""
    found = [app.periods.response.p95_ns for app in run.outcome.apps if app.periods]
    return fmean(found) / 1e6 if found else 0.0


def _makespan_s(run: Run) -> float:
    return run.outcome.makespan_ns / 1e9


TIME_METRIC = Metric("turnaround", _makespan_s, lambda s: time_text(1e3 * s), "shorter")
"""What the goal `TIME` compares."""


def _ms(value: float) -> str:
    return f"{value:.3g} ms"
