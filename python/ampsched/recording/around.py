"""What a real scheduler did with a thread around a moment, and what a simulated one does there."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from ampsched import api
from ampsched._core import InputError, Machine, Recording, trace_around
from ampsched.explaining import Explanation, Told
from ampsched.files import read_bytes, shown
from ampsched.policy import policy_info
from ampsched.ranges import Range
from ampsched.recording.observed import clusters_of
from ampsched.recording.replay import replayed
from ampsched.recording.traced import clusters_of_cpus, stated
from ampsched.settings import MS_MAX, SimulateSettings, catalog_of
from ampsched.units import NS_PER_MS

OTHERS_MAX = 8
"""Most other CPUs of which a sentence tells who runs there."""
SAME_NS = 10 * NS_PER_MS
"""Longest between a wake-up of a trace and the same one of its replay (ours): less than a frame."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened to the thread, or instead of it.

    Attributes:
        at_ns: When, since the first event.
        what: ``woken``, ``runs``, ``lost`` (its CPU), ``blocked``, ``ended``, ``gone``, ``instead`` or ``clock``.
        cpu: Where.
        from_cpu: Where it was before, if elsewhere.
        other: Number and name of the other thread that has part in it; 0 for none.
        waited_ns: How long it has waited for the CPU.
        khz: The clock of the CPU, if the trace tells it.
        elsewhere: Who runs on the other CPUs: CPU, number, name; 0 for nobody.
        sentence: The same in a sentence.
    """

    at_ns: int
    what: str
    cpu: int | None
    from_cpu: int | None
    other: tuple[int, str] | None
    waited_ns: int | None
    khz: int | None
    elsewhere: tuple[tuple[int, int, str], ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class Placed:
    """A wake-up and where it led.

    Attributes:
        woken_ns: When, since the first event.
        runs_ns: When the thread got a core.
        core: That core.
    """

    woken_ns: int
    runs_ns: int
    core: int


@dataclass(frozen=True, slots=True)
class Moment:
    """What a trace tells of one thread around one moment.

    Attributes:
        tid: The kernel's number of the thread.
        name: Its name.
        begin_ns: When the first event was, by the trace's clock.
        namesakes: Numbers of the other threads of that name, if it was asked for by name.
        state: What it did at the moment: ``running``, ``waiting``, ``blocked``, ``ended`` or ``unknown``.
        cpu: Where it ran at the moment, or had run before.
        steps: What happened, in the order of time.
        placed: All its wake-ups in the trace.
    """

    tid: int
    name: str
    begin_ns: int
    namesakes: tuple[int, ...]
    state: str
    cpu: int | None
    steps: tuple[Step, ...]
    placed: tuple[Placed, ...]


@dataclass(frozen=True, slots=True)
class Simulated:
    """What a policy does with the same thread in a replay of the trace.

    Attributes:
        policy: The policy.
        explanation: Its story around the moment.
        shift_ns: When the trace's first event was, by the simulation's clock: at most 0.
        placed: All its wake-ups there.
        same: Of wake-ups that are compared, how many led to the same cluster.
        compared: How many are.
        by: What was compared: wake-ups in their ``order``, or those at the same ``time`` if their numbers differ.
        first: The first that did not, by its places in the trace and in the replay, from 0; none if all did.
        why: Why it was put there, each decision in a line.
    """

    policy: str
    explanation: Explanation
    shift_ns: int
    placed: tuple[Placed, ...]
    same: int
    compared: int
    by: str
    first: tuple[int, int] | None
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Replayable:
    """The recording of a trace, and how its threads and times are those of the trace.

    Attributes:
        path: The trace.
        recording: What was done.
        tids: The kernel's number of each thread.
        origin_ns: When the recording begins, by the trace's clock.
        cluster_of_cpu: Of each CPU of the trace its cluster's place among the machine's.
    """

    path: Path
    recording: Recording
    tids: list[int]
    origin_ns: int
    cluster_of_cpu: list[int]


def around(
    path: Path,
    machine: Machine | None,
    thread: str,
    at_ms: float,
    window_ms: float = 5.0,
    cpus: str = "",
) -> tuple[Moment, Replayable | None]:
    """What a trace tells of one thread around one moment, and what can be replayed of it; it is read once.

    Args:
        path: The trace.
        machine: The machine that it is of, for names of clusters; without one nothing can be replayed.
        thread: A thread's name (of several the one with most CPU time) or the kernel's number.
        at_ms: The moment, in ms since the first event.
        window_ms: What is told begins so long before the moment and ends so long after it.
        cpus: Which CPUs are of which of the machine's clusters, as for `import_file`.

    Raises:
        InputError: The trace cannot be read, is over by then, or has no such thread.
    """
    for name, value in (("at_ms", at_ms), ("window_ms", window_ms)):
        Range(0, MS_MAX).check(name, value)
    question = {
        "thread": thread,
        "at_ns": round(at_ms * NS_PER_MS),
        "window_ns": round(window_ms * NS_PER_MS),
    }
    asked = {"clusters": clusters_of(machine, cpus) if machine else []}
    options = json.dumps(stated(machine, cpus)) if machine else None
    text, clocked = trace_around(
        shown(path), read_bytes(path), json.dumps(asked), json.dumps(question), options
    )
    values: dict[str, Any] = json.loads(text)
    names = cpu_names(machine, cpus)
    steps = tuple(
        Step(**each, sentence=_sentence(each, names)) for each in map(_with_tuples, values.pop("steps"))
    )
    placed = tuple(Placed(each["woken_ns"], each["runs_ns"], each["cpu"]) for each in values.pop("placed"))
    moment = Moment(**values | {"namesakes": tuple(values["namesakes"])}, steps=steps, placed=placed)
    if clocked is None or machine is None:
        return moment, None
    owners = clusters_of_cpus(machine, cpus) if cpus else list(machine.cluster_of_core)
    return moment, Replayable(path, *clocked, owners)


def _with_tuples(step: dict[str, Any]) -> dict[str, Any]:
    other = step["other"]
    return step | {
        "other": None if other is None else tuple(other),
        "elsewhere": tuple(map(tuple, step["elsewhere"])),
    }


def cpu_names(machine: Machine | None, cpus: str = "") -> list[str]:
    """Each CPU of a machine with its cluster; empty if the machine is not known."""
    if machine is None:
        return []
    owners = clusters_of_cpus(machine, cpus) if cpus else machine.cluster_of_core
    return [f"CPU {cpu} ({machine.clusters[cluster][0]})" for cpu, cluster in enumerate(owners)]


def cpu_name(names: Sequence[str], cpu: int) -> str:
    """One of these, or its number alone."""
    return names[cpu] if cpu < len(names) else f"CPU {cpu}"


def _sentence(step: dict[str, Any], names: Sequence[str]) -> str:
    place = cpu_name(names, step["cpu"])
    other = _thread(step["other"])
    clock = f" at {step['khz'] / 1e3:.0f} MHz" if step["khz"] else ""
    match step["what"]:
        case "woken":
            return f"is woken by {other or 'an interrupt'} on {place}" + _elsewhere(step)
        case "runs":
            waited = "" if step["waited_ns"] is None else f" after {step['waited_ns'] / NS_PER_MS:.3f} ms"
            moved = step["from_cpu"]
            came = "" if moved is None else f", moved from {cpu_name(names, moved)}"
            return f"runs on {place}{clock}{waited}{came}" + _elsewhere(step)
        case "lost":
            return f"loses {place} to {other or 'nobody'}" + _elsewhere(step)
        case "instead":
            return f"waits while {place} runs {other}"
        case "clock":
            return f"goes on on {place}{clock}"
        case "blocked":
            return f"waits for something else; {place} goes to {other or 'nobody'}"
        case "ended":
            return f"ends on {place}"
        case _:
            return f"is lost from sight on {place}: events do not fit those before, or are missing"


def _thread(other: tuple[int, str] | None) -> str:
    """Name and number of a thread; empty for none."""
    return f"{other[1]} {other[0]}".strip() if other and other[0] else ""


def _elsewhere(step: dict[str, Any]) -> str:
    rows = step["elsewhere"]
    told = [f"{cpu} {f'{name} {tid}' if tid else 'idle'}" for cpu, tid, name in rows[:OTHERS_MAX]]
    more = [f"{len(rows) - OTHERS_MAX} more"] if len(rows) > OTHERS_MAX else []
    return f"; elsewhere: {', '.join(told + more)}" if told else ""


_OF_VENDOR = re.compile(r"[45]\.\d+\.\d+.*-(perf|qgki)|4\.\d+\.\d+.*-(android|\d{7,})", re.IGNORECASE)
"""Releases of phones' kernels with WALT: Qualcomm's configurations (``4.14.190-perf``, ``5.4.86-qgki``), and of Linux 4
those that name Android or have a vendor's number of a build (``4.19.113-26203352``).

Android's common kernels of Linux 5 and later (``5.10.43-android12-9``) have none.
"""


def generation(release: str) -> str:
    """The policy that stands for a kernel: `linux` of the newest version that is not after its release.

    The newest of all if the release is not known, the oldest if it is older than all; `android-4.14` for the kernels of
    phones that have WALT, as their releases tell. Other kernels 5 place by energy, as 6.1 does and 4.14 does not.
    """
    if _OF_VENDOR.match(release):
        return "linux:kernel=android-4.14"
    kernels = next(param.one_of for param in policy_info("linux").params if param.name == "kernel")
    versions = sorted((version for version in kernels if version > 0), key=_order)
    numbers = release.split(".")
    if len(numbers) < 2 or not (numbers[0].isdigit() and numbers[1].split("-")[0].isdigit()):
        return f"linux:kernel={versions[-1]:g}"
    wanted = (int(numbers[0]), int(numbers[1].split("-")[0]))
    fitting = [version for version in versions if _order(version) <= (wanted if wanted[0] != 5 else (6, 1))]
    return f"linux:kernel={(fitting or versions)[-1 if fitting else 0]:g}"


def _order(version: float) -> tuple[int, int]:
    """6.18 comes after 6.6."""
    major, _, minor = f"{version:g}".partition(".")
    return int(major), int(minor or 0)


def simulated(
    traced: Replayable,
    machine: Machine,
    seen: Moment,
    at_ms: float,
    window_ms: float = 5.0,
    policy: str = "",
    **settings: Unpack[SimulateSettings],
) -> Simulated:
    """What a policy does with a thread in a replay of the trace on its machine.

    Args:
        traced: What can be replayed of the trace.
        machine: The machine that it is of.
        seen: What the trace tells of the thread.
        at_ms: The moment, in ms since the trace's first event.
        window_ms: As for `around`.
        policy: The policy; by default `linux` of the trace's kernel.
        settings: Those of `ampsched.explain`.

    Raises:
        InputError: The thread is of the kernel and not replayed, or the replay ends before.
    """
    recording, tids = traced.recording, traced.tids
    if seen.tid not in tids:
        raise InputError(
            f"{traced.path}: {seen.name} {seen.tid} is not replayed: it is of the kernel or of a recorder"
        )
    number = len(tids) - 1 - tids[::-1].index(seen.tid)
    policy = policy or generation(json.loads(recording.info)["kernel"])
    workload = replayed(catalog_of(settings), recording, traced.path).workload
    shift_ns = seen.begin_ns - traced.origin_ns
    at_ns = max(0, round(at_ms * NS_PER_MS) + shift_ns)
    names = _names(recording.threads[number][0], number, workload.apps[0][0])
    whole = _explained(machine, workload, policy, names, at_ns, settings)
    placed = tuple(_placed(whole.events))
    pairs, by = matched(seen.placed, placed, shift_ns)
    of_cpu, of_core = traced.cluster_of_cpu, machine.cluster_of_core
    others = [
        (one, other) for one, other in pairs if of_cpu[seen.placed[one].core] != of_core[placed[other].core]
    ]
    first = others[0] if others else None
    window_ns = round(window_ms * NS_PER_MS)
    events = tuple(told for told in whole.events if abs(told.at_ns - at_ns) <= window_ns)
    why = () if first is None else tuple(_why(whole.events, placed[first[1]]))
    return Simulated(
        policy=policy,
        explanation=_within(whole, events, at_ns, window_ns),
        shift_ns=shift_ns,
        placed=placed,
        same=len(pairs) - len(others),
        compared=len(pairs),
        by=by,
        first=first,
        why=why,
    )


def matched(
    real: Sequence[Placed], made: Sequence[Placed], shift_ns: int
) -> tuple[list[tuple[int, int]], str]:
    """Which wake-ups of a trace and of its replay are compared, by their places, and by what they were matched.

    By their ``order`` if there are as many. Else a replay lacks some, or has some more, and they are matched by
    ``time``: two that are nearest to each other, at most `SAME_NS` apart. Where times have drifted so far that fewer
    than half are, the order counts again, up to where one of them ends.

    Args:
        real: Those of the trace.
        made: Those of the replay.
        shift_ns: When the trace's first event was, by the replay's clock.
    """
    in_order = [(place, place) for place in range(min(len(real), len(made)))]
    if len(real) == len(made) or not in_order:
        return in_order, "order"
    theirs = [each.woken_ns + shift_ns for each in real]
    ours = [each.woken_ns for each in made]
    pairs = []
    for place, at_ns in enumerate(theirs):
        other = _nearest(ours, at_ns)
        if abs(ours[other] - at_ns) <= SAME_NS and _nearest(theirs, ours[other]) == place:
            pairs.append((place, other))
    return (pairs, "time") if 2 * len(pairs) >= len(in_order) else (in_order, "order")


def _nearest(times_ns: Sequence[int], at_ns: int) -> int:
    """The place of the time nearest to another one, of times in ascending order."""
    place = bisect_left(times_ns, at_ns)
    places = [each for each in (place - 1, place) if 0 <= each < len(times_ns)]
    return min(places, key=lambda each: abs(times_ns[each] - at_ns))


def _names(name: str, number: int, app: str) -> list[str]:
    """How the replay may call a thread."""
    base = f"{name}.{number}" if name else f"t{number}"
    return [f"{app}/{base}", f"{app}/{base}.0"]


def _explained(
    machine: Machine,
    workload: api.WorkloadLike,
    policy: str,
    names: Sequence[str],
    at_ns: int,
    settings: SimulateSettings,
) -> Explanation:
    """All that happens to a thread in a simulation, whichever of the names it has."""

    def ask(name: str) -> Explanation:
        at_ms = at_ns / NS_PER_MS
        return api.explain(machine, workload, policy, thread=name, at_ms=at_ms, window_ms=MS_MAX, **settings)

    for name in names[:-1]:
        try:
            return ask(name)
        except InputError as error:
            if "no thread" not in str(error):
                raise
    return ask(names[-1])


def _placed(events: Sequence[Told]) -> Iterator[Placed]:
    """Wake-ups and where they led."""
    woken: Told | None = None
    for told in events:
        if told.what == "woken":
            woken = told
        elif told.what == "runs" and woken is not None and told.core is not None:
            yield Placed(woken.at_ns, told.at_ns, told.core)
            woken = None


def _why(events: Sequence[Told], placed: Placed) -> Iterator[str]:
    """What was decided from a wake-up to a core, and by what values."""
    for told in events:
        if placed.woken_ns <= told.at_ns <= placed.runs_ns and told.what != "passed":
            details = told.details()
            yield f"{told.sentence}{f' [{details}]' if details else ''}"


def _within(whole: Explanation, events: tuple[Told, ...], at_ns: int, window_ns: int) -> Explanation:
    """The part of an explanation within a window."""
    from_ns, to_ns = max(whole.from_ns, at_ns - window_ns), min(whole.to_ns, at_ns + window_ns)
    return replace(whole, events=events, from_ns=from_ns, to_ns=to_ns)
