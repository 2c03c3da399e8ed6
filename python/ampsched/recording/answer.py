"""What `advise` has found: the best setting of a program, what it rests on, and how sure it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ampsched.comparison import Comparison
from ampsched.recording.check import LINUX, Check
from ampsched.recording.goals import Goal, Metric
from ampsched.recording.model_error import ModelError
from ampsched.recording.refusal import FIRST_CHOICE
from ampsched.recording.schedules import LoopSchedule
from ampsched.recording.search import Found, Tried, steps
from ampsched.recording.setting import Setting
from ampsched.statistics import Estimate
from ampsched.uncertainty import NO_BASIS, Verdict, sentences

BASELINE = LINUX
UNLIKE = 1000
"""More than any effort: what is worse than the best comes last."""
ENERGY = "no energy model"
"""What machines without power lack, which nobody needs to know who has not asked for energy."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A policy for the program.

    Attributes:
        policy: Its name.
        change: Of what the goal compares against the baseline: -0.1 is 10 % less, or of late frames 10 points.
    """

    policy: str
    change: Estimate


@dataclass(frozen=True, slots=True)
class Loops:
    """What another schedule of the program's loops would gain under the baseline.

    Attributes:
        schedule: Which, and what to set for it.
        change: Of the turnaround: -0.1 is 10 % shorter.
    """

    schedule: LoopSchedule
    change: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        told = self.schedule
        return {
            "schedule": told.name,
            "environment": dict(told.environment),
            "needs": told.needs,
            "change": self.change.mean,
            "half_width": self.change.half_width,
        }


@dataclass(frozen=True, slots=True)
class Advice:
    """The answer.

    Attributes:
        name: The program.
        machine: What it would run on.
        goal: What counts.
        metric: What is compared for it.
        check: How good the replay is.
        choices: All policies but the baseline, the best first.
        baseline_value: What is compared, under the baseline.
        speedup: What is known of the program's speed-up, in words.
        best_if: The best policy if the program gains little, and if it gains much from fast cores.
        change_if: What the advised setting changes in these cases.
        shared: Share of the program's work that several threads do up to a barrier or in a parallel region: 0 to 1.
        is_openmp: Whether it has parallel regions of OpenMP.
        loops: What other schedules of its loops would gain, the best first; none if it has hardly any.
        notes: What the replay honours differently.
        comparison: The runs behind it.
        target: The recorded command; ``--pid PID`` of a program that ran already.
        model_error: How far predictions of such programs were off where that was measured.
        verdict: The answer: what may be said of the best setting.
        of_policies: What may be said of the best policy on all cores with the most threads.
        found: All settings that were tried: threads, cores, policies, clocks.
        usual: What they are measured against: the baseline on all cores, with the most threads.
        conditions: Under which they were compared, in words.
        left_out: Numbers of threads that were not tried, and why, a sentence each.
        overridden: Why it is no basis of advice, if it was asked for all the same, a reason each.
        clocks: How clocks are bounded as in the trace, or why not; empty if nothing is known of that.
    """

    name: str
    machine: str
    goal: Goal
    metric: Metric
    check: Check
    choices: tuple[Choice, ...]
    baseline_value: Estimate
    speedup: str
    best_if: dict[str, str]
    shared: float
    is_openmp: bool
    loops: tuple[Loops, ...]
    notes: tuple[str, ...]
    comparison: Comparison
    target: tuple[str, ...]
    model_error: ModelError
    verdict: Verdict
    of_policies: Verdict
    found: Found
    usual: Setting
    conditions: tuple[str, ...]
    clocks: str = ""
    change_if: Mapping[str, Estimate] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    overridden: tuple[str, ...] = ()

    @property
    def best(self) -> Choice:
        """The policy with the least of what is compared."""
        return self.choices[0]

    @property
    def equals(self) -> tuple[str, ...]:
        """The best policy on all cores and those that are no worse than it by more than the margin."""
        return self.of_policies.alike

    @property
    def dropped(self) -> list[str]:
        """What policies and the machine did not honour of the recording, a sentence each."""
        found = ((run.policy, run.outcome.caveat) for run in self.comparison.runs)
        told = [
            (policy, what) for policy, what in found if what and (self.goal.has_energy or ENERGY not in what)
        ]
        return list(dict.fromkeys(f"{policy}: {what}" for policy, what in told))

    def answer(self, machine: str) -> list[str]:
        """The answer in lines, with a name for the machine."""
        told = sentences(self.verdict, self.name, machine, self.metric.name, self.metric.text)
        return [*([f"{NO_BASIS}: {'; '.join(self.overridden)}"] if self.overridden else []), *told]

    @property
    def choices_of_settings(self) -> list[Tried]:
        """What may be run, in this order; empty if nothing is worth it.

        First what is no worse than the best, the least effort first; then what is better than the usual setting by more
        than chance.
        """
        if not self.verdict.is_worth_it:
            return []
        alike = set(self.verdict.alike)
        better = [each for each in self.found.tried if each.change.high < 0]
        return sorted(
            better,
            key=lambda each: effort_of(each.setting, self.usual) if each.setting.name in alike else UNLIKE,
        )

    @property
    def advised(self) -> Setting:
        """The setting to take: the usual one if no other is worth it."""
        found = self.choices_of_settings
        return found[0].setting if found else self.usual

    @property
    def parts(self) -> list[Tried]:
        """What each part of the advised setting earns: from the usual one on, a part more each."""
        return [each for each in map(self.found.of, steps(self.usual, self.advised)) if each]

    def _row(self, each: Tried) -> dict[str, Any]:
        """A setting in plain values; the verdict stands where it is about this one."""
        name = each.setting.name
        told = {
            "is_usual": each.setting == self.usual,
            "is_advised": each.setting == self.advised,
            "verdict": self.verdict.word if name == self.verdict.best else "",
            "no_basis": "; ".join(self.overridden),
        }
        return each.to_dict() | told

    @property
    def is_worth_it(self) -> bool:
        """Whether the best setting is better than the usual one, as far as one can know."""
        return self.verdict.is_worth_it

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "program": self.name,
            "machine": self.machine,
            **self.check.to_dict(),
            "baseline": BASELINE,
            "goal": {
                **asdict(self.goal),
                "metric": self.metric.name,
                "baseline": self.baseline_value.mean,
                "baseline_text": self.metric.text(self.baseline_value.mean),
                "less": self.metric.less,
            },
            "baseline_s": self.baseline_value.mean if self.goal.name == "time" else None,
            "is_worth_it": self.is_worth_it,
            "no_basis": list(self.overridden),
            "verdict": asdict(self.verdict),
            "settings": [self._row(each) for each in (*self.found.tried, *self.found.ruled_out)],
            "usual": self.usual.name,
            "advised": self.advised.name,
            "parts": [each.to_dict() for each in self.parts],
            "policies": asdict(self.of_policies),
            "text": self.answer(self.machine),
            "conditions": list(self.conditions),
            "caveats": self.comparison.caveats(),
            "choices": [
                {
                    "policy": choice.policy,
                    "change": choice.change.mean,
                    "half_width": choice.change.half_width,
                }
                for choice in self.choices
            ],
            "model_error": self.model_error.to_dict(),
            "speedup": self.speedup,
            "best_if": self.best_if,
            "change_if": {word: each.mean for word, each in self.change_if.items()},
            "equals": list(self.equals),
            "loops": {"share": self.shared, "schedules": [each.to_dict() for each in self.loops]},
            "notes": [*self.notes, *self.left_out],
        }


def effort_of(setting: Setting, usual: Setting) -> int:
    """By what of equally good settings one is taken: what it takes, and whether its policy is the first choice."""
    return 2 * setting.effort(usual) + (setting.policy not in (BASELINE, FIRST_CHOICE))
