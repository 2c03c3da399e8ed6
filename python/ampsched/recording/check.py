"""Whether a recording's replay can be believed elsewhere: laws that it must obey at several speeds.

That it takes as long as the recording on the recording's own cores is easy: whatever waits there for the wrong thing
waits as long as it did. So the replay is executed at other speeds and on one core, too, where a wait without its cause
shows. What is compared comes from the recording and not from the replay's code: work, who created, joined and woke
whom, and the critical path (`Recording.laws`).
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from ampsched import api
from ampsched._core import Catalog as CatalogCore
from ampsched._core import InputError, Machine, Recording, Workload
from ampsched.catalog import Catalog
from ampsched.execution import job_of
from ampsched.limits import Limit
from ampsched.outcome_parts import ThreadOutcome
from ampsched.policy import PolicySpec
from ampsched.recording.machine import recorded_machine
from ampsched.recording.replay import HANDED_OUT, MISS_MAX, Sharing, replayed
from ampsched.results import Outcome

LINUX = "linux"
"""What has scheduled, unless somebody knows better."""
NOISE = "idle"
"""The system's own work beside the program: its seeds make the intervals."""
SPEEDS = {
    "at half the speed": 0.5,
    "at the recorded speed": 1.0,
    "at twice the speed": 2.0,
    "at ten times the speed": 10.0,
}
"""Speeds at which the replay is executed on as many cores as the recording's, by the recording's, in words."""
ONE_CORE = "on one core"
"""Where it is executed besides: on one core of full speed."""
ROUNDING_NS = 1_000
"""Times and amounts are whole ns, and whole instructions: they may miss by so much, in ns, in all."""
WORK_MISS = 0.01
"""Part by which a thread may do more or less than it did: instructions are counted per core type, in whole numbers."""
EARLY_MISS = 0.01
"""Part of the time since the begin by which something may come before its cause: as for work, which sets that time."""
BOUND_MISS = 0.01
"""Part by which the makespan may be less than its bounds: as for work, which sets them."""
ELASTICITY_MISS = 0.1
"""By how much an elasticity may be below 0 or above 1: time slices and balancing do not scale with the speed, so that
threads that compete for cores are placed otherwise."""
PLACING_NS = 12_000_000
"""By how much longer one of two times may be besides, for the same reason: three ticks of 4 ms, as Linux balances by
ticks. A short program may end by so much later for threads that wait on one core while another one idles."""

Threads = dict[int, ThreadOutcome]


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The replay on the recording's own cores beside the recording.

    Attributes:
        recorded_s: As long as it took, without what recording cost.
        replayed_s: As long as its replay takes, beside the system's noise.
        handed_out_s: As long as a replay takes that hands out anew what was handed out, if that is not what is
            replayed; none if it is.
    """

    recorded_s: float
    replayed_s: float
    handed_out_s: float | None = field(default=None, kw_only=True)

    @property
    def error(self) -> float:
        """By how much the replay takes longer: 0.05 is 5 %."""
        return self.replayed_s / self.recorded_s - 1

    @property
    def sharing(self) -> Sharing:
        """Who does what of shared work in this replay."""
        return HANDED_OUT if self.handed_out_s is None else "none"

    @property
    def notes(self) -> tuple[str, ...]:
        """That nothing is handed out anew, if so, and why."""
        if self.handed_out_s is None:
            return ()
        return (
            "each thread does what it did: with work handed out anew the replay takes "
            f"{self.handed_out_s:.3g} s on the recording's own cores, the program took {self.recorded_s:.3g} s",
        )


@dataclass(frozen=True, slots=True)
class Check(Reproduction):
    """How good a replay is: the same, and what other speeds show.

    Attributes:
        makespans_s: Without noise, at each of `SPEEDS` and on one core, by the words for it.
        follows: Share of the makespan that shrinks on faster cores, 0 to 1.
        rest: The other share by what it is: words of `summary.KEPT`, which add up to 1 with `follows`.
        violations: Laws that the replay breaks, a line each: which, where, by how much.
    """

    makespans_s: Mapping[str, float]
    follows: float
    rest: Mapping[str, float]
    violations: tuple[str, ...]

    @property
    def elasticities(self) -> list[float]:
        """-d ln(makespan) / d ln(speed) between successive speeds: 1 of work, 0 of waits."""
        times = list(zip(SPEEDS.values(), (self.makespans_s[where] for where in SPEEDS), strict=True))
        return [elasticity(first, second) for first, second in pairwise(times)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "recorded_s": self.recorded_s,
            "replayed_s": self.replayed_s,
            "follows": self.follows,
            "rest": dict(self.rest),
            "makespans_s": dict(self.makespans_s),
            "elasticities": self.elasticities,
            "violations": list(self.violations),
        }


@dataclass(frozen=True, slots=True)
class _Execution:
    """One of the replay's executions."""

    where: str
    speed: float
    outcome: Outcome
    bounds_ns: Mapping[str, float]
    """What it takes at least, by the words for why."""
    threads: Threads
    """By their number in the recording."""


def check(recording: Recording, path: Path, catalog: Catalog, policy: str = LINUX, seeds: int = 3) -> Check:
    """Replays a recording on its own cores under what scheduled it, at several speeds, and on one core.

    Args:
        recording: The recording.
        path: Its file, for messages.
        catalog: Has machines and profiles.
        policy: What scheduled.
        seeds: Number of seeds of the system's noise.

    Raises:
        InputError: It has no events, or its cores are not known.
    """
    machine = _own_machine(recording, path, catalog)
    own = reproduce(recording, path, catalog, policy, seeds)
    workloads = {speed: _workload(recording, path, catalog, speed) for speed in SPEEDS.values()}
    settings = [(where, machine, speed) for where, speed in SPEEDS.items()]
    settings.append((ONE_CORE, _one_core(machine), 1.0))
    work_ns, causes, paths = recording.laws([speed for *_, speed in settings])
    names = [name for name, *_ in recording.threads]
    executions = []
    for (where, on, speed), parts in zip(settings, paths, strict=True):
        outcome = api.simulate(on, workloads[speed], policy, core_order="as-is")
        job = job_of({"core_order": "as-is"}, on, workloads[speed], PolicySpec.of(policy))
        bounds_ns = {
            "the critical path": sum(parts.values()),
            "the work over the cores' capacity": Limit.of(job, (1.0,)).makespan_ns,
        }
        executions.append(_Execution(where, speed, outcome, bounds_ns, _by_number(outcome, names)))
    once, twice = (list(SPEEDS.values()).index(speed) for speed in (1.0, 2.0))
    once_ns = max(executions[once].outcome.makespan_ns, 1)
    follows = _follows(once_ns, executions[twice].outcome.makespan_ns)
    violations = [
        *_violations(executions, [name or "thread" for name in names], work_ns, causes),
        *_elasticities(executions[: len(SPEEDS)], _spread(recording)),
    ]
    return Check(
        own.recorded_s,
        own.replayed_s,
        handed_out_s=own.handed_out_s,
        makespans_s={each.where: each.outcome.makespan_ns / 1e9 for each in executions},
        follows=follows,
        rest=_rest(1 - follows, {part: ns / once_ns for part, ns in paths[twice].items()}),
        violations=tuple(violations),
    )


def _follows(once_ns: int, twice_ns: int) -> float:
    """By times at the recorded speed and at twice the speed."""
    return min(1.0, max(0.0, 2 * (1 - twice_ns / max(once_ns, 1))))


def reproduce(
    recording: Recording, path: Path, catalog: Catalog, policy: str = LINUX, seeds: int = 3
) -> Reproduction:
    """Replays a recording on its own cores only, under what scheduled it; see `check`.

    What was handed out is handed out anew, unless that misses the recording by more than `MISS_MAX` and no more than
    that is missed if each thread does what it did: then who takes what is not what it was taken for.

    Raises:
        InputError: It has no events, or its cores are not known.
    """
    return _reproduced(recording, path, catalog.core, policy, seeds)


@lru_cache(maxsize=8)
def _reproduced(recording: Recording, path: Path, core: CatalogCore, policy: str, seeds: int) -> Reproduction:
    """The same, once for each recording: whoever simulates it asks."""
    catalog = Catalog(core)
    machine = _own_machine(recording, path, catalog)
    info = json.loads(recording.info)
    recorded_s = info["wall_ns"] / 1e9 / (info["slowdown"] or 1.0)

    def own(sharing: Sharing) -> float:
        workload = replayed(catalog, recording, path, sharing=sharing).workload
        return makespan_s(machine, workload, policy, seeds)

    found = Reproduction(recorded_s, own(HANDED_OUT))
    if abs(found.error) <= MISS_MAX:
        return found
    kept = Reproduction(recorded_s, own("none"), handed_out_s=found.replayed_s)
    return kept if abs(kept.error) <= MISS_MAX else found


def makespan_s(machine: Machine, workload: api.WorkloadLike, policy: str, seeds: int) -> float:
    """Mean makespan of a workload beside the system's noise, over seeds 1 to `seeds`, in s."""
    outcomes = (
        api.simulate(machine, workload, policy, noise=NOISE, seed=seed, core_order="as-is")
        for seed in range(1, seeds + 1)
    )
    return fmean(outcome.makespan_ns for outcome in outcomes) / 1e9


def elasticity(first: tuple[float, float], second: tuple[float, float]) -> float:
    """-d ln(time) / d ln(speed) between two pairs of speed and time."""
    return -math.log(max(second[1], 1e-9) / max(first[1], 1e-9)) / math.log(second[0] / first[0])


def _own_machine(recording: Recording, path: Path, catalog: Catalog) -> Machine:
    info = json.loads(recording.info)
    if not info["wall_ns"] or not recording.threads:
        raise InputError(f"{path}: nothing was recorded")
    return recorded_machine(info, catalog, str(path))


def _workload(recording: Recording, path: Path, catalog: Catalog, speed: float) -> Workload:
    """The replay for which laws hold: each thread does what it did, as who takes what of shared work is chance."""
    return replayed(catalog, recording, path, speed=speed, sharing="none").workload


def _one_core(machine: Machine) -> Machine:
    """One of the machine's fastest cores."""
    fast = machine.only_big()
    first, *others = (name for name, *_ in fast.clusters)
    return fast.part([f"{first}=1", *(f"{name}=0" for name in others)])


def _spread(recording: Recording) -> float:
    """Speed of the recording's fastest core by that of its slowest."""
    speeds = [core["speed"] for core in json.loads(recording.info)["cores"]]
    return max(speeds, default=1.0) / max(min(speeds, default=1.0), 1e-3)


def _rest(share: float, parts: Mapping[str, float]) -> dict[str, float]:
    """What a share of the makespan consists of that does not shrink.

    The waits on the critical path at twice the speed are those that were not hidden behind work there. They cannot be
    more than the share; what they do not explain is what scheduling takes.
    """
    waits = {part: length for part, length in parts.items() if part != "work"}
    known = sum(waits.values())
    factor = min(1.0, share / known) if known > 0 else 0.0
    found = {part: length * factor for part, length in waits.items()}
    return {**found, "scheduling": max(0.0, share - sum(found.values()))}


def _by_number(outcome: Outcome, names: list[str]) -> Threads:
    """Replayed threads by their numbers in the recording.

    Their names are `NAME.NUMBER`, or `tNUMBER` if they have none, with `.0` behind it if another one has started them.
    """
    numbers = defaultdict(list)
    for end in ("", ".0"):
        for number, name in enumerate(names):
            numbers[f"{name}.{number}{end}" if name else f"t{number}{end}"].append(number)
    found: Threads = {}
    for thread in outcome.threads:
        number = next(number for number in numbers[thread.name] if number not in found)
        found[number] = thread
    return found


def _violations(
    executions: list[_Execution],
    names: list[str],
    work_ns: list[int | None],
    causes: list[tuple[str, int, int, int]],
) -> Iterator[str]:
    """Of each law the worst that each execution shows."""
    # Instructions tell the work done on cores of any kind. What a ns of work is in them, a core of full speed shows.
    alone = executions[-1].outcome
    busy_ns = sum(core.busy_ns - core.overhead_ns for core in alone.cores)
    rate = max(sum(thread.instructions for thread in alone.threads), 1) / max(busy_ns, 1)
    for each in executions:
        done_ns = {number: each.speed * thread.instructions / rate for number, thread in each.threads.items()}
        yield from _work(each, names, work_ns, done_ns)
        yield from _causality(each, names, causes)
        yield from _bounds(each)


def _elasticities(executions: list[_Execution], spread: float) -> Iterator[str]:
    """Faster cores take no longer, and save no more than they are faster.

    What is last may be on a slow core at one speed and on a fast one at the other: `spread` is by how much they differ.
    """
    for slower, faster in pairwise(executions):
        slow_ns, fast_ns = slower.outcome.makespan_ns, faster.outcome.makespan_ns
        ratio = faster.speed / slower.speed
        more = spread * ratio**ELASTICITY_MISS
        grows = fast_ns > slow_ns * more + PLACING_NS
        shrinks = slow_ns > fast_ns * ratio * more + PLACING_NS
        if grows or shrinks:
            value = elasticity((slower.speed, slow_ns), (faster.speed, fast_ns))
            yield (
                f"the elasticity of its time is not within 0 and 1: it is {value:.2f} between {_ms(slow_ns)} "
                f"{slower.where} and {_ms(fast_ns)} {faster.where}"
            )


def _work(
    execution: _Execution, names: list[str], work_ns: list[int | None], done_ns: Mapping[int, float]
) -> Iterator[str]:
    """Every thread does what it did, however fast the cores are."""
    misses = [
        (abs(done_ns.get(number, 0.0) - work) - WORK_MISS * work - ROUNDING_NS, number)
        for number, work in enumerate(work_ns)
        if work is not None
    ]
    excess_ns, number = max(misses, default=(0.0, 0))
    if excess_ns > 0:
        yield (
            f"work is not conserved {execution.where}: {names[number]}.{number} does {_ms(done_ns.get(number, 0.0))} "
            f"of {_ms(work_ns[number] or 0)}"
        )


def _causality(
    execution: _Execution, names: list[str], causes: list[tuple[str, int, int, int]]
) -> Iterator[str]:
    """Nobody begins before whoever creates it has come there, or ends before what it has waited for."""
    threads, worst = execution.threads, (0.0, "")
    for bond, cause, effect, work in causes:
        first, later = threads.get(cause), threads.get(effect)
        if first is None or later is None:
            continue  # its work is missing
        since_ns = first.end_ns if bond == "joined" else first.start_ns
        at_ns = later.start_ns if bond == "created" else later.end_ns
        least_ns = since_ns + work / execution.speed
        early_ns = least_ns - at_ns
        if early_ns > max(worst[0], EARLY_MISS * least_ns + ROUNDING_NS):
            does = "begins" if bond == "created" else "ends"
            worst = (
                early_ns,
                f"an effect comes before its cause {execution.where}: {names[effect]}.{effect}, {bond} by "
                f"{names[cause]}.{cause}, {does} after {_ms(at_ns)}, {_ms(early_ns)} too early",
            )
    if worst[1]:
        yield worst[1]


def _bounds(execution: _Execution) -> Iterator[str]:
    """No execution is shorter than the critical path, or than its work over what the cores can do."""
    took_ns = execution.outcome.makespan_ns
    for bound, least_ns in execution.bounds_ns.items():
        if took_ns < least_ns * (1 - BOUND_MISS) - ROUNDING_NS:
            yield f"its time is below {bound} {execution.where}: it is {_ms(took_ns)} of {_ms(least_ns)} at least"


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.4g} ms"
