"""Which policy is best for a recorded program on a machine, by how much, and how sure that is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from ampsched.recording.answer import BASELINE, Advice, Choice, Loops, effort_of
from ampsched.recording.check import Check, check
from ampsched.recording.conditions import Conditions, pose
from ampsched.recording.cores import core_sets
from ampsched.recording.files import load
from ampsched.recording.goals import Goal, GoalName, Metric, goal_of, has_power, metric_of
from ampsched.recording.model_error import model_error, setting_errors
from ampsched.recording.refusal import FIRST_CHOICE, Reason, reasons, reasons_before, text_of
from ampsched.recording.schedules import is_openmp, schedules, shared_part
from ampsched.recording.search import Step, Trials, search
from ampsched.recording.setting import Setting
from ampsched.recording.several import Runs
from ampsched.recording.speedups import Speedup, known_speedup
from ampsched.statistics import Estimate, estimate
from ampsched.uncertainty import MARGIN, MARGIN_RANGE, ModelErrors, judge

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
EXTREMES = {"little": "canneal", "much": "freqmine"}
"""Shipped profiles near both ends of the speed-ups: what if the program gains less, or more, from fast cores?"""


def check_request(machine: str | Machine | None, policies: Sequence[str]) -> None:
    """Tries what `advise` is asked for: before a program is recorded for it.

    Raises:
        InputError: A policy, one of its parameters or the machine does not exist, or there is nothing to try.
    """
    for policy in policies:
        PolicySpec.of(policy)
    if machine is None:
        return
    where = Catalog.shipped().machine(machine)
    if not core_sets(where) and set(policies) == {BASELINE}:
        raise InputError(
            f"{where.name}: all cores are equal, so with {BASELINE} alone there is nothing to try (name other "
            "policies, or a machine with unequal cores)"
        )


def advise(
    path: Path | Mapping[int, Path] | Sequence[Path],
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
        path: The recording; or several by the number of threads, of which the greatest is the usual one; or several of
            the same command and threads, which tell how much its work differs from run to run.
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
    runs = Runs.of(path, anyway=anyway)
    counts, paths = _by_threads(runs.path)
    if len(counts) == 1:
        check_request(machine, policies)
    recording = load(paths[0])
    asked = goal_of(recording, where, goal, governor)
    tell("replaying on the recording's own cores, on others and on one")
    against, checked = _checked(recording, paths[0], catalog, asked, checked, anyway=anyway)
    if asked.name != "time" and tuple(policies) == POLICIES:
        policies = [*policies, *FOR_CLOCKS[: 1 + has_power(where)]]
    names = list(dict.fromkeys([BASELINE, *policies]))
    info = json.loads(recording.info)
    known = known_speedup(info, catalog, machine, speedup, usual_speedup)
    conditions = pose(catalog, recording, paths[0], known, spread=runs.spread)
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
        for word, like in EXTREMES.items():
            tell(f"the same if it gains {word} from fast cores")
            varied = api.compare(machine, conditions.again(like=like).workload, names, repeat=1, **settings)
            best_if[word] = best_of(_choices(varied, metric), choices[0].policy, margin)
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

    advice = Advice(
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
        of_policies=decide(draws, of_policies),
        found=found,
        usual=usual,
        verdict=decide(all_draws, of_setting, effort=lambda name: effort_of(by_name[name], usual)),
    )
    if known.ratio is not None or advice.advised == usual:
        return advice
    tell("the advised setting if the program gains little or much from fast cores")
    return replace(advice, change_if={word: _change_if(trials, advice.advised, word) for word in EXTREMES})


def _change_if(trials: Trials, setting: Setting, word: str) -> Estimate:
    """What a setting changes by a single draw if the program gains so from fast cores."""
    asked = {each: trials.posed[each] for each in (trials.usual.threads, setting.threads)}
    posed = {threads: each.again(like=EXTREMES[word]) for threads, each in asked.items()}
    varied = Trials(trials.machine, posed, trials.usual, trials.metric, trials.options)
    varied.run([trials.usual, setting], 1)
    return varied.tried(setting).change


def best_of(choices: Sequence[Choice], mine: str, margin: float) -> str:
    """The best policy: mine if it is no worse than the first by more than the margin."""
    changes = {choice.policy: choice.change.mean for choice in choices}
    return mine if changes[mine] <= (1 + changes[choices[0].policy]) * (1 + margin) - 1 else choices[0].policy


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
        posed = conditions.again(schedule.params)
        how = {**trials.options, "repeat": repeat, "limits": False}
        compared = api.compare(trials.machine, posed.workload, [BASELINE], **how)
        draws = trials.metric.draws(compared, BASELINE)
        found.append(Loops(schedule, trials.metric.difference(draws, trials.known[trials.usual])))
    return tuple(sorted(found, key=lambda each: each.change.mean))


def _choices(comparison: Comparison, metric: Metric) -> list[Choice]:
    """All policies but the baseline, those with the least of what is compared first."""
    mix = comparison.mixes()[0]
    first = comparison.select(*mix, BASELINE)

    others = (policy for policy in comparison.policies if policy != BASELINE)
    choices = (Choice(policy, metric.change(comparison.select(*mix, policy), first)) for policy in others)
    return sorted(choices, key=lambda choice: choice.change.mean)
