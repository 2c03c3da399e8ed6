"""Which policy is best for a recorded program on a machine, by how much, and how sure that is."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ampsched import api
from ampsched._core import TYPICAL_PROFILE, InputError, Machine, Recording
from ampsched.catalog import Catalog, machine_note
from ampsched.comparison import Comparison, per_seed
from ampsched.execution import Progress
from ampsched.held_clocks import with_held_clocks
from ampsched.policy import PolicySpec
from ampsched.recording.check import LINUX, NOISE, Check, check
from ampsched.recording.counting import predicted_speedup
from ampsched.recording.files import load
from ampsched.recording.goals import TIME, Goal, GoalName, Metric, goal_of, has_power, metric_of
from ampsched.recording.model_error import ModelError, model_error
from ampsched.recording.replay import replayed
from ampsched.recording.summary import coverage, ending, follows_text, sources
from ampsched.recording.traced import ratio_of_speeds
from ampsched.statistics import Estimate, estimate

BASELINE = LINUX
FIRST_CHOICE = "abreast"
"""What to run if nothing was compared, and of equally good policies: the best on mixes of programs."""
POLICIES = (
    BASELINE,
    "a-dwrr",
    FIRST_CHOICE,
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
FOR_CLOCKS = ("gts", "eas")
"""What is compared besides if the goal is not time: policies of phones; the second needs a power model."""
FOREIGN_MAX = 0.05
"""Share of the CPUs' time; if others took more while it was recorded, that is named as a cause."""
KNOWN_MIN = 0.9
"""Share of the blocked time; if less has a known cause, that is named."""
SLOWDOWN_MAX = 1.1
"""If recording took more than so many times as long, that is named."""
MISS_MAX = 0.10
"""A replay whose turnaround on the recording's own cores differs by more is not a basis of advice."""
WORK_MIN_NS = 20_000_000
"""CPU time, in ns; a program that has worked less is mostly its own start, which no policy changes."""
FOLLOWS_MIN = 0.5
"""Share of a program's time that must shrink on faster cores: what waits for clocks and devices no policy shortens."""
SHARED_MIN = 0.2
"""Share of a program's work that must be in loops for advice on them."""
SLOW_PROFILE, FAST_PROFILE = "canneal", "freqmine"
"""Shipped profiles near both ends of the speed-ups: what if the program gains less, or more, from fast cores?"""

Step = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Choice:
    """A policy for the program.

    Attributes:
        policy: Its name.
        change: Of what the goal compares against the baseline: -0.1 is 10 % less, or of late frames 10 points.
        value: What the goal compares.
    """

    policy: str
    change: Estimate
    value: Estimate | None = None


@dataclass(frozen=True, slots=True)
class Sharing:
    """What a task runtime, or dynamic loops, would gain under the baseline.

    Attributes:
        share: Of the program's work what several threads do up to a barrier or in a parallel region: 0 to 1.
        change: Of the turnaround if threads took that work piece by piece: -0.1 is 10 % shorter.
    """

    share: float
    change: Estimate


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
        sharing: What sharing loops would gain; none if the program has hardly any.
        notes: What the replay honours differently.
        comparison: The runs behind it.
        target: Arguments of ``ampsched live run`` for the same program.
        model_error: How far predictions of such programs were off where that was measured.
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
    sharing: Sharing | None
    notes: tuple[str, ...]
    comparison: Comparison
    target: str
    model_error: ModelError
    clocks: str = ""

    @property
    def best(self) -> Choice:
        """The policy with the least of what is compared."""
        return self.choices[0]

    @property
    def equals(self) -> tuple[str, ...]:
        """The policies whose interval has the best one's change in it, the best first."""
        return tuple(choice.policy for choice in self.choices if choice.change.low <= self.best.change.mean)

    @property
    def suggested(self) -> tuple[Choice, ...]:
        """What to run, in this order, of what is faster than the baseline by more than its interval.

        The best first, but :data:`FIRST_CHOICE` before all if it is no worse.
        """
        faster = [choice for choice in self.choices if choice.change.high < 0]
        first = FIRST_CHOICE if FIRST_CHOICE in self.equals else self.best.policy
        return tuple(sorted(faster, key=lambda choice: choice.policy != first))

    @property
    def is_worth_it(self) -> bool:
        """Whether the best policy is better than the baseline, by more than its interval."""
        return self.best.change.high < 0

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
            "choices": [
                {
                    "policy": choice.policy,
                    "change": choice.change.mean,
                    "half_width": choice.change.half_width,
                }
                for choice in self.choices
            ],
            "model_error": {**asdict(self.model_error), "text": self.model_error.text},
            "speedup": self.speedup,
            "best_if": self.best_if,
            "equals": list(self.equals),
            "sharing": None
            if self.sharing is None
            else {"share": self.sharing.share, "change": self.sharing.change.mean},
            "notes": list(self.notes),
        }


def check_request(machine: str | Machine | None, policies: Sequence[str]) -> None:
    """Tries what `advise` is asked for: before a program is recorded for it.

    Raises:
        InputError: A policy, one of its parameters or the machine does not exist.
    """
    for policy in policies:
        PolicySpec.of(policy)
    if machine is not None:
        Catalog.shipped().machine(machine)


def _check_worth(path: Path, recording: Recording) -> None:
    """Refuses what says nothing about the program's usual runs.

    Raises:
        InputError: It has failed, or has hardly worked.
    """
    end = ending(json.loads(recording.info)["exit_code"])
    if end is not None:
        raise InputError(
            f"{path}: the program {end}, so it is no basis of advice (--anyway takes it as it is)"
        )
    if recording.cpu_ns < WORK_MIN_NS:
        raise InputError(
            f"{path}: the program has worked for {recording.cpu_ns / 1e6:.3g} ms: too little for advice, at least "
            f"{WORK_MIN_NS / 1e6:g} ms are needed (give it more to do, or use --anyway)"
        )


def advise(
    path: Path,
    machine: str | Machine,
    policies: Sequence[str] = POLICIES,
    *,
    speedup: float | None = None,
    usual_speedup: float | None = None,
    goal: GoalName | None = None,
    governor: str | None = None,
    repeat: int = 5,
    jobs: int = 0,
    anyway: bool = False,
    checked: Check | None = None,
    step: Step | None = None,
    progress: Progress | None = None,
) -> Advice:
    """Compares policies for a recorded program on a machine.

    Args:
        path: The recording.
        machine: The machine.
        policies: Policies; the baseline is added if it is not the first of them.
        speedup: The program's speed on the fastest kind of core by that on the slowest, if it is known.
        usual_speedup: That of small programs on this machine, if it was measured: better than nothing.
        goal: What counts; by default what fits the recording, see `goals.goal_of`.
        governor: Who sets clocks; by default Linux's if the goal is not time and the machine has several.
        repeat: Number of seeds of the system's noise.
        jobs: Processors to use; 0: all.
        anyway: Go on even if the program has failed or hardly worked, or its replay is no basis.
        checked: What `check` has found of it, if it has been asked.
        step: Called with what is done next, in words.
        progress: Called with the number of finished simulations of that step and of all.

    Raises:
        InputError: Something does not exist or is wrong, the program has failed or worked less than `WORK_MIN_NS`, the
            replay misses the recording by more than `MISS_MAX` or breaks a law, or less than `FOLLOWS_MIN` of its time
            follows the cores though the goal is time.
    """
    tell = step or (lambda _: None)
    catalog = Catalog.shipped()
    recording = load(path)
    asked = goal_of(recording, catalog.machine(machine), goal, governor)
    if not anyway:
        _check_worth(path, recording)
    if checked is None:
        tell("replaying on the recording's own cores, on others and on one")
        checked = check(recording, path, catalog)
    why = refusal(path, recording, checked, asked)
    if why is not None and not anyway:
        raise InputError(why)
    if asked.name != "time" and tuple(policies) == POLICIES:
        policies = [*policies, *FOR_CLOCKS[: 1 + has_power(catalog.machine(machine))]]
    names = list(dict.fromkeys([BASELINE, *policies]))
    if len(names) == 1:
        raise InputError(f"{BASELINE} is the baseline: name a policy that it is compared with")
    info = json.loads(recording.info)
    speedup, known = _speedup(info, catalog, machine, speedup, usual_speedup)
    replay = replayed(catalog, recording, path, speedup=speedup)
    clocks = with_held_clocks(catalog.machine(machine), replay.workload, asked.governor != "none").note
    tell(f"comparing {len(names)} policies")
    settings: dict[str, Any] = {
        "noise": NOISE,
        "jobs": jobs,
        "progress": progress,
        "governor": asked.governor,
        "energy": asked.has_energy,
    }
    comparison = api.compare(machine, replay.workload, names, repeat=repeat, **settings)
    metric = metric_of(asked, comparison)
    choices = _choices(comparison, metric)
    best_if: dict[str, str] = {}
    if speedup is None:
        for word, like in (("little", SLOW_PROFILE), ("much", FAST_PROFILE)):
            tell(f"the same if it gains {word} from fast cores")
            other = replayed(catalog, recording, path, like=like).workload
            varied = api.compare(machine, other, names, repeat=1, **settings)
            best_if[word] = _choices(varied, metric)[0].policy
    return Advice(
        name=info["name"],
        machine=comparison.mixes()[0][0],
        goal=asked,
        metric=metric,
        check=checked,
        choices=tuple(choices),
        baseline_value=estimate(per_seed(comparison.select(*comparison.mixes()[0], BASELINE), metric.value)),
        speedup=known,
        best_if=best_if,
        sharing=_sharing(recording, path, catalog, machine, speedup, comparison, repeat, settings)
        if asked.name == "time"
        else None,
        notes=(*replay.notes, *([clocks] if clocks else []), *machine_note(catalog.machine(machine))),
        clocks=clocks,
        comparison=comparison,
        target=_target(info),
        model_error=model_error(recording, checked.follows),
    )


def _target(info: Mapping[str, Any]) -> str:
    if info.get("window_ns") is not None:
        return "--pid PID"
    # An escape stands for a byte that is no text.
    words = info.get("command", [])
    is_known = words and not any("\\" in word for word in words)
    return f"-- {shlex.join(words) if is_known else 'COMMAND'}"


def _speedup(
    info: dict[str, Any],
    catalog: Catalog,
    machine: str | Machine,
    stated: float | None,
    usual: float | None,
) -> tuple[float | None, str]:
    """The program's speed-up on a machine, if anybody knows it, and what is known, in words."""
    if stated is not None:
        return stated, f"stated: {stated:g}"
    if info["speedup"] is not None and info["machine"] == machine:
        return info["speedup"], f"{info['speedup']:.2f}, measured on the virtual cores of {machine}"
    core_types = {core_type for _, core_type, *_ in catalog.machine(machine).clusters}
    measured = info.get("speedup_kinds")
    if measured and set(measured) == core_types:
        return info["speedup"], f"{info['speedup']:.2f}, measured on {measured[0]} and on {measured[1]}"
    # Who has imported it states speeds of its cores.
    ratio = ratio_of_speeds(info)
    if not info["machine"] and sources(info) is None and ratio > 1:
        return ratio, f"{ratio:.2f}, by the speeds of the recording's cores"
    predicted = predicted_speedup(info, catalog.machine(machine))
    if predicted is not None:
        predicted = max(1.0, predicted)  # a model may be wrong by a little
        return predicted, f"{predicted:.2f}, predicted from what the processor counted"
    if usual is not None:
        return usual, f"{usual:.2f}, that of small programs on these cores"
    return None, f"not known: taken for that of {TYPICAL_PROFILE}, the middle of the shipped profiles"


def _sharing(
    recording: Recording,
    path: Path,
    catalog: Catalog,
    machine: str | Machine,
    speedup: float | None,
    comparison: Comparison,
    repeat: int,
    settings: dict[str, Any],
) -> Sharing | None:
    """What sharing the work of loops would gain."""
    share = recording.shared_ns / max(recording.cpu_ns, 1)
    if share < SHARED_MIN:
        return None
    balanced = replayed(catalog, recording, path, speedup=speedup, sharing="all").workload
    shared = api.compare(machine, balanced, [BASELINE], repeat=repeat, **settings)
    first, second = (each.select(*each.mixes()[0], BASELINE) for each in (comparison, shared))
    return Sharing(share, metric_of(TIME, shared).change(second, first))


def _choices(comparison: Comparison, metric: Metric) -> list[Choice]:
    """All policies but the baseline, those with the least of what is compared first."""
    mix = comparison.mixes()[0]
    first = comparison.select(*mix, BASELINE)

    def choice(policy: str) -> Choice:
        runs = comparison.select(*mix, policy)
        return Choice(policy, metric.change(runs, first), estimate(per_seed(runs, metric.value)))

    others = (policy for policy in comparison.policies if policy != BASELINE)
    return sorted(map(choice, others), key=lambda choice: choice.change.mean)


def refusal(path: Path, recording: Recording, checked: Check, goal: Goal = TIME) -> str | None:
    """Why a recording is no basis of advice, if it is none."""
    if abs(checked.error) > MISS_MAX:
        return _miss(path, recording, checked)
    anyway = "(--anyway takes it as it is)"
    if checked.violations:
        more = len(checked.violations) - 1
        others = f" (and {more} more)" if more else ""
        return (
            f"{path}: its replay is defective: {checked.violations[0]}{others}: no basis of advice {anyway}"
        )
    if checked.follows < FOLLOWS_MIN and goal.name == "time":
        text = follows_text(checked.follows, checked.rest)
        return f"{path}: {text}: too little for advice on cores {anyway}"
    return None


def _miss(path: Path, recording: Recording, checked: Check) -> str:
    """By how much a replay misses the recording, and why."""
    known = coverage(recording)
    info = json.loads(recording.info)
    causes = []
    if recording.is_cut_off:
        causes.append("the recording was cut off")
    if info["lost_events"]:
        causes.append(f"{info['lost_events']} events were lost")
    if known is not None and known < KNOWN_MIN:
        causes.append(f"only {known:.0%} of the time in which threads were blocked has a known cause")
    if (info["foreign"] or 0.0) > FOREIGN_MAX:
        causes.append(f"other programs took {info['foreign']:.0%} of the CPUs' time meanwhile")
    if (info["slowdown"] or 1.0) > SLOWDOWN_MAX:
        causes.append(f"recording made it {info['slowdown']:.2f} times as slow")
    why = "; ".join(causes) or "for reasons that the recording does not tell"
    return (
        f"{path}: its replay on the recording's own cores takes {checked.replayed_s:.3g} s, the program took "
        f"{checked.recorded_s:.3g} s: too far apart for advice: {why} (record it again on a quiet computer, or use --anyway; "
        f"{FIRST_CHOICE} is the first choice where nothing was compared)"
    )
