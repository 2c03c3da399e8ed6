"""Which setting is best for a recorded program: threads, cores, policy and, if energy counts, who sets the clocks.

Settings are many, and most are far from the best. So policies are compared on all cores first; then the best of them
and the baseline are tried with every number of threads on every set of cores, by a single draw of all that is random;
and only what that leaves near the best is simulated with all draws, the same ones for every setting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby, product
from statistics import fmean
from typing import Any

from ampsched import api
from ampsched._core import Machine
from ampsched.comparison import Comparison
from ampsched.recording.check import LINUX
from ampsched.recording.conditions import Conditions
from ampsched.recording.cores import ALL, core_sets
from ampsched.recording.goals import Metric
from ampsched.recording.setting import Setting
from ampsched.statistics import Estimate

POLICIES_MOST = 3
"""So many of the best policies on all cores are tried on some of them and with other numbers of threads."""
FINALISTS = 8
"""So many of the settings that a single draw ranks first get all draws."""
GOVERNORS = ("performance", "schedutil", "powersave")
"""What is tried for clocks: always the highest, as the load asks, always the lowest."""

Step = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Tried:
    """A setting, and what the goal compares of it.

    Attributes:
        setting: The setting.
        draws: The value of each draw; a single one if that ruled it out.
        change: Against the usual setting, paired by draw: -0.1 is 10 % less.
        time_s: How long the program takes, whatever the goal compares: mean of the draws.
    """

    setting: Setting
    draws: tuple[float, ...]
    change: Estimate
    time_s: float = 0.0

    @property
    def value(self) -> float:
        """Mean of its draws."""
        return sum(self.draws) / len(self.draws)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        cores = self.setting.cores
        return {
            "name": self.setting.name,
            "policy": self.setting.policy,
            "threads": self.setting.threads,
            "cores": cores.name if cores else ALL,
            "cpus": list(cores.cpus) if cores else None,
            "environment": dict(self.setting.environment),
            "governor": self.setting.governor,
            "value": self.value,
            "time_s": self.time_s,
            "change": self.change.mean,
            "half_width": self.change.half_width,
            "draws": len(self.draws),
        }


@dataclass
class Trials:
    """Simulations of settings on a machine, each at most once.

    Attributes:
        machine: The machine.
        posed: The program's conditions, for each number of threads; none if there is only one.
        usual: What others are measured against.
        metric: What is compared.
        options: Those of `ampsched.compare`.
        known: The draws of what was simulated.
        times_s: Mean turnarounds of the same.
    """

    machine: Machine
    posed: Mapping[int | None, Conditions]
    usual: Setting
    metric: Metric
    options: Mapping[str, Any]
    known: dict[Setting, tuple[float, ...]] = field(default_factory=dict)
    times_s: dict[Setting, float] = field(default_factory=dict)

    def run(self, settings: Iterable[Setting], repeat: int) -> None:
        """Simulates with so many draws what has fewer, the policies of equal settings together."""
        missing = [each for each in dict.fromkeys(settings) if len(self.known.get(each, ())) < repeat]
        alike = sorted(missing, key=lambda each: repr(replace(each, policy="")))
        for setting, group in groupby(alike, key=lambda each: replace(each, policy="")):
            policies = [each.policy for each in group]
            options = {**self.options, **({"governor": setting.governor} if setting.governor else {})}
            workload = self.posed[setting.threads].workload
            if setting.cores is not None:
                workload = workload.on_cores(self.machine, setting.cores.cpus)
            compared = api.compare(self.machine, workload, policies, repeat=repeat, limits=False, **options)
            self.note(compared, setting)

    def note(self, compared: Comparison, setting: Setting) -> None:
        """Notes what a setting has given under each of the policies that were compared."""
        for policy in compared.policies:
            here = replace(setting, policy=policy)
            self.known[here] = tuple(self.metric.draws(compared, policy))
            runs = compared.select(*compared.mixes()[0], policy)
            self.times_s[here] = fmean(run.outcome.makespan_ns / 1e9 for run in runs)

    def tried(self, setting: Setting) -> Tried:
        """What is known of a setting."""
        draws = self.known[setting]
        change = self.metric.difference(draws, self.known[self.usual][: len(draws)])
        return Tried(setting, draws, change, self.times_s[setting])


@dataclass(frozen=True, slots=True)
class Found:
    """What was tried.

    Attributes:
        tried: Settings with all draws, the best first.
        ruled_out: Settings that a single draw has ruled out.
    """

    tried: tuple[Tried, ...]
    ruled_out: tuple[Tried, ...]

    @property
    def count(self) -> int:
        """How many settings there were."""
        return len(self.tried) + len(self.ruled_out)

    def of(self, setting: Setting) -> Tried | None:
        """What is known of a setting with all draws."""
        return next((each for each in self.tried if each.setting == setting), None)


def search(trials: Trials, repeat: int, *, with_clocks: bool = False, step: Step = lambda _: None) -> Found:
    """Finds the best setting.

    Args:
        trials: Policies on all cores with the usual number of threads are known to it.
        repeat: Number of draws.
        with_clocks: Try governors, too.
        step: Called with what is done next, in words.
    """
    on_all = _ranked(trials, trials.known)
    policies = dict.fromkeys([LINUX, *(each.setting.policy for each in on_all[:POLICIES_MOST])])
    cores = (None, *core_sets(trials.machine))
    grid = [
        Setting(policy, threads, some) for threads, some, policy in product(trials.posed, cores, policies)
    ]
    open_ones = [each for each in grid if each not in trials.known]
    if open_ones:
        counts = f"{len(trials.posed)} numbers of threads" if len(trials.posed) > 1 else ""
        sets = f"{len(cores)} sets of cores" if len(cores) > 1 else ""
        step(f"trying {len(open_ones)} settings: {' and '.join(filter(None, [counts, sets]))}")
    trials.run(open_ones, 1)
    best = [each.setting for each in _ranked(trials, open_ones)[:FINALISTS]]
    trials.run(best, repeat)
    first = _with_all(trials, repeat)[0].setting
    trials.run(steps(trials.usual, first), repeat)
    if with_clocks:
        others = [each for each in GOVERNORS if each != trials.options["governor"]]
        step(f"trying governors: {', '.join(others)}")
        for setting in dict.fromkeys([trials.usual, first]):
            trials.run([replace(setting, governor=each) for each in others], repeat)
        trials.run(steps(trials.usual, _with_all(trials, repeat)[0].setting), repeat)
    full = _with_all(trials, repeat)
    kept = {each.setting for each in full}
    return Found(tuple(full), tuple(_ranked(trials, (each for each in trials.known if each not in kept))))


def steps(usual: Setting, best: Setting) -> list[Setting]:
    """From the usual setting to the best one, a part after the other, the least effort first; both are in it."""
    path = [usual]
    for name in ("threads", "cores", "environment", "governor", "policy"):
        if getattr(path[-1], name) != getattr(best, name):
            path.append(replace(path[-1], **{name: getattr(best, name)}))
    return path


def _ranked(trials: Trials, settings: Iterable[Setting]) -> list[Tried]:
    return sorted(map(trials.tried, settings), key=lambda each: each.change.mean)


def _with_all(trials: Trials, repeat: int) -> list[Tried]:
    return _ranked(trials, (each for each, draws in trials.known.items() if len(draws) >= repeat))
