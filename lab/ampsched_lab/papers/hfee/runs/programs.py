"""What each program of HFEE does alone: speeds, the big frequency as fast as a little core, efficiency.

A program's speed is constant while it runs, so that a short stretch of it tells all (Figures 5 to 7).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise, product

from ampsched import _core
from ampsched.execution import job_of, run_all
from ampsched.policy import PolicySpec
from ampsched.results import Outcome
from ampsched.settings import RunSettings
from ampsched_lab.papers.hfee import setup
from ampsched_lab.papers.hfee.setup import BIG, LITTLE

STRETCH_MS = 1000.0


@dataclass(frozen=True, slots=True)
class Alone:
    """A program alone on one core."""

    program: str
    big_ips: dict[int, float]
    """Instructions per s on a big core, by its frequency in MHz."""
    little_ips: dict[int, float]
    """The same on a little core."""
    stated_eer: float
    """(Instructions per joule on a big core) / (the same on a little one) as published."""
    modelled_eer: float
    """The same by the machine's power model: energy of cores that run and of what they share."""

    @property
    def top_ips(self) -> float:
        """Instructions per s on a big core at its highest frequency."""
        return self.big_ips[max(self.big_ips)]

    @property
    def little_top_ips(self) -> float:
        """Instructions per s on a little core at its highest frequency."""
        return self.little_ips[max(self.little_ips)]

    @property
    def equal_mhz(self) -> float | None:
        """The big frequency at which a big core is as fast as a little one at its highest (freq_eq).

        Linear between operating points; None if no frequency is that low.
        """
        wanted = self.little_top_ips
        for (low, slow), (high, fast) in pairwise(sorted(self.big_ips.items())):
            if slow <= wanted <= fast:
                return low + (high - low) * (wanted - slow) / (fast - slow)
        return None


def run(jobs: int) -> tuple[Alone, ...]:
    """Measures all programs alone at every frequency.

    Args:
        jobs: Processors to use; 0: all. Results do not depend on it.
    """
    machine = setup.machine(setup.PAPER)
    kinds = {BIG: machine.only_big(), LITTLE: machine.only_little()}
    points = [(kind, mhz) for kind, where in kinds.items() for mhz in setup.mhz_of(where, kind)]
    steps = list(product(setup.programs(), points))
    outcomes = run_all([_job(kinds[kind], kind, mhz, name) for name, (kind, mhz) in steps], jobs)
    per_program: dict[str, list[tuple[str, int, Outcome]]] = {}
    for (name, (kind, mhz)), outcome in zip(steps, outcomes, strict=True):
        per_program.setdefault(name, []).append((kind, mhz, outcome))
    return tuple(_alone(name, rows) for name, rows in per_program.items())


def _job(where: _core.Machine, kind: str, mhz: int, program: str) -> tuple[_core.Job, PolicySpec]:
    settings = RunSettings(energy=True, until_ms=STRETCH_MS, governor=setup.fixed({kind: mhz}))
    policy = PolicySpec.of("cfs")
    return job_of(settings, where, setup.alone_workload(program), policy), policy


def _alone(program: str, rows: Iterable[tuple[str, int, Outcome]]) -> Alone:
    ips: dict[str, dict[int, float]] = {BIG: {}, LITTLE: {}}
    per_uj: dict[str, float] = {}
    for kind, mhz, outcome in rows:
        [thread], [cluster] = outcome.threads, outcome.clusters
        assert cluster.energy is not None, "energy was asked for"
        ips[kind][mhz] = thread.instructions * 1e9 / thread.run_ns
        # Frequencies ascend: the last one stays.
        per_uj[kind] = thread.instructions / (cluster.energy.running_uj + cluster.energy.uncore_uj)
    [stated] = setup.alone_workload(program).energy_ratios
    assert stated is not None, "HFEE's programs state their ratio"
    return Alone(program, ips[BIG], ips[LITTLE], stated, per_uj[BIG] / per_uj[LITTLE])
