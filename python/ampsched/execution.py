"""Runs simulations, many at once, with the baselines that their metrics need.

A baseline is an application alone, under `cfs`, on the machine of only big cores (and on the same machine, if asked
for), with the same seed and repeated as often, so that its random amounts are those of the mix. Baselines are kept in
memory by content: the same application with the same parameters on an equal machine is run once per seed, however many
mixes it is in. They are not kept on disk: all of an experiment's take a few seconds, and a file could outlive the
simulator that wrote it.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from ampsched import _core
from ampsched._core import InputError, Machine, Workload
from ampsched.explaining import Explanation
from ampsched.factors import Factors
from ampsched.files import writing
from ampsched.governor import Governors
from ampsched.held_clocks import with_held_clocks
from ampsched.limits import Limit
from ampsched.metrics import MixMetrics, mix_metrics
from ampsched.noise import Noise
from ampsched.overhead import Overhead
from ampsched.policy import PolicySpec
from ampsched.policy_file import line_of, mistake
from ampsched.results import Outcome
from ampsched.settings import AloneSettings, CoreOrder, MixSettings, RunSettings, complete, only
from ampsched.turns import Timeline
from ampsched.units import NS_PER_MS, NS_PER_S

Progress = Callable[[int, int], object]
Kept = _core.Compared | _core.Summed
"""What is kept of an outcome."""
Purpose = BinaryIO | Kept | _core.Question | _core.Turns
"""What a run is for besides its outcome."""
BASELINE_POLICY = "cfs"
BASELINE = PolicySpec.of(BASELINE_POLICY)
"""The policy of baselines, as against the same one that somebody has asked for."""
# Jobs handed over at once: so many finish before Ctrl-C takes effect.
CHUNK = 64


def job_of(
    settings: AloneSettings | MixSettings | RunSettings,
    machine: Machine,
    workload: Workload,
    policy: PolicySpec,
) -> _core.Job:
    """A job for the simulator; of a Python policy it has the label only.

    Args:
        settings: How; the others have their defaults.
        machine: The machine.
        workload: The workload.
        policy: The policy.

    Raises:
        InputError: If a setting is wrong, or not for this machine.
    """
    run = complete(RunSettings, settings)
    return _Jobs(run).job(machine, run["core_order"], workload, policy, run["seed"])


class _Jobs:
    """Makes jobs that share all settings but core order and seed, which are read once."""

    def __init__(self, run: RunSettings) -> None:
        until_ms = run["until_ms"]
        self._factors = Factors.of(run["factors"])
        self.is_repeated = run["repetitions"] is not None
        self._settings: dict[str, Any] = {
            "overhead_ns": Overhead.of(run["overhead"]).costs_ns(),
            "governors": Governors.of(run["governor"]).specs(),
            "noise": Noise.of(run["noise"]).sources,
            "energy": run["energy"],
            "until_ns": None if until_ms is None else round(until_ms * NS_PER_MS),
            "repetitions": run["repetitions"],
            "limit_ns": round(run["limit_s"] * NS_PER_S),
            "check": run["check"],
        }
        # By what all policies have in common; the objects are kept, so that no other ones get their numbers.
        self._alone: dict[tuple[object, ...], tuple[_core.AloneFacts, Machine, Workload]] = {}
        self._held: dict[tuple[int, int], tuple[Machine, Machine, Workload]] = {}

    def job(
        self, machine: Machine, order: CoreOrder, workload: Workload, policy: PolicySpec, seed: int
    ) -> _core.Job:
        machine = self._as_traced(machine, workload)
        numbered = ordered(machine, order)
        python = policy.make is not None
        key = (id(machine), order, id(workload), seed)
        alone, *_ = self._alone.setdefault(key, (_core.AloneFacts(), machine, workload))
        return _core.Job(
            numbered,
            workload.renumbered(machine, numbered),
            policy.label if python else policy.name,
            () if python else policy.params,
            seed=seed,
            factors=self._factors.source(numbered),
            alone=alone,
            **self._settings,
        )

    def _as_traced(self, machine: Machine, workload: Workload) -> Machine:
        """The machine with clocks bounded as when the workload was traced, where governors set them."""
        key = (id(machine), id(workload))
        if key not in self._held:
            is_governed = bool(self._settings["governors"])
            held = with_held_clocks(machine, workload, is_governed).machine
            self._held[key] = (held, machine, workload)
        return self._held[key][0]


def ordered(machine: Machine, order: CoreOrder) -> Machine:
    """The machine with its cores numbered in that order; `Workload.renumbered` lets programs follow."""
    return machine if order == "as-is" else machine.ordered(fastest_first=order == "big-first")


def run_one(job: _core.Job, policy: PolicySpec, trace: Path | None = None) -> Outcome:
    """Runs one job, and writes a Perfetto trace if a path is given."""
    text = _run_one(job, policy) if trace is None else _run_traced(job, policy, trace)
    return Outcome.from_json(text, policy.label)


def _run_traced(job: _core.Job, policy: PolicySpec, trace: Path) -> str:
    with writing(trace) as file:
        try:
            return _run_one(job, policy, file)
        except OSError:
            raise
        except Exception as error:
            failure = error  # what was recorded until then shows how it came about
    raise failure


def explain_one(job: _core.Job, policy: PolicySpec, question: _core.Question) -> Explanation:
    """Runs one job until the question can be answered, and answers it."""
    return Explanation.from_json(_run_one(job, policy, question))


def draw_one(job: _core.Job, policy: PolicySpec, machine: Machine) -> Timeline:
    """Runs one job and keeps all turns; the machine has its cores in the job's order."""
    return Timeline.from_json(_run_one(job, policy, _core.Turns()), machine, policy.label)


def _run_one(job: _core.Job, policy: PolicySpec, purpose: Purpose | None = None) -> str:
    try:
        return _simulate(job, policy, purpose)
    except Exception as error:
        raise _naming(policy, error)  # noqa: B904 (the same error)


def _naming(policy: PolicySpec, error: Exception) -> Exception:
    """The error with a note of the policy under which it happened, unless its text says so.

    Nobody has asked for the policy of baselines.
    """
    if policy is BASELINE:
        error.add_note("alone, as the measure of what others add")
    elif policy.label not in str(error):
        error.add_note(f"under policy {policy.label}")
    return error


def _simulate(job: _core.Job, policy: PolicySpec, purpose: Purpose | None) -> str:
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
    """Whether it is the file's: what a method raises, or returns of a wrong kind; the simulator's errors differ."""
    return line_of(file, error) is not None or isinstance(error, TypeError | ValueError)


def run_all(
    jobs: Sequence[tuple[_core.Job, PolicySpec]],
    processes: int,
    progress: Progress | None = None,
    kept: Kept | None = None,
) -> list[Outcome]:
    """Runs jobs on up to `processes` processors (0: all); results are in the order of the jobs.

    Of the outcomes there is what comparisons keep, unless `kept` says otherwise.

    Jobs of Python policies run one after the other, after the rest.

    Raises:
        InputError: Of the first job that fails.
    """
    kept = kept or _core.Compared()
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
        some = [jobs[index][0] for index in chunk]
        texts = _core.run_batch(some, processes or os.cpu_count() or 1, step, kept)
        for index, text in zip(chunk, texts, strict=True):
            if isinstance(text, Exception):
                raise _naming(jobs[index][1], text)
            outcomes[index] = Outcome.from_json(text, jobs[index][1].label)
    for index, (job, policy) in enumerate(jobs):
        if policy.make is not None:
            outcomes[index] = Outcome.from_json(_run_one(job, policy, kept), policy.label)
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


@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """A simulation with its metrics."""

    core_order: CoreOrder
    outcome: Outcome
    alone_ns: tuple[int, ...]
    """Turnaround of each application alone on the machine of only big cores."""
    metrics: MixMetrics
    timed: tuple[bool, ...]
    """Whether each application was stopped by the duration that its program states, not by its work."""
    limit: Limit | None = None
    """What no policy can beat here, if it was asked for and says something."""

    def __repr__(self) -> str:
        """A line."""
        return f"<Run: {self.outcome!r}, cores {self.core_order}, H_ANTT {self.metrics.h_antt:.4g}>"

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


# Turnaround in ns of applications alone, by content of machine and application, and settings.
_Key = tuple[str, str, tuple[tuple[str, object], ...]]
_alone_ns: dict[_Key, int] = {}


class _Baselines:
    """The baselines of a list of mixes: which are missing, and where each is found."""

    def __init__(self, settings: MixSettings) -> None:
        self._settings = complete(AloneSettings, only(AloneSettings, settings))
        self._jobs = _Jobs(complete(RunSettings, self._settings))
        self._policy = BASELINE
        self._keys: dict[tuple[int, CoreOrder | None, int, int], list[_Key]] = {}
        self._contents: dict[int, tuple[object, str]] = {}
        self._machines: dict[tuple[int, CoreOrder | None], Machine] = {}
        self._apps: dict[tuple[int, int, tuple[int, CoreOrder] | None], Workload] = {}
        self.missing: dict[_Key, _core.Job] = {}

    def keys(self, mix: Mix, order: CoreOrder | None) -> list[_Key]:
        """Keys of a mix's baselines; `order` is None for the machine of only big cores."""
        place = (id(mix.machine), order, id(mix.workload), mix.seed)
        if place not in self._keys:
            machine = self._machine(mix.machine, order)
            self._keys[place] = [
                self._key(machine, self._app(mix, app, order), mix.seed)
                for app in range(len(mix.workload.apps))
            ]
        return self._keys[place]

    def _key(self, machine: Machine, app: Workload, seed: int) -> _Key:
        settings: AloneSettings = {**self._settings, "seed": seed}
        key = (self._content(machine), self._content(app), tuple(settings.items()))
        if key not in _alone_ns and key not in self.missing:
            self.missing[key] = self._jobs.job(machine, "as-is", app, self._policy, seed)
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

    def _app(self, mix: Mix, app: int, order: CoreOrder | None) -> Workload:
        """An application alone; if it names cores, with their numbers in that order."""
        numbering = (id(mix.machine), order) if order and mix.workload.names_cores else None
        key = (id(mix.workload), app, numbering)
        if key not in self._apps:
            alone = mix.workload.alone(app)
            machine = self._machine(mix.machine, order) if numbering else mix.machine
            self._apps[key] = alone.renumbered(mix.machine, machine)
        return self._apps[key]

    def _content(self, value: Machine | Workload) -> str:
        """A digest of what a simulation reads of it. The value is kept, so that its id stays its own."""
        if id(value) not in self._contents:
            digest = hashlib.sha256(value.content().encode()).hexdigest()
            self._contents[id(value)] = (value, digest)
        return self._contents[id(value)][1]


def alone_on_big(
    machine: Machine, workload: Workload, settings: AloneSettings, processes: int = 0
) -> tuple[int, ...]:
    """Turnaround in ns of each application alone on the machine of only big cores: what H_ANTT refers to.

    Raises:
        InputError: If a program cannot go on, or does not end within the limit.
    """
    seed = complete(AloneSettings, settings)["seed"]
    mix = Mix(machine, "as-is", workload, PolicySpec.of(BASELINE_POLICY), seed)
    baselines = _Baselines(cast(MixSettings, settings))
    keys = baselines.keys(mix, None)
    baselines.store(run_all(baselines.jobs(), processes))
    return tuple(_alone_ns[key] for key in keys)


def run_mixes(
    mixes: Sequence[Mix],
    settings: MixSettings,
    *,
    same_machine: bool = False,
    limits: bool = False,
    summed: bool = False,
    processes: int = 0,
    progress: Progress | None = None,
) -> list[Run]:
    """Runs mixes and the baselines that are not known yet.

    Args:
        mixes: What to run.
        settings: How; the seed is that of each mix.
        same_machine: Run also the baselines for ANTT and STP.
        limits: Compute also what no policy can beat.
        summed: Keep programs and totals of outcomes only.
        processes: Processors to use; 0: all.
        progress: Called with the number of finished simulations and of all.

    Raises:
        InputError: If a workload cannot go on, or does not end within the limit.
    """
    baselines = _Baselines(settings)
    big = [baselines.keys(mix, None) for mix in mixes]
    same = [baselines.keys(mix, mix.order) for mix in mixes] if same_machine else []
    alone_jobs = baselines.jobs()
    made = _Jobs(complete(RunSettings, only(RunSettings, settings)))
    mix_jobs = [
        (made.job(mix.machine, mix.order, mix.workload, mix.policy, mix.seed), mix.policy) for mix in mixes
    ]
    kept = _core.Summed() if summed else _core.Compared()
    outcomes = run_all([*alone_jobs, *mix_jobs], processes, progress, kept)
    baselines.store(outcomes[: len(alone_jobs)])
    found: Sequence[Limit | None] = [None] * len(mixes)
    if limits:
        is_repeated = made.is_repeated
        found = _limits(mixes, [job for job, _ in mix_jobs], big, processes, is_repeated=is_repeated)
    return list(_runs(mixes, outcomes[len(alone_jobs) :], big, same, found))


def _limits(
    mixes: Sequence[Mix],
    jobs: Sequence[_core.Job],
    big: Sequence[list[_Key]],
    processes: int,
    *,
    is_repeated: bool,
) -> list[Limit | None]:
    """The limit of each mix, which neither the policy nor the order of cores changes; none if it says nothing."""
    keys = [(id(mix.machine), id(mix.workload), mix.seed) for mix in mixes]
    first = {key: number for number, key in reversed(list(enumerate(keys)))}

    def limit(number: int) -> Limit | None:
        alone_ns = [_alone_ns[each] for each in big[number]]
        found = Limit.of(jobs[number], alone_ns)
        return found if not is_repeated or found.is_telling(alone_ns) else None

    with ThreadPoolExecutor(processes or os.cpu_count() or 1) as pool:
        known = dict(zip(first, pool.map(limit, first.values()), strict=True))
    return [known[key] for key in keys]


def _runs(
    mixes: Sequence[Mix],
    outcomes: Sequence[Outcome],
    big: Sequence[list[_Key]],
    same: Sequence[list[_Key]],
    limits: Sequence[Limit | None],
) -> Iterator[Run]:
    for index, (mix, outcome) in enumerate(zip(mixes, outcomes, strict=True)):
        mix_ns = [app.turnaround_ns for app in outcome.apps]
        alone_ns = [_alone_ns[key] for key in big[index]]
        same_ns = [_alone_ns[key] for key in same[index]] if same else None
        timed = tuple(
            set(app.completions_ns) == {duration_ns}
            for app, duration_ns in zip(outcome.apps, mix.workload.durations_ns, strict=True)
        )
        metrics = mix_metrics(mix_ns, alone_ns, same_ns)
        yield Run(mix.order, outcome, tuple(alone_ns), metrics, timed, limits[index])
