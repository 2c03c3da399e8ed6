"""The functions that most users need: `simulate` and `compare`; `references` for the metrics of Prop-SP."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal

from ampsched._core import InputError, Machine, Question, Workload
from ampsched.alone import SCHEMES, Reference, run_alone
from ampsched.catalog import Catalog
from ampsched.comparison import Comparison
from ampsched.execution import (
    CoreOrder,
    Mix,
    Progress,
    Settings,
    explain_one,
    ordered,
    run_mixes,
    run_one,
)
from ampsched.explaining import Explanation
from ampsched.factors import Factors
from ampsched.governor import Governors
from ampsched.overhead import Overhead
from ampsched.policy import PolicyLike, PolicySpec
from ampsched.results import Outcome
from ampsched.units import NS_PER_MS

MachineLike = str | Path | Machine
WorkloadLike = str | Path | Workload
CoreOrders = Literal["both", "big-first", "little-first", "as-is"]
ORDERS: dict[str, tuple[CoreOrder, ...]] = {
    "both": ("big-first", "little-first"),
    "big-first": ("big-first",),
    "little-first": ("little-first",),
    "as-is": ("as-is",),
}
REPEAT_MAX = 10_000
MS_MAX = 1e9
"""Longest time of a simulation that can be asked about, in ms."""


def simulate(
    machine: MachineLike,
    workload: WorkloadLike,
    policy: PolicyLike = "cfs",
    *,
    seed: int = 1,
    factors: str | Factors = "oracle",
    overhead: str | Overhead = "none",
    governor: str | Governors = "none",
    energy: bool = False,
    core_order: CoreOrder = "as-is",
    until_ms: float | None = None,
    repetitions: int | None = None,
    limit_s: float = 3600.0,
    check: bool = False,
    trace: str | Path | None = None,
    catalog: Catalog | None = None,
) -> Outcome:
    """Simulates one workload under one policy.

    Args:
        machine: Name (``"2B2S"``), path of a machine file, or a machine.
        workload: Name (``"sync-2"``), program (``"ferret"``), path of a workload, program or rt-app file, or a workload.
        policy: Name with parameters (``"colab:literal=1"``), or a policy written in Python (see `Policy`).
        seed: Seed of all random amounts.
        factors: Where the policy learns speed-ups from, see `Factors.parse`.
        overhead: What the policy's own work costs, see `Overhead.parse`.
        governor: Who sets the frequencies (``"schedutil"``, ``"big=performance,little=powersave"``), see `Governors`.
        energy: Account for power, energy and heat; the machine must say what is known of its power.
        core_order: Whether the cores are numbered as the machine says, from the biggest or from the littlest on.
        until_ms: Stop at this simulated time, whatever still runs.
        repetitions: Start programs that have ended anew, with other random amounts, until each has ended so often; then
            stop. A program's turnaround is the geometric mean over its repetitions (the protocol of Prop-SP).
        limit_s: Fail if the workload has not ended by then (simulated time).
        check: Check the simulator's invariants after every event (slow).
        trace: Write a trace for https://ui.perfetto.dev to this file.
        catalog: Where names are looked up; the shipped catalogue by default.

    Raises:
        InputError: If something does not exist or is wrong, or the workload cannot go on.

    Example:
        >>> outcome = simulate("2B2S", "sync-1", "cfs")
        >>> outcome.makespan_ns > 0
        True
    """
    catalog = catalog or Catalog.shipped()
    spec = PolicySpec.of(policy)
    settings = Settings(
        _factors(factors),
        _overhead(overhead),
        _governors(governor),
        energy,
        until_ms,
        repetitions,
        limit_s,
        check,
    )
    numbered = ordered(catalog.machine(machine), _order(core_order, 1)[0])
    job = settings.job(numbered, catalog.workload(workload), spec, seed)
    return run_one(job, spec, Path(trace) if trace else None)


def explain(
    machine: MachineLike,
    workload: WorkloadLike,
    policy: PolicyLike = "cfs",
    *,
    thread: str | int,
    at_ms: float,
    window_ms: float = 5.0,
    seed: int = 1,
    factors: str | Factors = "oracle",
    overhead: str | Overhead = "none",
    governor: str | Governors = "none",
    energy: bool = False,
    core_order: CoreOrder = "as-is",
    repetitions: int | None = None,
    limit_s: float = 3600.0,
    catalog: Catalog | None = None,
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
        seed: As for `simulate`.
        factors: As for `simulate`.
        overhead: As for `simulate`.
        governor: As for `simulate`.
        energy: As for `simulate`.
        core_order: As for `simulate`.
        repetitions: As for `simulate`.
        limit_s: As for `simulate`.
        catalog: As for `simulate`.

    Raises:
        InputError: If something does not exist or is wrong, the workload cannot go on, no such thread has started by
            then, or the run was over before.

    Example:
        >>> answer = explain("2B2S", "sync-1", "cfs", thread=0, at_ms=5)
        >>> answer.state in ("running", "waiting", "blocked")
        True
    """
    for name, value in (("at_ms", at_ms), ("window_ms", window_ms)):
        if not 0 <= value <= MS_MAX:
            raise InputError(f"{name} = {value:g} is not within 0 to {MS_MAX:g}")
    catalog = catalog or Catalog.shipped()
    spec = PolicySpec.of(policy)
    settings = Settings(
        _factors(factors),
        _overhead(overhead),
        _governors(governor),
        energy,
        repetitions=repetitions,
        limit_s=limit_s,
    )
    numbered = ordered(catalog.machine(machine), _order(core_order, 1)[0])
    job = settings.job(numbered, catalog.workload(workload), spec, seed)
    question = Question(str(thread), round(at_ms * NS_PER_MS), round(window_ms * NS_PER_MS))
    return explain_one(job, spec, question)


def compare(
    machine: MachineLike | Sequence[MachineLike],
    workload: WorkloadLike | Sequence[WorkloadLike],
    policies: Sequence[PolicyLike] = ("cfs", "wash", "colab"),
    *,
    seed: int = 1,
    repeat: int = 1,
    core_order: CoreOrders = "both",
    factors: str | Factors = "oracle",
    overhead: str | Overhead = "none",
    governor: str | Governors = "none",
    energy: bool = False,
    repetitions: int | None = None,
    limit_s: float = 3600.0,
    check: bool = False,
    jobs: int = 0,
    progress: Progress | None = None,
    catalog: Catalog | None = None,
) -> Comparison:
    """Compares policies on workloads and machines.

    Each combination is run with seeds `seed` to `seed + repeat - 1` and, as COLAB does, with both core
    orders, whose results are averaged. Every application is also run alone on the machine of only big cores, which
    H_ANTT and H_STP need, and alone on the same machine, which ANTT and STP need.

    Args:
        machine: One machine or several; see `simulate`.
        workload: One workload or several; see `simulate`.
        policies: Policies; the others are measured against the first.
        seed: First seed.
        repeat: Number of seeds.
        core_order: Which core orders are run; on a machine of equal cores they are the same and run once.
        factors: Where policies learn speed-ups from, see `Factors.parse`.
        overhead: What the policies' own work costs, see `Overhead.parse`.
        governor: As for `simulate`; programs alone run at the highest frequency.
        energy: As for `simulate`.
        repetitions: As for `simulate`, in the mixes and alone.
        limit_s: Fail if a workload has not ended by then (simulated time).
        check: Check the simulator's invariants after every event (slow).
        jobs: Processors to use; 0: all. Results do not depend on it.
        progress: Called with the number of finished simulations and of all.
        catalog: Where names are looked up; the shipped catalogue by default.

    Raises:
        InputError: If something does not exist or is wrong, or a workload cannot go on.

    Example:
        >>> result = compare("2B2S", "sync-1", ["cfs", "static"])
        >>> [row.policy for row in result.summary()]
        ['cfs', 'static']
    """
    catalog = catalog or Catalog.shipped()
    machines = [catalog.machine(each) for each in _each(machine, "machine")]
    workloads = [catalog.workload(each) for each in _each(workload, "workload")]
    specs = [PolicySpec.of(policy) for policy in policies]
    _check_distinct([each.name for each in machines], "machine")
    _check_distinct([each.name for each in workloads], "workload")
    _check_distinct([spec.label for spec in specs], "policy")
    if not 1 <= repeat <= REPEAT_MAX:
        raise InputError(f"repeat = {repeat} is not within 1 to {REPEAT_MAX}")
    _check_jobs(jobs)
    settings = Settings(
        _factors(factors),
        _overhead(overhead),
        _governors(governor),
        energy,
        repetitions=repetitions,
        limit_s=limit_s,
        check=check,
    )
    mixes = [
        Mix(on, order, mix, spec, each_seed)
        for on, mix, spec in product(machines, workloads, specs)
        for order in _order(core_order, len({row[4] for row in on.clusters}))
        for each_seed in range(seed, seed + repeat)
    ]
    runs = run_mixes(mixes, settings, same_machine=True, processes=jobs, progress=progress)
    seeds = f"seed {seed}" if repeat == 1 else f"seeds {seed} to {seed + repeat - 1}"
    notes = [f"factors {settings.factors}", f"core order {core_order}", seeds]
    if settings.overhead != Overhead():
        notes.append(f"overhead {settings.overhead}")
    if settings.governors != Governors():
        notes.append(f"governor {settings.governors}")
    if repetitions is not None:
        notes.append(f"each program at least {repetitions} times")
    return Comparison(tuple(spec.label for spec in specs), tuple(runs), tuple(notes))


def references(
    machine: MachineLike,
    workload: WorkloadLike,
    *,
    seed: int = 1,
    repetitions: int | None = None,
    factors: str | Factors = "oracle",
    schemes: Sequence[PolicyLike] = SCHEMES,
    limit_s: float = 3600.0,
    jobs: int = 0,
    progress: Progress | None = None,
    catalog: Catalog | None = None,
) -> list[Reference]:
    """Measures how long each program takes alone: at its best on the machine, and on its slow cores only.

    These are CT_fast and CT_slow of Prop-SP, which `ampsched.metrics.asp` and slowdowns need. CT_fast is the least of the times
    under each of the schemes, and on the fast cores alone.

    Args:
        machine: See `simulate`.
        workload: See `simulate`.
        seed: Seed of all random amounts.
        repetitions: As for `simulate`.
        factors: Where policies learn speed-ups from, see `Factors.parse`.
        schemes: Policies that distribute fast-core time over the threads of a program.
        limit_s: Fail if a program has not ended by then (simulated time).
        jobs: Processors to use; 0: all. Results do not depend on it.
        progress: Called with the number of finished simulations and of all.
        catalog: Where names are looked up; the shipped catalogue by default.

    Raises:
        InputError: If something does not exist or is wrong, or a program cannot go on.

    Example:
        >>> [(each.fast_ns // 10**6, each.slow_ns // 10**6) for each in references("opteron-2FC-2SC-ideal", "cpu-bound")]
        [(10000, 23000)]
    """
    catalog = catalog or Catalog.shipped()
    settings = Settings(_factors(factors), repetitions=repetitions, limit_s=limit_s)
    specs = [PolicySpec.of(scheme) for scheme in schemes]
    on, apps = catalog.machine(machine), catalog.workload(workload)
    _check_jobs(jobs)
    return run_alone(on, apps, settings, seed, schemes=specs, processes=jobs, progress=progress)


def _check_jobs(jobs: int) -> None:
    if jobs < 0:
        raise InputError(f"jobs = {jobs} is below 0 (0: all processors)")


def _factors(factors: str | Factors) -> Factors:
    return factors if isinstance(factors, Factors) else Factors.parse(factors)


def _overhead(overhead: str | Overhead) -> Overhead:
    return overhead if isinstance(overhead, Overhead) else Overhead.parse(overhead)


def _governors(governor: str | Governors) -> Governors:
    return governor if isinstance(governor, Governors) else Governors.parse(governor)


def _order(core_order: str, classes: int) -> tuple[CoreOrder, ...]:
    if core_order not in ORDERS:
        raise InputError(f'core order "{core_order}" does not exist (known: {", ".join(ORDERS)})')
    orders = ORDERS[core_order]
    return orders if classes > 1 else orders[:1]


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
