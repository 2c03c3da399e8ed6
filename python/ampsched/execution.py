"""Runs simulations, many at once, with the baselines that their metrics need.

A baseline is an application alone, under `cfs`, on the machine of only big cores (and on the same machine, if asked for),
with the same seed and repeated as often, so that its random amounts are those of the mix. Baselines are kept in memory by
content: the same application with the same parameters on an equal machine is run once per seed, however many mixes it is
in. They are not kept on disk: all of an experiment's take a few seconds, and a file could outlive the simulator that wrote
it.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Literal

from ampsched import _core
from ampsched._core import InputError, Machine, Workload
from ampsched.explaining import Explanation
from ampsched.factors import Factors
from ampsched.governor import NO_GOVERNORS, Governors
from ampsched.metrics import MixMetrics, mix_metrics
from ampsched.overhead import Overhead
from ampsched.policy import PolicySpec
from ampsched.policy_file import line_of, mistake
from ampsched.results import Outcome
from ampsched.units import NS_PER_MS, NS_PER_S

CoreOrder = Literal["as-is", "big-first", "little-first"]
Progress = Callable[[int, int], object]
BASELINE_POLICY = "cfs"
SEED_MAX = 2**64 - 1
REPETITIONS_MAX = 10_000
ORACLE = Factors()
NO_OVERHEAD = Overhead()
# Jobs handed over at once: so many finish before Ctrl-C takes effect.
CHUNK = 64


@dataclass(frozen=True, slots=True)
class Settings:
    """How simulations are run."""

    factors: Factors = ORACLE
    overhead: Overhead = NO_OVERHEAD
    """What the policy's own work costs; nothing when an application runs alone for comparison."""
    governors: Governors = NO_GOVERNORS
    """Who sets the frequencies; nobody when an application runs alone for comparison."""
    energy: bool = False
    """Account for power, energy and heat."""
    until_ms: float | None = None
    """Stop at this time, whatever still runs."""
    repetitions: int | None = None
    """Start programs that have ended anew until each has ended so often; None: each runs once."""
    limit_s: float = 3600.0
    """Fail if the workload has not ended by then (simulated time)."""
    check: bool = False
    """Check the simulator's invariants after every event (slow)."""

    def __post_init__(self) -> None:
        if self.until_ms is not None and not 0 < self.until_ms <= 1e9:
            raise InputError(f"until_ms = {self.until_ms:g} is not above 0 and at most 1e9")
        if self.repetitions is not None and not 1 <= self.repetitions <= REPETITIONS_MAX:
            raise InputError(f"repetitions = {self.repetitions} is not within 1 to {REPETITIONS_MAX}")
        if not 0 < self.limit_s <= 1e6:
            raise InputError(f"limit_s = {self.limit_s:g} is not above 0 and at most 1e6")

    def job(self, machine: Machine, workload: Workload, policy: PolicySpec, seed: int) -> _core.Job:
        """A job for the simulator; of a Python policy it has the label only."""
        if not 0 <= seed <= SEED_MAX:
            raise InputError(f"seed = {seed} is not within 0 to {SEED_MAX}")
        python = policy.make is not None
        return _core.Job(
            machine,
            workload,
            policy.label if python else policy.name,
            () if python else policy.params,
            seed=seed,
            factors=self.factors.source(machine),
            overhead_ns=self.overhead.costs_ns(),
            governors=self.governors.specs(),
            energy=self.energy,
            until_ns=None if self.until_ms is None else round(self.until_ms * NS_PER_MS),
            repetitions=self.repetitions,
            limit_ns=round(self.limit_s * NS_PER_S),
            check=self.check,
        )


def ordered(machine: Machine, order: CoreOrder) -> Machine:
    """The machine with its cores numbered in that order."""
    return machine if order == "as-is" else machine.ordered(fastest_first=order == "big-first")


def run_one(job: _core.Job, policy: PolicySpec, trace: Path | None = None) -> Outcome:
    """Runs one job, and writes a Perfetto trace if a path is given."""
    if trace is None:
        return Outcome.from_json(_run_one(job, policy), policy.label)
    with trace.open("wb") as file:
        return Outcome.from_json(_run_one(job, policy, file), policy.label)


def explain_one(job: _core.Job, policy: PolicySpec, question: _core.Question) -> Explanation:
    """Runs one job until the question can be answered, and answers it."""
    return Explanation.from_json(_run_one(job, policy, question))


def _run_one(job: _core.Job, policy: PolicySpec, purpose: BinaryIO | _core.Question | None = None) -> str:
    if policy.make is None:
        return _core.simulate(job, purpose)
    made = policy.make()
    arguments = (job, made, policy.name, policy.params, dict(made.rules), made.needs(), purpose)
    try:
        return _core.simulate_python(*arguments)
    except InputError:
        raise
    except Exception as error:
        if policy.file is None or not _is_mistake(policy.file, error):
            raise
        raise mistake(policy.file, error) from None


def _is_mistake(file: Path, error: Exception) -> bool:
    """Whether it is the file's: what a method raises, or returns of a wrong kind; the simulator has errors of its own."""
    return line_of(file, error) is not None or isinstance(error, TypeError | ValueError)


def run_all(
    jobs: Sequence[tuple[_core.Job, PolicySpec]], processes: int, progress: Progress | None = None
) -> list[Outcome]:
    """Runs jobs on up to `processes` processors (0: all); results are in the order of the jobs.

    Jobs of Python policies run one after the other, after the rest.

    Raises:
        InputError: Of the first job that fails.
    """
    done = 0

    def step(_number: int = 0) -> None:
        nonlocal done
        done += 1
        if progress:
            progress(done, len(jobs))

    native = [index for index, (_, policy) in enumerate(jobs) if policy.make is None]
    outcomes: dict[int, Outcome] = {}
    for start in range(0, len(native), CHUNK):
        chunk = native[start : start + CHUNK]
        texts = _core.run_batch([jobs[index][0] for index in chunk], processes or os.cpu_count() or 1, step)
        for index, text in zip(chunk, texts, strict=True):
            if isinstance(text, Exception):
                raise text
            outcomes[index] = Outcome.from_json(text, jobs[index][1].label)
    for index, (job, policy) in enumerate(jobs):
        if policy.make is not None:
            outcomes[index] = run_one(job, policy)
            step()
    return [outcomes[index] for index in range(len(jobs))]


@dataclass(frozen=True, slots=True)
class Mix:
    """A simulation that is to be compared with its baselines."""

    machine: Machine
    order: CoreOrder
    workload: Workload
    policy: PolicySpec
    seed: int


@dataclass(frozen=True, slots=True)
class Run:
    """A simulation with its metrics."""

    core_order: CoreOrder
    outcome: Outcome
    alone_ns: tuple[int, ...]
    """Turnaround of each application alone on the machine of only big cores."""
    metrics: MixMetrics

    @property
    def machine(self) -> str:
        """Machine."""
        return self.outcome.machine

    @property
    def workload(self) -> str:
        """Workload."""
        return self.outcome.workload

    @property
    def policy(self) -> str:
        """Policy with its parameters."""
        return self.outcome.policy

    @property
    def seed(self) -> int:
        """Seed."""
        return self.outcome.seed


# Turnaround in ns of applications alone, by content of machine and application, settings and seed.
_Key = tuple[str, str, Settings, int]
_alone_ns: dict[_Key, int] = {}


class _Baselines:
    """The baselines of a list of mixes: which are missing, and where each is found."""

    def __init__(self, settings: Settings) -> None:
        self._settings = replace(settings, overhead=NO_OVERHEAD, governors=NO_GOVERNORS)
        self._policy = PolicySpec.of(BASELINE_POLICY)
        self._contents: dict[int, tuple[object, str]] = {}
        self._machines: dict[tuple[int, CoreOrder | None], Machine] = {}
        self._apps: dict[tuple[int, int], Workload] = {}
        self.missing: dict[_Key, _core.Job] = {}

    def keys(self, mix: Mix, order: CoreOrder | None) -> list[_Key]:
        """Keys of a mix's baselines; `order` is None for the machine of only big cores."""
        machine = self._machine(mix.machine, order)
        return [
            self._key(machine, self._app(mix.workload, app), mix.seed)
            for app in range(len(mix.workload.apps))
        ]

    def _key(self, machine: Machine, app: Workload, seed: int) -> _Key:
        key = (self._content(machine), self._content(app), self._settings, seed)
        if key not in _alone_ns and key not in self.missing:
            self.missing[key] = self._settings.job(machine, app, self._policy, seed)
        return key

    def jobs(self) -> list[tuple[_core.Job, PolicySpec]]:
        """The jobs of the missing ones."""
        return [(job, self._policy) for job in self.missing.values()]

    def store(self, outcomes: Iterable[Outcome]) -> None:
        """Keeps the results of `jobs()`."""
        for key, outcome in zip(self.missing, outcomes, strict=True):
            _alone_ns[key] = outcome.apps[0].turnaround_ns

    def _machine(self, machine: Machine, order: CoreOrder | None) -> Machine:
        key = (id(machine), order)
        if key not in self._machines:
            self._machines[key] = machine.all_big() if order is None else ordered(machine, order)
        return self._machines[key]

    def _app(self, workload: Workload, app: int) -> Workload:
        key = (id(workload), app)
        if key not in self._apps:
            self._apps[key] = workload.alone(app)
        return self._apps[key]

    def _content(self, value: Machine | Workload) -> str:
        """A digest of what a simulation reads of it. The value is kept, so that its id stays its own."""
        if id(value) not in self._contents:
            digest = hashlib.sha256(value.content().encode()).hexdigest()
            self._contents[id(value)] = (value, digest)
        return self._contents[id(value)][1]


def run_mixes(
    mixes: Sequence[Mix],
    settings: Settings,
    *,
    same_machine: bool = False,
    processes: int = 0,
    progress: Progress | None = None,
) -> list[Run]:
    """Runs mixes and the baselines that are not known yet.

    Args:
        mixes: What to run.
        settings: How.
        same_machine: Run also the baselines for ANTT and STP.
        processes: Processors to use; 0: all.
        progress: Called with the number of finished simulations and of all.

    Raises:
        InputError: If a workload cannot go on, or does not end within the limit.
    """
    baselines = _Baselines(settings)
    big = [baselines.keys(mix, None) for mix in mixes]
    same = [baselines.keys(mix, mix.order) for mix in mixes] if same_machine else []
    alone_jobs = baselines.jobs()
    mix_jobs = [
        (settings.job(ordered(mix.machine, mix.order), mix.workload, mix.policy, mix.seed), mix.policy)
        for mix in mixes
    ]
    outcomes = run_all([*alone_jobs, *mix_jobs], processes, progress)
    baselines.store(outcomes[: len(alone_jobs)])
    return list(_runs(mixes, outcomes[len(alone_jobs) :], big, same))


def _runs(
    mixes: Sequence[Mix], outcomes: Sequence[Outcome], big: Sequence[list[_Key]], same: Sequence[list[_Key]]
) -> Iterator[Run]:
    for index, (mix, outcome) in enumerate(zip(mixes, outcomes, strict=True)):
        mix_ns = [app.turnaround_ns for app in outcome.apps]
        alone_ns = [_alone_ns[key] for key in big[index]]
        same_ns = [_alone_ns[key] for key in same[index]] if same else None
        yield Run(mix.order, outcome, tuple(alone_ns), mix_metrics(mix_ns, alone_ns, same_ns))
