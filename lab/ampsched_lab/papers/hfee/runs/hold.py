"""Does HFEE hold its uniformity? What it observes epoch by epoch, and what any fixed frequency would give."""

from dataclasses import dataclass
from itertools import pairwise

from ampsched import metrics
from ampsched.execution import job_of, run_all
from ampsched.policy import PolicySpec
from ampsched.results import Outcome
from ampsched.settings import RunSettings
from ampsched_lab.papers.hfee import setup
from ampsched_lab.papers.hfee.setup import BIG, LITTLE, MACHINES, UNIFORMITY_THRESHOLD, WORKLOADS

EPOCHS = 30
SETTLED = 10
"""Epochs after which the threshold should be held."""


@dataclass(frozen=True, slots=True)
class Series:
    """A workload under HFEE, epoch by epoch."""

    machine: str
    mix: str
    uniformity: tuple[float, ...]
    """At the end of each epoch, of slowdowns since the start, as HFEE observes it."""
    mean_mhz: tuple[float, ...]
    """Mean big frequency in each epoch."""
    attainable: float
    """The greatest uniformity after as many epochs with HFEE's mapping at any fixed big frequency."""
    attainable_mhz: int
    """That frequency."""

    steady: float
    """Uniformity of what the programs did after they had settled."""
    reachable: float
    """The greatest uniformity at a fixed big frequency at which HFEE's state machine can stay.

    That is not below one step under the frequency that it calls high, as it raises any lower one while
    uniformity is too low.
    """

    @property
    def verdict(self) -> str:
        """Whether the threshold is held, and if not, why."""
        if self.steady >= UNIFORMITY_THRESHOLD:
            return "held"
        if self.reachable >= UNIFORMITY_THRESHOLD:
            return "missed"
        if self.attainable >= UNIFORMITY_THRESHOLD:
            return "only below HFEE's range"
        return "not attainable"

    @property
    def reached_after(self) -> int | None:
        """Epochs after which HFEE observed the threshold for the first time to stay; None: never."""
        below = [number for number, value in enumerate(self.uniformity, 1) if value < UNIFORMITY_THRESHOLD]
        last = max(below, default=0)
        return last + 1 if last < len(self.uniformity) else None


def mixes() -> tuple[str, ...]:
    """The workloads whose programs all run for as many epochs even alone."""
    return tuple(
        mix
        for mix in WORKLOADS
        if min(setup.alone_ns(name) for name, _, _ in setup.mix(mix).apps) >= EPOCHS * 10**9
    )


def run(jobs: int, policy: str = "hfee") -> tuple[Series, ...]:
    """Measures those workloads on both machines.

    Args:
        jobs: Processors to use; 0: all. Results do not depend on it.
        policy: HFEE or a variant of it.
    """
    return tuple(_series(machine, mix, policy, jobs) for machine in MACHINES for mix in mixes())


def _series(machine: str, mix: str, policy: str, jobs: int) -> Series:
    where, workload = setup.machine(machine), setup.mix(mix)
    own, mapping = PolicySpec.of(policy), PolicySpec.of("hfee:clock=0")
    big_mhz = setup.mhz_of(where, BIG)
    top = {LITTLE: setup.mhz_of(where, LITTLE)[-1]}
    # A simulation is the beginning of a longer one: stopping it after each epoch tells what HFEE saw.
    tasks = [
        (job_of(RunSettings(until_ms=1000.0 * epoch), where, workload, own), own)
        for epoch in range(1, EPOCHS + 1)
    ]
    for mhz in big_mhz:
        settings = RunSettings(until_ms=1000.0 * EPOCHS, governor=setup.fixed({BIG: mhz} | top))
        tasks.append((job_of(settings, where, workload, mapping), mapping))
    outcomes = run_all(tasks, jobs)
    epochs, at_fixed = outcomes[:EPOCHS], outcomes[EPOCHS:]
    fixed = dict(zip(big_mhz, map(observed_uniformity, at_fixed), strict=True))
    best = max(fixed, key=fixed.__getitem__)
    lowest_mhz = setup.F_THRESHOLD_MHZ - setup.STEP_MHZ
    cycles = [0.0, *(_big_cycles(outcome) for outcome in epochs)]
    means = tuple((after - before) / 1e9 for before, after in pairwise(cycles))
    return Series(
        machine,
        mix,
        uniformity=tuple(map(observed_uniformity, epochs)),
        mean_mhz=means,
        attainable=fixed[best],
        attainable_mhz=best,
        steady=metrics.uniformity(setup.slowdowns_between(epochs[SETTLED - 1], epochs[-1])),
        reachable=max(value for mhz, value in fixed.items() if mhz >= lowest_mhz),
    )


def _big_cycles(outcome: Outcome) -> float:
    """MHz x ns."""
    [cluster] = (each for each in outcome.clusters if each.name == BIG)
    return sum(mhz * ns for mhz, ns in cluster.residency)


def observed_uniformity(outcome: Outcome) -> float:
    """Uniformity that HFEE observes at the end of a simulation, population sigma."""
    return metrics.uniformity(setup.slowdowns_so_far(outcome))
