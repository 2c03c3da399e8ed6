"""Which policy is best for a recorded program on a machine, by how much, and how sure that is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ampsched import api
from ampsched._core import InputError, Machine, Recording
from ampsched.catalog import Catalog, machine_note
from ampsched.comparison import Comparison, per_seed
from ampsched.execution import Progress
from ampsched.held_clocks import with_held_clocks
from ampsched.placed import NOISE
from ampsched.policy import PolicySpec
from ampsched.recording.check import LINUX, Check, check
from ampsched.recording.conditions import Conditions, pose
from ampsched.recording.cores import core_sets
from ampsched.recording.files import load
from ampsched.recording.goals import Goal, GoalName, Metric, goal_of, has_power, metric_of
from ampsched.recording.model_error import ModelError, model_error, setting_errors
from ampsched.recording.refusal import FIRST_CHOICE, Reason, reasons, reasons_before, text_of
from ampsched.recording.schedules import LoopSchedule, is_openmp, schedules, shared_part
from ampsched.recording.search import Found, Step, Trials, Tried, search, steps
from ampsched.recording.setting import Setting
from ampsched.recording.speedups import Speedup, known_speedup
from ampsched.statistics import Estimate, estimate
from ampsched.uncertainty import MARGIN, MARGIN_RANGE, ModelErrors, Verdict, judge, sentences

BASELINE = LINUX
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
SLOW_PROFILE, FAST_PROFILE = "canneal", "freqmine"
"""Shipped profiles near both ends of the speed-ups: what if the program gains less, or more, from fast cores?"""

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
        value: What the goal compares.
    """

    policy: str
    change: Estimate
    value: Estimate | None = None


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
        shared: Share of the program's work that several threads do up to a barrier or in a parallel region: 0 to 1.
        is_openmp: Whether it has parallel regions of OpenMP.
        loops: What other schedules of its loops would gain, the best first; none if it has hardly any.
        notes: What the replay honours differently.
        comparison: The runs behind it.
        target: The recorded command; ``--pid PID`` of a program that ran already.
        model_error: How far predictions of such programs were off where that was measured.
        verdict: What may be said of the best policy.
        found: All settings that were tried: threads, cores, policies, clocks.
        usual: What they are measured against: the baseline on all cores, with the most threads.
        setting: What may be said of the best setting.
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
    found: Found
    usual: Setting
    setting: Verdict
    conditions: tuple[str, ...]
    clocks: str = ""
    left_out: tuple[str, ...] = ()
    overridden: tuple[str, ...] = ()

    @property
    def best(self) -> Choice:
        """The policy with the least of what is compared."""
        return self.choices[0]

    @property
    def equals(self) -> tuple[str, ...]:
        """The best policy and those that are no worse than it by more than the margin."""
        return self.verdict.alike

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
        told = sentences(self.setting, self.name, machine, self.metric.name, self.metric.text)
        return [*([f"no basis of advice: {'; '.join(self.overridden)}"] if self.overridden else []), *told]

    @property
    def choices_of_settings(self) -> list[Tried]:
        """What may be run, in this order; empty if nothing is worth it.

        First what is no worse than the best, the least effort first; then what is better than the usual setting by more
        than chance.
        """
        if not self.setting.is_worth_it:
            return []
        alike = set(self.setting.alike)
        better = [each for each in self.found.tried if each.change.high < 0]
        return sorted(
            better,
            key=lambda each: _effort(each.setting, self.usual) if each.setting.name in alike else UNLIKE,
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

    @property
    def is_worth_it(self) -> bool:
        """Whether the best setting is better than the usual one, as far as one can know."""
        return self.setting.is_worth_it

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
            "verdict": asdict(self.verdict),
            "settings": [each.to_dict() for each in (*self.found.tried, *self.found.ruled_out)],
            "usual": self.usual.name,
            "advised": self.advised.name,
            "parts": [each.to_dict() for each in self.parts],
            "setting": asdict(self.setting),
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
            "equals": list(self.equals),
            "loops": {"share": self.shared, "schedules": [each.to_dict() for each in self.loops]},
            "notes": [*self.notes, *self.left_out],
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


def advise(
    path: Path | Mapping[int, Path],
    machine: str | Machine,
    policies: Sequence[str] = POLICIES,
    *,
    speedup: float | None = None,
    usual_speedup: float | None = None,
    goal: GoalName | None = None,
    governor: str | None = None,
    repeat: int = 5,
    margin: float = MARGIN,
    jobs: int = 0,
    anyway: bool = False,
    checked: Check | None = None,
    step: Step | None = None,
    progress: Progress | None = None,
) -> Advice:
    """Finds the best setting of a recorded program on a machine: policy, cores and number of threads.

    Args:
        path: The recording; or several by the number of threads, of which the greatest is the usual one.
        machine: The machine.
        policies: Policies; the baseline is added if it is not the first of them. With it alone, only threads and cores
            are tried: what needs no other scheduler.
        speedup: The program's speed on the fastest kind of core by that on the slowest, if it is known.
        usual_speedup: That of small programs on this machine, if it was measured: better than nothing.
        goal: What counts; by default what fits the recording, see `goals.goal_of`.
        governor: Who sets clocks; by default Linux's if the goal is not time and the machine has several. If energy
            counts and none is named, others are tried, too.
        repeat: Number of draws: of the system's noise and of amounts of work.
        margin: By how much worse than the best others may be and still count as no worse: 0.01 is 1 %.
        jobs: Processors to use; 0: all.
        anyway: Go on even if the program has failed or hardly worked, or its replay is no basis.
        checked: What `check` has found of the usual recording, if it has been asked.
        step: Called with what is done next, in words.
        progress: Called with the number of finished simulations of that step and of all.

    Raises:
        InputError: Something does not exist or is wrong, the program has failed or worked less than `WORK_MIN_NS`, the
            replay misses the recording by more than `MISS_MAX` or breaks a law, or less than `FOLLOWS_MIN` of its time
            follows the cores though the goal is time. Of several recordings only the usual one's faults are errors;
            others are left out, which a note says.
    """
    MARGIN_RANGE.check("margin", margin)
    tell = step or (lambda _: None)
    catalog = Catalog.shipped()
    where = catalog.machine(machine)
    counts, paths = _by_threads(path)
    recording = load(paths[0])
    asked = goal_of(recording, where, goal, governor)
    tell("replaying on the recording's own cores, on others and on one")
    against, checked = _checked(recording, paths[0], catalog, asked, checked, anyway=anyway)
    if asked.name != "time" and tuple(policies) == POLICIES:
        policies = [*policies, *FOR_CLOCKS[: 1 + has_power(where)]]
    names = list(dict.fromkeys([BASELINE, *policies]))
    if len(names) == len(paths) == 1 and not core_sets(where):
        raise InputError(f"{BASELINE} is the baseline: name a policy that it is compared with")
    info = json.loads(recording.info)
    known = known_speedup(info, catalog, machine, speedup, usual_speedup)
    conditions = pose(catalog, recording, paths[0], known)
    clocks = with_held_clocks(where, conditions.workload, asked.governor != "none").note
    settings: dict[str, Any] = {
        "noise": NOISE,
        "jobs": jobs,
        "progress": progress,
        "governor": asked.governor,
        "energy": asked.has_energy,
    }
    tell(f"comparing {len(names)} {'policy' if len(names) == 1 else 'policies'}")
    comparison = api.compare(machine, conditions.workload, names, repeat=repeat, **settings)
    metric, errors = metric_of(asked, comparison), model_error(recording, checked.follows)
    choices = _choices(comparison, metric)
    best_if: dict[str, str] = {}
    if known.ratio is None and choices:
        for word, like in (("little", SLOW_PROFILE), ("much", FAST_PROFILE)):
            tell(f"the same if it gains {word} from fast cores")
            other = pose(catalog, recording, paths[0], known, like=like).workload
            varied = api.compare(machine, other, names, repeat=1, **settings)
            best_if[word] = _choices(varied, metric)[0].policy
    posed, left_out = _others(catalog, counts[1:], paths[1:], where, asked, known, anyway=anyway)
    usual = Setting(BASELINE, counts[0])
    trials = Trials(where, {counts[0]: conditions, **posed}, usual, metric, settings)
    draws = {policy: metric.draws(comparison, policy) for policy in comparison.policies}
    trials.note(comparison, usual)
    found = search(trials, repeat, with_clocks=asked.has_energy and governor is None, step=tell)
    decide = partial(judge, of_shares=metric.is_share, margin=margin)
    of_policies = errors.of_changes if asked.name == "time" else None
    by_name = {usual.name: usual} | {each.setting.name: each.setting for each in found.tried}
    all_draws = {name: trials.known[setting] for name, setting in by_name.items()}

    def of_setting(name: str) -> ModelErrors | None:
        is_policy = by_name[name].policy != BASELINE
        return of_policies if is_policy or of_policies is None else setting_errors()

    return Advice(
        name=info["name"],
        machine=comparison.mixes()[0][0],
        goal=asked,
        metric=metric,
        check=checked,
        choices=tuple(choices),
        baseline_value=estimate(per_seed(comparison.select(*comparison.mixes()[0], BASELINE), metric.value)),
        speedup=known.text,
        best_if=best_if,
        shared=shared_part(recording),
        is_openmp=is_openmp(recording),
        loops=_loops(conditions, trials, repeat) if asked.name == "time" else (),
        notes=(*conditions.notes, *filter(None, [clocks]), *machine_note(where)),
        conditions=(*(note for note in comparison.notes if note != clocks), *conditions.texts),
        clocks=clocks,
        left_out=tuple(left_out),
        overridden=tuple(each.why for each in against),
        comparison=comparison,
        target=_target(info),
        model_error=errors,
        verdict=decide(draws, of_policies),
        found=found,
        usual=usual,
        setting=decide(all_draws, of_setting, effort=lambda name: _effort(by_name[name], usual)),
    )


def _effort(setting: Setting, usual: Setting) -> int:
    """By what of equally good settings one is taken: what it takes, and whether its policy is the first choice."""
    return 2 * setting.effort(usual) + (setting.policy not in (BASELINE, FIRST_CHOICE))


def _by_threads(path: Path | Mapping[int, Path]) -> tuple[list[int | None], list[Path]]:
    """Numbers of threads and their recordings, the greatest number first."""
    if isinstance(path, Path):
        return [None], [path]
    if not path:
        raise InputError("no recording is given: how many threads can only be told from several")
    counts = sorted(path, reverse=True)
    return list(counts), [path[each] for each in counts]


def _checked(
    recording: Recording,
    path: Path,
    catalog: Catalog,
    goal: Goal,
    checked: Check | None = None,
    *,
    anyway: bool,
) -> tuple[list[Reason], Check]:
    """Why a recording is no basis of advice, and how good its replay is.

    Raises:
        InputError: It is none, unless that shall be overridden.
    """
    against = reasons_before(recording)
    if against and not anyway:
        raise InputError(text_of(path, against[0]))
    checked = checked or check(recording, path, catalog)
    against += reasons(recording, checked, goal)
    if against and not anyway:
        raise InputError(text_of(path, against[0]))
    return against, checked


def _others(
    catalog: Catalog,
    counts: Sequence[int | None],
    paths: Sequence[Path],
    machine: Machine,
    goal: Goal,
    known: Speedup,
    *,
    anyway: bool,
) -> tuple[dict[int | None, Conditions], list[str]]:
    """The conditions of recordings with other numbers of threads, and why some are left out."""
    posed: dict[int | None, Conditions] = {}
    left_out = []
    for count, path in zip(counts, paths, strict=True):
        recording = load(path)
        try:
            _checked(recording, path, catalog, goal, anyway=anyway)
        except InputError as error:
            left_out.append(f"{count} thread{'s are' if count != 1 else ' is'} left out: {error}")
            continue
        posed[count] = pose(catalog, recording, path, known)
    return posed, left_out


def _target(info: Mapping[str, Any]) -> tuple[str, ...]:
    """The recorded command; words that stand for it if that is not known, or it ran already."""
    if info.get("window_ns") is not None:
        return ("--pid", "PID")
    # An escape stands for a byte that is no text.
    words = tuple(info.get("command", []))
    return words if words and not any("\\" in word for word in words) else ("COMMAND",)


def _loops(conditions: Conditions, trials: Trials, repeat: int) -> tuple[Loops, ...]:
    """What other schedules of the program's loops would gain, the best first."""
    recording, found = conditions.recording, []
    for schedule in schedules(recording):
        posed = pose(conditions.catalog, recording, conditions.path, conditions.speedup, schedule.params)
        how = {**trials.options, "repeat": repeat, "limits": False}
        compared = api.compare(trials.machine, posed.workload, [BASELINE], **how)
        draws = trials.metric.draws(compared, BASELINE)
        found.append(Loops(schedule, trials.metric.difference(draws, trials.known[trials.usual])))
    return tuple(sorted(found, key=lambda each: each.change.mean))


def _choices(comparison: Comparison, metric: Metric) -> list[Choice]:
    """All policies but the baseline, those with the least of what is compared first."""
    mix = comparison.mixes()[0]
    first = comparison.select(*mix, BASELINE)

    def choice(policy: str) -> Choice:
        runs = comparison.select(*mix, policy)
        return Choice(policy, metric.change(runs, first), estimate(per_seed(runs, metric.value)))

    others = (policy for policy in comparison.policies if policy != BASELINE)
    return sorted(map(choice, others), key=lambda choice: choice.change.mean)
