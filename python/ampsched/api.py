"""The functions that most users need: `simulate` and `compare`, `limit` and `optimum`, and Prop-SP's `references`."""

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Unpack

from ampsched import _core
from ampsched._core import InputError, Machine, Question, Workload
from ampsched.alone import SCHEMES, Reference, run_alone
from ampsched.catalog import machine_note
from ampsched.comparison import Comparison
from ampsched.execution import (
    BASELINE_POLICY,
    Mix,
    Progress,
    alone_on_big,
    draw_one,
    explain_one,
    job_of,
    ordered,
    run_mixes,
    run_one,
)
from ampsched.explaining import Explanation
from ampsched.files import shown
from ampsched.governor import Governors
from ampsched.held_clocks import with_held_clocks
from ampsched.limits import NO_LIMIT, OBJECTIVES, QUANTUM_US_MAX, SIMULATIONS_MAX, Limit, Objective, Optimum
from ampsched.naming import check_known
from ampsched.noise import Noise
from ampsched.over import Over, OverLike
from ampsched.overhead import Overhead
from ampsched.placed import Placed, named_apart, noise_of, placed_apart
from ampsched.policy import PolicyLike, PolicySpec
from ampsched.ranges import Range, as_number
from ampsched.results import Outcome
from ampsched.settings import (
    MS_MAX,
    AloneSettings,
    CompareSettings,
    CoreOrder,
    MixSettings,
    ReferenceSettings,
    RunSettings,
    SimulateSettings,
    catalog_of,
    only,
    takes_settings,
)
from ampsched.turns import Timeline
from ampsched.uncertainty import MARGIN, MARGIN_RANGE
from ampsched.units import NS_PER_MS

MachineLike = str | Path | Machine
WorkloadLike = str | Path | Workload


@takes_settings
def simulate(
    machine: MachineLike,
    workload: WorkloadLike,
    policy: PolicyLike = "cfs",
    *,
    trace: str | Path | None = None,
    **settings: Unpack[SimulateSettings],
) -> Outcome:
    """Simulates one workload under one policy.

    Args:
        machine: Name (``"2B2S"``), path of a machine file, or a machine.
        workload: Name (``"sync-2"``), program (``"ferret"``), path of a workload, program or rt-app file, or a
            workload.
        policy: Name with parameters (``"colab:literal=1"``), or a policy written in Python (see `Policy`).
        trace: Write a trace for https://ui.perfetto.dev to this file.

    Raises:
        InputError: If something does not exist or is wrong, or the workload cannot go on.

    Example:
        >>> outcome = simulate("2B2S", "sync-1", "cfs")
        >>> outcome.makespan_ns > 0
        True
    """
    spec = PolicySpec.of(policy)
    return run_one(_job(machine, workload, spec, settings), spec, Path(trace) if trace else None)


@takes_settings
def explain(
    machine: MachineLike,
    workload: WorkloadLike,
    policy: PolicyLike = "cfs",
    *,
    thread: str | int,
    at_ms: float,
    window_ms: float = 5.0,
    **settings: Unpack[SimulateSettings],
) -> Explanation:
    """Simulates one workload under one policy and tells what happened to one thread around a moment, and why.

    Args:
        machine: As for `simulate`.
        workload: As for `simulate`.
        policy: As for `simulate`.
        thread: The thread: its number, or ``"app/thread"``; of several of that name the one that started last before
            the moment.
        at_ms: The moment, in ms since the start.
        window_ms: What is told begins so long before the moment and ends so long after it.

    Raises:
        InputError: If something does not exist or is wrong, the workload cannot go on, no such thread has started by
            then, or the run was over before.

    Example:
        >>> answer = explain("2B2S", "sync-1", "cfs", thread=0, at_ms=5)
        >>> answer.state in ("running", "waiting", "blocked")
        True
    """
    for name, value in (("at_ms", at_ms), ("window_ms", window_ms)):
        Range(0, MS_MAX).check(name, value)
    spec = PolicySpec.of(policy)
    question = Question(shown(str(thread)), round(at_ms * NS_PER_MS), round(window_ms * NS_PER_MS))
    return explain_one(_job(machine, workload, spec, settings), spec, question)


@takes_settings
def timeline(
    machine: MachineLike,
    workload: WorkloadLike,
    policy: PolicyLike = "cfs",
    **settings: Unpack[SimulateSettings],
) -> Timeline:
    """Simulates one workload under one policy and tells which thread had which core when.

    Args:
        machine: As for `simulate`.
        workload: As for `simulate`.
        policy: As for `simulate`.

    Raises:
        InputError: If something does not exist or is wrong, or the workload cannot go on.

    Example:
        >>> found = timeline("2B2S", "sync-1", "cfs")
        >>> sum(turn.end_ns - turn.start_ns for turn in found.turns) > found.outcome.makespan_ns
        True
    """
    spec = PolicySpec.of(policy)
    on = ordered(catalog_of(settings).machine(machine), settings["core_order"])
    return draw_one(_job(machine, workload, spec, settings), spec, on)


@takes_settings
def compare(
    machine: MachineLike | Sequence[MachineLike],
    workload: WorkloadLike | Sequence[WorkloadLike],
    policies: Sequence[PolicyLike] = ("linux", "wash", "colab"),
    *,
    limits: bool = True,
    margin: float = MARGIN,
    over: OverLike | None = None,
    progress: Progress | None = None,
    **settings: Unpack[CompareSettings],
) -> Comparison:
    """Compares policies on workloads and machines.

    Each combination is run with seeds `seed` to `seed + repeat - 1` and, as COLAB does, with both core
    orders, whose results are averaged. Every application is also run alone on the machine of only big cores,
    which H_ANTT and H_STP need, and alone on the same machine, which ANTT and STP need. What runs alone has the
    same settings but for overhead and governor: policies cost nothing there, and frequencies are the highest.

    Args:
        machine: One machine or several; see `simulate`.
        workload: One workload or several; see `simulate`.
        policies: Policies; the others are measured against the first.
        limits: Compute also what no policy can beat.
        margin: By how much worse than the best other policies may be and still count as no worse: 0.01 is 1 %.
        over: A parameter with many values: ``"n=1..16"`` (whole numbers), ``"n=1..16/5"`` (step 5), ``"n=1..64x2"``
            (doubled), ``"colab:decay=0.5..1:6"`` (six values of a policy's), ``"big=1,2,4"`` (cores of a cluster),
            ``"big@=600..2000:8"`` (its highest clock in MHz); or ``{"n": [1, 2, 4]}``. Whatever has the parameter is
            simulated with each value.
        progress: Called with the number of finished simulations and of all.

    Raises:
        InputError: If something does not exist or is wrong, or a workload cannot go on.

    Example:
        >>> result = compare("2B2S", "sync-1", ["cfs", "static"])
        >>> [row.policy for row in result.summary()]
        ['cfs', 'static']
    """
    MARGIN_RANGE.check("margin", margin)
    catalog = catalog_of(settings)
    on_what, asked = _each(machine, "machine"), _each(workload, "workload")
    column = None
    if over is not None:
        varied = Over.of(over).varied(on_what, asked, policies, catalog)
        on_what, asked, policies, column = varied.machines, varied.workloads, varied.policies, varied.column
    machines = named_apart([catalog.machine(each) for each in on_what], on_what)
    noise = Noise.of(settings["noise"])
    placed = [
        each
        for on in machines
        for each in placed_apart([Placed.of(catalog, each, on) for each in asked], asked)
    ]
    is_recorded = any(each.conditions for each in placed)
    settings = {**settings, "noise": noise_of(noise, has_recordings=is_recorded)}
    specs = [PolicySpec.of(policy) for policy in policies]
    _check_distinct([each.name for each in machines], "machine")
    _check_distinct([each.workload.name for each in placed[: len(asked)]], "workload")
    _check_distinct([spec.label for spec in specs], "policy")
    seeds = range(settings["seed"], settings["seed"] + settings["repeat"])
    drawn = [_of_seeds(each, seeds, settings) for each in placed]
    mixes = [
        Mix(each.machine, order, mix, spec, seed)
        for (each, of_seeds), spec in product(zip(placed, drawn, strict=True), specs)
        for order in core_orders(settings, each.machine)
        for seed, mix in of_seeds.items()
    ]
    how = only(MixSettings, settings)
    runs = run_mixes(
        mixes, how, same_machine=True, limits=limits, processes=settings["jobs"], progress=progress
    )
    is_governed = Governors.of(settings["governor"]) != Governors()
    held = (with_held_clocks(each.machine, each.workload, is_governed).note for each in placed)
    notes = [
        *_notes(settings),
        *(note for each in placed for note in each.notes(len(placed) > 1)),
        *filter(None, dict.fromkeys(held)),
        *(note for each in machines for note in machine_note(each)),
        *([NO_LIMIT] if limits and any(run.limit is None for run in runs) else []),
    ]
    recorded = {
        (each.machine.name, each.workload.name): each.conditions for each in placed if each.conditions
    }
    labels = tuple(spec.label for spec in specs)
    return Comparison(labels, tuple(runs), tuple(notes), recorded, margin, column)


@takes_settings
def references(
    machine: MachineLike,
    workload: WorkloadLike,
    *,
    schemes: Sequence[PolicyLike] = SCHEMES,
    progress: Progress | None = None,
    **settings: Unpack[ReferenceSettings],
) -> list[Reference]:
    """Measures how long each program takes alone: at its best on the machine, and on its slow cores only.

    These are CT_fast and CT_slow of Prop-SP, which `ampsched.metrics.asp` and slowdowns need. CT_fast is the
    least of the times under each of the schemes, and on the fast cores alone.

    Args:
        machine: See `simulate`.
        workload: See `simulate`.
        schemes: Policies that distribute fast-core time over the threads of a program.
        progress: Called with the number of finished simulations and of all.

    Raises:
        InputError: If something does not exist or is wrong, or a program cannot go on.

    Example:
        >>> found = references("opteron-2FC-2SC-ideal", "cpu-bound")
        >>> [(each.fast_ns // 10**6, each.slow_ns // 10**6) for each in found]
        [(10000, 23000)]
    """
    specs = [PolicySpec.of(scheme) for scheme in schemes]
    on, apps, how = _alone(machine, workload, settings)
    return run_alone(on, apps, how, schemes=specs, processes=settings["jobs"], progress=progress)


@takes_settings
def limit(
    machine: MachineLike,
    workload: WorkloadLike,
    **settings: Unpack[ReferenceSettings],
) -> Limit:
    """What no policy can beat: lower bounds of turnarounds, H_ANTT and makespan, an upper bound of H_STP.

    Args:
        machine: See `simulate`.
        workload: See `simulate`.

    Raises:
        InputError: If something does not exist or is wrong, a program cannot go on, or is repeated with amounts of
            which too little is known.

    Example:
        >>> limit("2B2S", "sync-1").h_antt >= 1
        True
    """
    job, alone_ns = _bounded(machine, workload, settings)
    found = Limit.of(job, alone_ns)
    if settings["repetitions"] is not None and not found.is_telling(alone_ns):
        raise InputError(f"repetitions = {settings['repetitions']}: {NO_LIMIT}")
    return found


@takes_settings
def optimum(
    machine: MachineLike,
    workload: WorkloadLike,
    *,
    objective: Objective = "h_antt",
    quantum_us: float | None = None,
    simulations: int = 20_000,
    tolerance: float = 0.001,
    **settings: Unpack[ReferenceSettings],
) -> Optimum:
    """Searches the best schedule of a small workload: at most 6 threads on 4 cores.

    Schedules change when a thread starts, wakes, waits or ends, and at multiples of a quantum; no core idles while a
    thread waits that may run there. The simulator is the judge, costs included. The result is reproducible.

    Args:
        machine: See `simulate`; with one cluster per class of cores.
        workload: See `simulate`.
        objective: What is to be best: ``"h_antt"``, ``"h_stp"`` or ``"makespan"``.
        quantum_us: The quantum; by default a 16th of the limit of the makespan.
        simulations: Simulations at most.
        tolerance: Schedules that are better by less than this part need not be found.

    Raises:
        InputError: If the workload is too large or not of a kind that can be searched, or as for `limit`.
    """
    check_known("objective", objective, OBJECTIVES)
    # The best schedule is sought without noise, unless that is asked for and refused.
    settings = {**settings, "noise": noise_of(settings["noise"], has_recordings=False)}
    Range(1, SIMULATIONS_MAX).check("simulations", simulations)
    Range(0, 1).check("tolerance", tolerance)
    job, alone_ns = _bounded(machine, workload, settings)
    if quantum_us is None:
        quantum_us = max(1.0, Limit.of(job, alone_ns).makespan_ns / 16e3)
    Range(1, QUANTUM_US_MAX).check("quantum_us", quantum_us)
    return Optimum.search(
        job,
        alone_ns,
        objective,
        quantum_ns=round(quantum_us * 1e3),
        simulations=simulations,
        tolerance=tolerance,
    )


def _bounded(
    machine: MachineLike, workload: WorkloadLike, settings: ReferenceSettings
) -> tuple[_core.Job, tuple[int, ...]]:
    """What is bounded, and the time of each application alone on the machine of only big cores."""
    on, mix, how = _alone(machine, workload, settings)
    run = only(RunSettings, how)
    return job_of(run, on, mix, PolicySpec.of(BASELINE_POLICY)), alone_on_big(on, mix, how, settings["jobs"])


def _alone(
    machine: MachineLike, workload: WorkloadLike, settings: ReferenceSettings
) -> tuple[Machine, Workload, AloneSettings]:
    """The machine, the workload on it, and how its programs are run alone."""
    catalog = catalog_of(settings)
    found = Placed.of(catalog, workload, catalog.machine(machine))
    noise = noise_of(settings["noise"], has_recordings=bool(found.conditions))
    how = only(AloneSettings, {**settings, "noise": noise})
    return found.machine, found.drawn(settings["seed"]), how


def _of_seeds(placed: Placed, seeds: Iterable[int], settings: CompareSettings) -> dict[int, Workload]:
    """A workload with each seed: the same object where seeds do not change it."""
    drawn = {seed: placed.drawn(seed) for seed in seeds}
    stopped = {id(each): _stopped(each, settings) for each in drawn.values()}
    return {seed: stopped[id(each)] for seed, each in drawn.items()}


def _stopped(workload: Workload, settings: CompareSettings) -> Workload:
    """The workload, stopped at the end that is set: as if each of its programs stated it as a duration."""
    until_ms = settings["until_ms"]
    if until_ms is None:
        return workload
    if settings["repetitions"] is not None:
        raise InputError(
            f"until_ms = {as_number(until_ms)} and repetitions = {settings['repetitions']} contradict each other: "
            "which of them ends a run?"
        )
    return workload.stopped_at(round(until_ms * NS_PER_MS))


def _job(
    machine: MachineLike, workload: WorkloadLike, policy: PolicySpec, settings: SimulateSettings
) -> _core.Job:
    catalog = catalog_of(settings)
    found = Placed.of(catalog, workload, catalog.machine(machine))
    how = {**settings, "noise": noise_of(settings["noise"], has_recordings=bool(found.conditions))}
    return job_of(only(RunSettings, how), found.machine, found.drawn(settings["seed"]), policy)


def core_orders(settings: CompareSettings, machine: Machine) -> tuple[CoreOrder, ...]:
    """The core orders that are run on a machine: of equal cores one."""
    order = settings["core_order"]
    if order != "both":
        return (order,)
    classes = {row[4] for row in machine.clusters}
    return ("big-first", "little-first") if len(classes) > 1 else ("big-first",)


def _notes(settings: CompareSettings) -> list[str]:
    """What a reader of a comparison must know of how it was run."""
    first, repeat = settings["seed"], settings["repeat"]
    seeds = f"seed {first}" if repeat == 1 else f"seeds {first} to {first + repeat - 1}"
    notes = [f"factors {settings['factors']}", f"core order {settings['core_order']}", seeds]
    if settings["overhead"] != Overhead():
        notes.append(f"overhead {settings['overhead']}")
    if settings["governor"] != Governors():
        notes.append(f"governor {settings['governor']}")
    if settings["noise"] != Noise():
        notes.append(f"noise {settings['noise']}")
    if settings["repetitions"] is not None:
        notes.append(f"each program at least {settings['repetitions']} times")
    if settings["until_ms"] is not None:
        notes.append(f"until {as_number(settings['until_ms'])} ms")
    return notes


def _each(value: object, what: str) -> list[Any]:
    values = list(value) if isinstance(value, list | tuple) else [value]
    if not values:
        raise InputError(f"no {what} is given")
    return values


def _check_distinct(names: Sequence[str], what: str) -> None:
    if not names:
        raise InputError(f"no {what} is given")
    for name in names:
        if names.count(name) > 1:
            raise InputError(f'{what} "{name}" is given twice')
