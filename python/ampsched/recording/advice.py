"""Which policy is best for a recorded program on a machine, by how much, and how sure that is."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from ampsched import api
from ampsched._core import TYPICAL_PROFILE, InputError, Machine, Recording
from ampsched.catalog import Catalog
from ampsched.comparison import Comparison, SummaryRow, change
from ampsched.execution import Run
from ampsched.recording.files import load
from ampsched.recording.machine import recorded_machine
from ampsched.recording.replay import replayed
from ampsched.statistics import Estimate

BASELINE = "linux"
POLICIES = (
    BASELINE,
    "a-dwrr",
    "acfs",
    "camp",
    "colab",
    "equal-progress",
    "hsp",
    "max-fair",
    "min-fair",
    "prop-sp",
    "similarity",
    "wash",
)
"""What is compared unless somebody says otherwise: the baseline, and the policies for unequal cores that leave clocks
alone and need neither a power model nor a training."""
NOISE = "idle"
"""The system's own work beside the program: its seeds make the intervals."""
MISS_MAX = 0.10
"""A replay whose turnaround on the recording's own cores differs by more is not a basis of advice."""
SLOW_PROFILE, FAST_PROFILE = "canneal", "freqmine"
"""Shipped profiles near both ends of the speed-ups: what if the program gains less, or more, from fast cores?"""

Step = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Check:
    """The replay on the recording's own cores under Linux, beside the recording.

    Attributes:
        recorded_s: As long as it took, without what recording cost.
        replayed_s: As long as its replay takes.
    """

    recorded_s: float
    replayed_s: float

    @property
    def error(self) -> float:
        """By how much the replay takes longer: 0.05 is 5 %."""
        return self.replayed_s / self.recorded_s - 1


@dataclass(frozen=True, slots=True)
class Choice:
    """A policy for the program.

    Attributes:
        policy: Its name.
        change: Of the turnaround against the baseline: -0.1 is 10 % shorter.
    """

    policy: str
    change: Estimate


@dataclass(frozen=True, slots=True)
class Advice:
    """The answer.

    Attributes:
        name: The program.
        machine: What it would run on.
        check: How good the replay is.
        choices: All policies but the baseline, the best first.
        baseline_s: Turnaround under the baseline.
        speedup: What is known of the program's speed-up, in words.
        best_if: The best policy if the program gains little, and if it gains much from fast cores.
        notes: What the replay honours differently.
        comparison: The runs behind it.
    """

    name: str
    machine: str
    check: Check
    choices: tuple[Choice, ...]
    baseline_s: Estimate
    speedup: str
    best_if: dict[str, str]
    notes: tuple[str, ...]
    comparison: Comparison

    @property
    def best(self) -> Choice:
        """The policy with the shortest turnaround."""
        return self.choices[0]

    @property
    def is_worth_it(self) -> bool:
        """Whether the best policy is faster than the baseline, by more than its interval."""
        return self.best.change.high < 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "program": self.name,
            "machine": self.machine,
            "recorded_s": self.check.recorded_s,
            "replayed_s": self.check.replayed_s,
            "baseline": BASELINE,
            "baseline_s": self.baseline_s.mean,
            "is_worth_it": self.is_worth_it,
            "choices": [
                {
                    "policy": choice.policy,
                    "change": choice.change.mean,
                    "half_width": choice.change.half_width,
                }
                for choice in self.choices
            ],
            "speedup": self.speedup,
            "best_if": self.best_if,
            "notes": list(self.notes),
        }


def check(recording: Recording, path: Path, catalog: Catalog) -> Check:
    """Replays a recording on its own cores under Linux.

    Raises:
        InputError: It has no events, or its cores are not known.
    """
    info = json.loads(recording.info)
    if not info["wall_ns"] or not recording.threads:
        raise InputError(f"{path}: nothing was recorded")
    machine = recorded_machine(info, catalog, str(path))
    workload = replayed(catalog, path).workload
    outcomes = [
        api.simulate(machine, workload, BASELINE, noise=NOISE, seed=seed, core_order="as-is")
        for seed in (1, 2, 3)
    ]
    recorded_s = info["wall_ns"] / 1e9 / (info["slowdown"] or 1.0)
    return Check(recorded_s, fmean(outcome.makespan_ns for outcome in outcomes) / 1e9)


def advise(
    path: Path,
    machine: str | Machine,
    policies: Sequence[str] = POLICIES,
    *,
    speedup: float | None = None,
    repeat: int = 5,
    jobs: int = 0,
    anyway: bool = False,
    step: Step | None = None,
) -> Advice:
    """Compares policies for a recorded program on a machine.

    Args:
        path: The recording.
        machine: The machine.
        policies: Policies; the baseline is added if it is not the first of them.
        speedup: The program's speed on the fastest kind of core by that on the slowest, if it is known.
        repeat: Number of seeds of the system's noise.
        jobs: Processors to use; 0: all.
        anyway: Go on even if the replay does not reproduce the recording.
        step: Called with what is done next, in words.

    Raises:
        InputError: Something does not exist or is wrong, or the replay misses the recording by more than `MISS_MAX`.
    """
    tell = step or (lambda _: None)
    catalog = Catalog.shipped()
    recording = load(path)
    tell("replaying on the recording's own cores")
    checked = check(recording, path, catalog)
    if abs(checked.error) > MISS_MAX and not anyway:
        raise InputError(_refusal(path, recording, checked))
    names = [BASELINE, *(name for name in policies if name != BASELINE)]
    replay = replayed(catalog, path, speedup=speedup)
    tell(f"comparing {len(names)} policies")
    settings: dict[str, Any] = {"noise": NOISE, "jobs": jobs}
    comparison = api.compare(machine, replay.workload, names, repeat=repeat, **settings)
    rows = comparison.summary()
    choices = _choices(comparison, rows)
    best_if: dict[str, str] = {}
    if speedup is None:
        for word, like in (("little", SLOW_PROFILE), ("much", FAST_PROFILE)):
            tell(f"the same if it gains {word} from fast cores")
            other = replayed(catalog, path, like=like).workload
            varied = api.compare(machine, other, names, repeat=1, **settings)
            best_if[word] = _choices(varied, varied.summary())[0].policy
    known = (
        f"stated: {speedup:g}"
        if speedup is not None
        else f"not known: taken for that of {TYPICAL_PROFILE}, the middle of the shipped profiles"
    )
    return Advice(
        name=json.loads(recording.info)["name"],
        machine=rows[0].machine,
        check=checked,
        choices=tuple(choices),
        baseline_s=_scaled(rows[0].makespan_ms),
        speedup=known,
        best_if=best_if,
        notes=tuple(replay.notes),
        comparison=comparison,
    )


def _choices(comparison: Comparison, rows: Sequence[SummaryRow]) -> list[Choice]:
    """All policies but the baseline, the shortest turnaround first."""
    (machine, workload), *_ = comparison.mixes()
    first = comparison.select(machine, workload, BASELINE)

    def choice(row: SummaryRow) -> Choice:
        runs = comparison.select(machine, workload, row.policy)
        return Choice(row.policy, change(runs, first, _makespan))

    return sorted((choice(row) for row in rows[1:]), key=lambda choice: choice.change.mean)


def _makespan(run: Run) -> float:
    return float(run.outcome.makespan_ns)


def _scaled(estimate_ms: Estimate) -> Estimate:
    return Estimate(estimate_ms.mean / 1e3, estimate_ms.low / 1e3, estimate_ms.high / 1e3, estimate_ms.n)


def _refusal(path: Path, recording: Recording, checked: Check) -> str:
    """Why a recording is no basis of advice."""
    blocked_ns, known_ns = recording.blocked_ns
    info = json.loads(recording.info)
    causes = []
    if recording.is_cut_off:
        causes.append("the recording was cut off")
    if info["lost_events"]:
        causes.append(f"{info['lost_events']} events were lost")
    if blocked_ns and known_ns < 0.9 * blocked_ns:
        causes.append(
            f"only {known_ns / blocked_ns:.0%} of the time in which threads were blocked has a known cause"
        )
    if (info["slowdown"] or 1.0) > 1.1:
        causes.append(f"recording made it {info['slowdown']:.2f} times as slow")
    why = "; ".join(causes) or "other programs may have run meanwhile"
    return (
        f"{path}: its replay on the recording's own cores takes {checked.replayed_s:.3g} s, the program took "
        f"{checked.recorded_s:.3g} s: too far apart for advice: {why} (record it again on a quiet computer, or use --anyway)"
    )
