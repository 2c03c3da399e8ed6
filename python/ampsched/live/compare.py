"""Comparing policies on this computer: real programs, repeatedly, in random order."""

import dataclasses
import json
import math
import os
import random
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ampsched._core import InputError
from ampsched.children import ended_by_signals, why_not_run
from ampsched.execution import Progress
from ampsched.files import temporary_folder
from ampsched.live import _under
from ampsched.live.mix import Mix, MixProgram
from ampsched.live.program import core_classes, live_program, refusal
from ampsched.live.running import run_programs
from ampsched.metrics import MixMetrics, mix_metrics
from ampsched.policy_file import SIMULATION_ONLY, is_file
from ampsched.statistics import Estimate, estimate
from ampsched.timeliness import Distribution
from ampsched.units import NS_PER_S

if TYPE_CHECKING:
    import polars

DEFAULT = "default"
"""The kernel's own scheduler, without any policy."""
OTHERS = "scx_"
"""How the names of sched_ext schedulers that somebody else wrote begin: programs in the path."""
UNDER = Path(__file__).with_name("_under.py")
SESSION = "session.json"


@dataclass(frozen=True, slots=True)
class LiveRun:
    """One run of the mix under one policy."""

    policy: str
    round: int
    turnaround_s: tuple[float, ...]
    metrics: MixMetrics
    session: dict[str, Any] = field(default_factory=dict)
    """What ``ampsched-live`` says of its session: mode, what was missing, overhead; empty for the default."""
    latency: Distribution | None = None
    """Wake-up latencies of all threads; only a session in the kernel measures them."""
    programs: dict[str, Distribution] = field(default_factory=dict)
    """The same by program, as the kernel calls them; "" for those that ended before they were looked at."""

    @property
    def makespan_s(self) -> float:
        """The longest turnaround."""
        return max(self.turnaround_s)


@dataclass(frozen=True, slots=True)
class LiveSummaryRow:
    """One policy: estimates over rounds; changes are relative to the first policy, paired by round."""

    policy: str
    mode: str
    """``as written`` or ``degraded``; ``kernel`` for the default and for schedulers that somebody else wrote."""
    h_antt: Estimate
    h_stp: Estimate
    h_antt_change: Estimate
    """-0.1 is 10 % lower (better)."""
    h_stp_change: Estimate
    """0.1 is 10 % higher (better)."""
    makespan_s: Estimate
    latency_p99_ms: Estimate | None
    """99th percentile of wake-up latencies; None unless all sessions were in the kernel."""
    unfairness: Estimate
    uniformity: Estimate
    overhead: float
    """Share of one CPU that the session itself used."""


@dataclass(frozen=True, slots=True)
class LiveComparison:
    """All runs of a comparison on this computer."""

    mix: Mix
    policies: tuple[str, ...]
    alone_s: tuple[float, ...]
    """Turnaround of each program alone on the fast CPUs, without a policy: the mean over rounds."""
    alone_cpus: tuple[int, ...]
    """Those CPUs; all if there is only one class."""
    runs: tuple[LiveRun, ...]

    def select(self, policy: str) -> list[LiveRun]:
        """The runs of one policy in the order of rounds."""
        return sorted((run for run in self.runs if run.policy == policy), key=lambda run: run.round)

    def summary(self) -> list[LiveSummaryRow]:
        """One row per policy."""
        return [self._row(policy) for policy in self.policies]

    def _row(self, policy: str) -> LiveSummaryRow:
        runs, first = self.select(policy), self.select(self.policies[0])

        def of(value: Callable[[LiveRun], float]) -> Estimate:
            return estimate([value(run) for run in runs])

        def change(value: Callable[[LiveRun], float]) -> Estimate:
            return estimate([value(run) / value(other) - 1 for run, other in zip(runs, first, strict=True)])

        sessions = [run.session for run in runs if run.session]
        return LiveSummaryRow(
            policy=policy,
            mode=sessions[0]["mode"] if sessions else "kernel",
            h_antt=of(lambda run: run.metrics.h_antt),
            h_stp=of(lambda run: run.metrics.h_stp),
            h_antt_change=change(lambda run: run.metrics.h_antt),
            h_stp_change=change(lambda run: run.metrics.h_stp),
            makespan_s=of(lambda run: run.makespan_s),
            latency_p99_ms=of(_latency_p99_ms) if all(run.latency for run in runs) else None,
            unfairness=of(lambda run: run.metrics.unfairness),
            uniformity=of(lambda run: run.metrics.uniformity),
            overhead=fmean(session["overhead"] for session in sessions) if sessions else 0.0,
        )

    def notes(self) -> list[str]:
        """What a reader must know: what policies lacked, which factors were missing, what failed."""
        notes: dict[str, None] = {}
        for run in self.runs:
            lacks = [row for row in run.session.get("lacks", []) if row["is_essential"]]
            for row in lacks:
                notes[f"{run.policy}: degraded: it {row['what']}; here: {row['instead']}"] = None
            for text in (*run.session.get("missing_factors", []), *run.session.get("failures", [])):
                notes[f"{run.policy}: {text}"] = None
        return list(notes)

    def to_polars(self) -> "polars.DataFrame":
        """A data frame with one row per program of a run."""
        import polars

        return polars.DataFrame(
            [
                {
                    "policy": run.policy,
                    "round": run.round,
                    "program": program.name,
                    "turnaround_s": turnaround_s,
                    "alone_s": alone_s,
                    "h_ntt": h_ntt,
                }
                for run in self.runs
                for program, turnaround_s, alone_s, h_ntt in zip(
                    self.mix.programs, run.turnaround_s, self.alone_s, run.metrics.h_ntt, strict=True
                )
            ],
            infer_schema_length=None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return {
            "mix": dataclasses.asdict(self.mix),
            "alone_s": list(self.alone_s),
            "alone_cpus": list(self.alone_cpus),
            "notes": self.notes(),
            "summary": [dataclasses.asdict(row) for row in self.summary()],
            "runs": [dataclasses.asdict(run) for run in self.runs],
        }


def _latency_p99_ms(run: LiveRun) -> float:
    return run.latency.p99_ns / 1e6 if run.latency else math.nan


def compare_live(
    mix: Mix,
    policies: Sequence[str],
    *,
    rounds: int = 5,
    seed: int = 1,
    options: Sequence[str] = (),
    limit_s: float = 3600.0,
    progress: Progress | None = None,
) -> LiveComparison:
    """Runs a mix of real programs under each policy, once per round, in an order drawn anew for each round.

    In each round every program also runs alone, without a policy, on the fast CPUs: what slowdowns are relative to.

    Args:
        mix: The programs.
        policies: Policies with parameters, such as ``abreast`` or ``colab:decay=0.5``; ``default`` is the kernel alone;
            ``scx_bpfland`` and others that begin with ``scx_`` are sched_ext schedulers of that name in the path, with
            options if need be.
        rounds: Number of rounds, each a sample.
        seed: Seed of the orders.
        options: Arguments of ``ampsched-live run`` for all sessions, such as ``--big=0-3`` or ``--degrade``.
        limit_s: Longest time of a run in s.
        progress: Called with the number of finished runs and of all.

    Raises:
        InputError: If a policy is given twice or refused, or a program cannot be run, which is known before anything
            runs; or a program fails.
    """
    _check(policies, rounds, limit_s)
    classes = core_classes(options)
    for program in mix.programs:
        _check_program(program)
    for policy in policies:
        _check_policy(policy, options)
    host = _Host(mix, classes, tuple(options), limit_s)
    with ended_by_signals():
        return _compare(host, policies, rounds, seed, progress)


def _compare(
    host: "_Host", policies: Sequence[str], rounds: int, seed: int, progress: Progress | None
) -> LiveComparison:
    mix = host.mix
    tell = progress or (lambda done, total: None)
    draw = random.Random(seed)  # noqa: S311
    total, done = rounds * (len(mix.programs) + len(policies)), 0
    alone: list[list[float]] = [[] for _ in mix.programs]
    measured: list[tuple[str, int, tuple[float, ...], dict[str, Any]]] = []
    tell(0, total)
    for number in range(rounds):
        # Programs alone are in the same order as everything else: drawn.
        jobs: list[str | int] = [*policies, *range(len(mix.programs))]
        draw.shuffle(jobs)
        for job in jobs:
            if isinstance(job, int):
                alone[job].append(host.alone(mix.programs[job]))
            else:
                measured.append((job, number, *host.together(job)))
            done += 1
            tell(done, total)
    alone_s = tuple(fmean(times) for times in alone)
    runs = tuple(
        _live_run(policy, number, times, alone_s, session) for policy, number, times, session in measured
    )
    return LiveComparison(mix, tuple(policies), alone_s, tuple(host.fast_cpus), runs)


def _live_run(
    policy: str, number: int, times: tuple[float, ...], alone_s: Sequence[float], session: dict[str, Any]
) -> LiveRun:
    metrics = mix_metrics(_ns(times), _ns(alone_s))
    told = session.get("latency")
    if told is None:
        return LiveRun(policy, number, times, metrics, session.get("status", {}))
    programs = {row["program"]: Distribution.from_dict(row["latency"]) for row in told["programs"]}
    return LiveRun(
        policy, number, times, metrics, session["status"], Distribution.from_dict(told["all"]), programs
    )


def _ns(times_s: Sequence[float]) -> list[int]:
    return [max(1, round(time_s * NS_PER_S)) for time_s in times_s]


def _check(policies: Sequence[str], rounds: int, limit_s: float) -> None:
    for policy in filter(is_file, policies):
        raise InputError(f'policy "{policy}": {SIMULATION_ONLY}')
    if not policies or len(set(policies)) < len(policies):
        raise InputError(f"policies: {', '.join(policies) or 'none'}: at least one is needed, each once")
    if rounds < 1:
        raise InputError(f"rounds = {rounds}, at least 1 is needed")
    if not limit_s > 0:
        raise InputError(f"limit_s = {limit_s:g} is not above 0")


def _check_program(program: MixProgram) -> None:
    name = program.command[0]
    if shutil.which(name) is None:
        raise InputError(f"program {program.name}: cannot be run: {name}: {why_not_run(name)}")


def _check_policy(policy: str, options: Sequence[str]) -> None:
    if policy == DEFAULT:
        return
    refused = _check_scheduler(policy) if policy.startswith(OTHERS) else refusal(policy, options)
    if refused is not None:
        raise InputError(f"under {policy}: {refused}")


def _check_scheduler(policy: str) -> str | None:
    """Why somebody else's scheduler cannot be loaded; none as far as can be told before."""
    program, *_ = scheduler(policy)
    if not _under.STATE.exists():
        return f"{_under.STATE}: this kernel has no sched_ext"
    if shutil.which(program) is None:
        return f"{program}: cannot be run: {why_not_run(program)}"
    return None


def scheduler(policy: str) -> list[str]:
    """The program with arguments that a policy of somebody else's is.

    Raises:
        InputError: If its quotation marks do not match.
    """
    try:
        return shlex.split(policy)
    except ValueError as error:
        raise InputError(f'policy "{policy}": {error}') from None


@dataclass(frozen=True, slots=True)
class _Host:
    """Runs programs on some CPUs of this computer."""

    mix: Mix
    classes: dict[str, list[int]]
    options: tuple[str, ...]
    limit_s: float

    @property
    def fast_cpus(self) -> list[int]:
        """CPUs of the fastest class."""
        return next(iter(self.classes.values()))

    def alone(self, program: MixProgram) -> float:
        """Turnaround of a program alone on the fast CPUs in s."""
        (time_s,), _ = self._run(DEFAULT, [dataclasses.replace(program, delay_s=0.0)], self.fast_cpus)
        return time_s

    def together(self, policy: str) -> tuple[tuple[float, ...], dict[str, Any]]:
        """Turnarounds of all programs under a policy in s, and the results of its session."""
        every = sorted(cpu for cpus in self.classes.values() for cpu in cpus)
        return self._run(policy, self.mix.programs, every)

    def _run(
        self, policy: str, programs: Sequence[MixProgram], cpus: Sequence[int]
    ) -> tuple[tuple[float, ...], dict[str, Any]]:
        with temporary_folder("ampsched-live-") as folder:
            try:
                times_s = run_programs(programs, cpus, self.limit_s, self._session(policy, folder))
            except InputError as error:
                raise InputError(f"under {policy}: {error}") from None
            session = folder / SESSION
            return times_s, json.loads(session.read_text(encoding="utf-8")) if session.exists() else {}

    def _session(self, policy: str, folder: Path) -> list[str]:
        """The command that runs others under a policy; empty for the default."""
        if policy == DEFAULT:
            return []
        if policy.startswith(OTHERS):
            return [sys.executable, "-I", "-S", str(UNDER), *scheduler(policy), "--"]
        own = ["--quiet", f"--policy={policy}", f"--result={folder / SESSION}", f"--run-dir={folder}"]
        if os.geteuid() == 0:
            own.append("--user=root")  # as it is without a policy
        return [str(live_program()), "run", *own, *self.options, "--"]
