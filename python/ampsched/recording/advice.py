"""Which policy is best for a recorded program on a machine, by how much, and how sure that is."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

from ampsched import api
from ampsched._core import InputError, Machine
from ampsched.catalog import Catalog, machine_note
from ampsched.comparison import Comparison, per_seed
from ampsched.execution import Progress
from ampsched.held_clocks import with_held_clocks
from ampsched.placed import NOISE
from ampsched.policy import PolicySpec
from ampsched.recording.check import LINUX, Check, check
from ampsched.recording.conditions import Conditions, pose
from ampsched.recording.cores import Cores, core_sets
from ampsched.recording.files import load
from ampsched.recording.goals import TIME, Goal, GoalName, Metric, goal_of, has_power, metric_of
from ampsched.recording.model_error import ModelError, model_error
from ampsched.recording.refusal import FIRST_CHOICE, reasons, reasons_before, text_of
from ampsched.recording.replay import Sharing as SharingWord
from ampsched.recording.speedups import known_speedup
from ampsched.statistics import Estimate, estimate
from ampsched.uncertainty import MARGIN, MARGIN_RANGE, Verdict, judge, sentences

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
SHARED_MIN = 0.2
"""Share of a program's work that must be in loops for advice on them."""
SLOW_PROFILE, FAST_PROFILE = "canneal", "freqmine"
"""Shipped profiles near both ends of the speed-ups: what if the program gains less, or more, from fast cores?"""

ENERGY = "no energy model"
"""What machines without power lack, which nobody needs to know who has not asked for energy."""

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
class OnCores:
    """A policy for the program while it may use some of the cores only.

    Attributes:
        cores: Which.
        policy: The policy; the baseline: only ``taskset`` is needed.
        change: Of what the goal compares, against the baseline on all cores.
        draws: What the goal compares, of each draw.
    """

    cores: Cores
    policy: str
    change: Estimate
    draws: tuple[float, ...]

    @property
    def name(self) -> str:
        """Such as ``linux, only big``."""
        return f"{self.policy}, {self.cores.name}"


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
        verdict: What may be said of the best policy.
        on_cores: The baseline and the best policy on some of the cores only, the best first.
        setting: What may be said of the best of all: a policy, some of the cores, or both.
        conditions: Under which they were compared, in words.
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
    sharing: Sharing | None
    notes: tuple[str, ...]
    comparison: Comparison
    target: str
    model_error: ModelError
    verdict: Verdict
    on_cores: tuple[OnCores, ...]
    setting: Verdict
    conditions: tuple[str, ...]
    clocks: str = ""
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
        told = sentences(self.verdict, self.name, machine, self.metric.name, self.metric.text)
        return [*([f"no basis of advice: {'; '.join(self.overridden)}"] if self.overridden else []), *told]

    @property
    def best_on_cores(self) -> OnCores | None:
        """The cores to use and the policy there, if that is the best setting and worth it.

        Cores under the baseline come first if they are no worse: they need nothing but ``taskset``; then the best
        policy on all cores.
        """
        if not self.setting.is_worth_it:
            return None
        simple = (
            each for each in self.on_cores if each.policy == BASELINE and each.name in self.setting.alike
        )
        found = next(simple, None)
        if found is None and self.verdict.best not in self.setting.alike:
            found = next((each for each in self.on_cores if each.name == self.setting.best), None)
        return found

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
        """Whether the best policy is better than the baseline, as far as one can know."""
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
            "verdict": asdict(self.verdict),
            "on_cores": [
                {"cores": each.cores.name, "cpus": list(each.cores.cpus), "policy": each.policy}
                | {"change": each.change.mean, "half_width": each.change.half_width}
                for each in self.on_cores
            ],
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
    margin: float = MARGIN,
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
        repeat: Number of draws: of the system's noise and of amounts of work.
        margin: By how much worse than the best others may be and still count as no worse: 0.01 is 1 %.
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
    MARGIN_RANGE.check("margin", margin)
    tell = step or (lambda _: None)
    catalog = Catalog.shipped()
    recording = load(path)
    asked = goal_of(recording, catalog.machine(machine), goal, governor)
    against = reasons_before(recording)
    if against and not anyway:
        raise InputError(text_of(path, against[0]))
    if checked is None:
        tell("replaying on the recording's own cores, on others and on one")
        checked = check(recording, path, catalog)
    against += reasons(recording, checked, asked)
    if against and not anyway:
        raise InputError(text_of(path, against[0]))
    if asked.name != "time" and tuple(policies) == POLICIES:
        policies = [*policies, *FOR_CLOCKS[: 1 + has_power(catalog.machine(machine))]]
    names = list(dict.fromkeys([BASELINE, *policies]))
    if len(names) == 1:
        raise InputError(f"{BASELINE} is the baseline: name a policy that it is compared with")
    info = json.loads(recording.info)
    known = known_speedup(info, catalog, machine, speedup, usual_speedup)
    conditions = pose(catalog, recording, path, known)
    clocks = with_held_clocks(catalog.machine(machine), conditions.workload, asked.governor != "none").note
    tell(f"comparing {len(names)} policies")
    settings: dict[str, Any] = {
        "noise": NOISE,
        "jobs": jobs,
        "progress": progress,
        "governor": asked.governor,
        "energy": asked.has_energy,
    }
    comparison = api.compare(machine, conditions.workload, names, repeat=repeat, **settings)
    metric, errors = metric_of(asked, comparison), model_error(recording, checked.follows)
    choices = _choices(comparison, metric)
    best_if: dict[str, str] = {}
    if known.ratio is None:
        for word, like in (("little", SLOW_PROFILE), ("much", FAST_PROFILE)):
            tell(f"the same if it gains {word} from fast cores")
            other = pose(catalog, recording, path, known, like=like).workload
            varied = api.compare(machine, other, names, repeat=1, **settings)
            best_if[word] = _choices(varied, metric)[0].policy
    draws = {policy: metric.draws(comparison, policy) for policy in comparison.policies}
    decide = partial(
        judge,
        errors=errors.of_changes if asked.name == "time" else None,
        of_shares=metric.is_share,
        margin=margin,
    )
    verdict = decide(draws)
    tried = dict.fromkeys([BASELINE, verdict.best])
    tell("the same on some of the cores")
    on_cores = _on_cores(
        conditions, catalog.machine(machine), tuple(tried), comparison, metric, repeat, settings
    )
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
        sharing=_sharing(conditions, machine, comparison, repeat, settings) if asked.name == "time" else None,
        notes=(*conditions.notes, *filter(None, [clocks]), *machine_note(catalog.machine(machine))),
        conditions=(*(note for note in comparison.notes if note != clocks), *conditions.texts),
        clocks=clocks,
        overridden=tuple(each.why for each in against),
        comparison=comparison,
        target=_target(info),
        model_error=errors,
        verdict=verdict,
        on_cores=tuple(on_cores),
        setting=decide({**draws, **{each.name: each.draws for each in on_cores}}),
    )


def _target(info: Mapping[str, Any]) -> str:
    if info.get("window_ns") is not None:
        return "--pid PID"
    # An escape stands for a byte that is no text.
    words = info.get("command", [])
    is_known = words and not any("\\" in word for word in words)
    return f"-- {shlex.join(words) if is_known else 'COMMAND'}"


def _sharing(
    conditions: Conditions,
    machine: str | Machine,
    comparison: Comparison,
    repeat: int,
    settings: dict[str, Any],
) -> Sharing | None:
    """What sharing the work of loops would gain."""
    recording = conditions.recording
    share = recording.shared_ns / max(recording.cpu_ns, 1)
    if share < SHARED_MIN:
        return None
    all_shared = {"sharing": float(get_args(SharingWord).index("all"))}
    balanced = pose(conditions.catalog, recording, conditions.path, conditions.speedup, all_shared).workload
    shared = api.compare(machine, balanced, [BASELINE], repeat=repeat, **settings)
    first, second = (each.select(*each.mixes()[0], BASELINE) for each in (comparison, shared))
    return Sharing(share, metric_of(TIME, shared).change(second, first))


def _on_cores(
    conditions: Conditions,
    machine: Machine,
    policies: tuple[str, ...],
    comparison: Comparison,
    metric: Metric,
    repeat: int,
    settings: dict[str, Any],
) -> list[OnCores]:
    """What some policies make of the program on some of the cores, the best first."""
    first = comparison.select(*comparison.mixes()[0], BASELINE)
    found = []
    for cores in core_sets(machine):
        workload = conditions.workload.on_cores(machine, cores.cpus)
        compared = api.compare(machine, workload, policies, repeat=repeat, limits=False, **settings)
        for policy in policies:
            change = metric.change(compared.select(*compared.mixes()[0], policy), first)
            found.append(OnCores(cores, policy, change, tuple(metric.draws(compared, policy))))
    return sorted(found, key=lambda each: each.change.mean)


def _choices(comparison: Comparison, metric: Metric) -> list[Choice]:
    """All policies but the baseline, those with the least of what is compared first."""
    mix = comparison.mixes()[0]
    first = comparison.select(*mix, BASELINE)

    def choice(policy: str) -> Choice:
        runs = comparison.select(*mix, policy)
        return Choice(policy, metric.change(runs, first), estimate(per_seed(runs, metric.value)))

    others = (policy for policy in comparison.policies if policy != BASELINE)
    return sorted(map(choice, others), key=lambda choice: choice.change.mean)
