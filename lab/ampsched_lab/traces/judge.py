"""How much of the CPU time each policy places as the traced chip did.

Threads of one name count together: equal threads may change places. *Misplaced* is the share of the programs' CPU time
that is on another class of cores than in the trace: the mean over names, weighed by their CPU time in the trace, of
half the sum of the differences of shares.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import ampsched
from ampsched import Machine
from ampsched.catalog import Catalog
from ampsched.recording.imports import import_file
from ampsched.recording.observed import Observed, observe
from ampsched.recording.replay import replayed
from ampsched.recording.traced import ratio_of_speeds
from ampsched_lab.traces.data import Trace, traces

NEAREST = "nearest to what scheduled"
POLICIES = ("linux", "linux:kernel=android-4.14", "eas", "gts")
"""What is compared beside the policy that is nearest to what scheduled."""
TRACE = "the trace"
UNBOUNDED = ", all clocks"
"""Behind a policy: on the machine as its file describes it, whatever bounds the trace tells."""
TRIVIAL_OTHERS = "mean of the other traces"
TRIVIAL_OWN = "each thread as the whole trace"

CLASSES_MAX = 3
"""Classes of cores of a chip, at most."""

NUMBERS = re.compile(r"\.\d+(\.0)?$")
"""What a replay adds to a thread's name: its number in the recording, and that of the instance if it was created."""

Times = dict[str, dict[int, int]]
"""CPU time in ns by a thread's name and the class of cores."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A policy beside a trace.

    Attributes:
        trace: The trace's name.
        policy: The policy, or how a trivial predictor predicts.
        is_nearest: Whether it is the one that is nearest to what scheduled.
        misplaced: Share of the CPU time on another class of cores, 0 to 1.
        by_class: Shares of the CPU time by class of cores, the slowest first.
        cpu_error: Of the CPU time, relative; none for trivial predictors.
        clocks_off: Half the sum of the differences of shares of time at each clock, 0 to 1; none without clocks.
        latency_p50: (Wake-up latency simulated) / (in the trace), median; none if it is not known.
        latency_p95: The same of 95 %.
    """

    trace: str
    policy: str
    misplaced: float
    by_class: list[float]
    is_nearest: bool = False
    cpu_error: float | None = None
    clocks_off: float | None = None
    latency_p50: float | None = None
    latency_p95: float | None = None


def shares(times: Mapping[int, int]) -> dict[int, float]:
    """Shares of CPU time by class."""
    whole = sum(times.values())
    return {place: ns / whole for place, ns in times.items()} if whole else {}


def distance(one: Mapping[Any, float], other: Mapping[Any, float]) -> float:
    """Half the sum of the differences of shares, 0 to 1; 1 if only one has any."""
    if not one or not other:
        return float(bool(one) or bool(other))
    return sum(abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in {*one, *other}) / 2


def misplaced(real: Times, predicted: Mapping[str, Mapping[int, float]]) -> float:
    """Share of the CPU time on another class of cores; predicted are shares by name."""
    whole = sum(sum(times.values()) for times in real.values())
    wrong = sum(
        sum(times.values()) * distance(shares(times), predicted.get(name, {})) for name, times in real.items()
    )
    return wrong / whole


def whole(real: Times) -> dict[int, float]:
    """Shares of all CPU time by class."""
    sums: Counter[int] = Counter()
    for times in real.values():
        sums.update(times)
    return shares(sums)


def _real(seen: Observed, class_of_cpu: Sequence[int], names: set[str]) -> Times:
    """CPU time of a trace's programs."""
    found: Times = defaultdict(lambda: defaultdict(int))
    for thread in seen.threads:
        if thread.name in names:
            for cpu, ns in thread.cpu_ns.items():
                found[thread.name][class_of_cpu[cpu]] += ns
    return dict(found)


def _simulated(outcome: ampsched.Outcome) -> Times:
    found: Times = defaultdict(lambda: defaultdict(int))
    for thread in outcome.threads:
        name = NUMBERS.sub("", thread.name)
        for place, ns in enumerate(thread.class_ns):
            found[name][place] += ns
    return dict(found)


def _classes(machine: Machine, outcome: ampsched.Outcome) -> list[int]:
    """The class of each CPU, by its place among the outcome's."""
    place = {name: at for at, each in enumerate(outcome.classes) for name in each.clusters}
    return [place[machine.clusters[cluster][0]] for cluster in machine.cluster_of_core]


def _clocks_off(seen: Observed, outcome: ampsched.Outcome) -> float | None:
    """Mean over clusters, weighed by their time in the trace."""
    if not seen.clock_events:
        return None
    sums = []
    for place, cluster in enumerate(outcome.clusters):
        real: Counter[int] = Counter()
        for cpu in seen.of_cluster(place):
            real.update({round((clock.khz or 0) / 1e3): clock.ns for clock in cpu.clocks if clock.khz})
        if real:
            simulated = Counter(dict(cluster.residency))
            sums.append((real.total(), distance(shares(real), shares(simulated))))
    return sum(ns * off for ns, off in sums) / sum(ns for ns, _ in sums)


def _ratio(simulated_ns: int, real_ns: int) -> float | None:
    return simulated_ns / real_ns if real_ns else None


def _total(times: Times) -> int:
    return sum(sum(each.values()) for each in times.values())


def with_all_clocks(machine: Machine) -> Machine:
    """The machine, on which replays do not keep the bounds of a trace's clocks."""
    return machine.part([f"{name}@-" for name, *_ in machine.clusters])


def judge(trace: Trace) -> tuple[Times, list[Judged]]:
    """The trace's own CPU times, and what each policy makes of it."""
    catalog = Catalog.shipped()
    machine = catalog.machine(trace.machine)
    seen = observe(trace.path, machine)
    recording = import_file(trace.path, traced=machine)
    ratio = ratio_of_speeds(json.loads(recording.info))
    workload = replayed(catalog, recording, trace.path, speedup=ratio).workload
    names = {name for name, *_ in recording.threads}
    governor = "schedutil" if seen.clock_events else "performance"
    rows, real = [], Times()
    asked = {policy: (policy, machine) for policy in dict.fromkeys((trace.policy, *POLICIES))}
    if seen.clock_events:
        asked[f"{trace.policy}{UNBOUNDED}"] = (trace.policy, with_all_clocks(machine))
    for name, (policy, where) in asked.items():
        outcome = ampsched.simulate(where, workload, policy, governor=governor)
        times, real = _simulated(outcome), _real(seen, _classes(machine, outcome), names)
        rows.append(
            Judged(
                trace.name,
                name,
                misplaced(real, {name: shares(each) for name, each in times.items()}),
                _by_class(whole(times)),
                name == trace.policy,
                _total(times) / _total(real) - 1,
                _clocks_off(seen, outcome),
                _ratio(outcome.latency.p50_ns, seen.latency.p50_ns),
                _ratio(outcome.latency.p95_ns, seen.latency.p95_ns),
            )
        )
    return real, rows


def _by_class(found: Mapping[int, float]) -> list[float]:
    return [found.get(place, 0.0) for place in range(max(found, default=0) + 1)]


def trivial(name: str, times: Mapping[str, Times]) -> list[Judged]:
    """What needs no scheduler: shares of the whole trace, and the mean of those of the others."""
    own = whole(times[name])
    others = [whole(each) for other, each in times.items() if other != name]
    predicted = {TRIVIAL_OWN: own}
    if others:
        predicted[TRIVIAL_OTHERS] = {
            place: mean(each.get(place, 0.0) for each in others) for place in range(CLASSES_MAX)
        }
    real = times[name]
    return [
        Judged(name, how, misplaced(real, dict.fromkeys(real, each)), _by_class(each))
        for how, each in predicted.items()
    ]


def judged(folder: Path) -> list[dict[str, Any]]:
    """All traces of a folder, as rows for JSON."""
    times, rows = {}, list[Judged]()
    for trace in traces(folder):
        times[trace.name], found = judge(trace)
        rows.append(Judged(trace.name, TRACE, 0.0, _by_class(whole(times[trace.name]))))
        rows += found
    for name in times:
        rows += trivial(name, times)
    return [asdict(row) for row in rows]
