"""Uniformity at fixed frequencies (Figures 8 and 9).

On three big and three little cores the six programs stay where HFEE's ranking puts them, so that a short
stretch tells all.
"""

from dataclasses import dataclass

from ampsched import metrics
from ampsched.execution import job_of, run_all
from ampsched.policy import PolicySpec
from ampsched.settings import RunSettings
from ampsched_lab.papers.hfee import setup
from ampsched_lab.papers.hfee.setup import BIG, LITTLE, SCRIPTS, WORKLOADS

WHOLE_GRID = ("w6", "w2")
"""The workloads of Figure 8: HHHHHL and MMMMMM."""
STRETCH_MS = 3000.0
MAPPING = "hfee:clock=0:epoch_ms=10"
"""HFEE's ranking alone, without its clock."""


@dataclass(frozen=True, slots=True)
class Point:
    """A workload at fixed frequencies."""

    mix: str
    big_mhz: int
    little_mhz: int
    uniformity: float
    """Of slowdowns against alone on a big core at its highest frequency, population sigma."""


def run(jobs: int) -> tuple[Point, ...]:
    """Measures all workloads along the big frequency, and those of Figure 8 at every pair of frequencies.

    Args:
        jobs: Processors to use; 0: all. Results do not depend on it.
    """
    machine = setup.machine(SCRIPTS)
    big, little = (setup.mhz_of(machine, kind) for kind in (BIG, LITTLE))
    points = [
        (mix, high, low)
        for mix in WORKLOADS
        for high in big
        for low in (little if mix in WHOLE_GRID else little[-1:])
    ]
    policy = PolicySpec.of(MAPPING)
    tasks = []
    for mix, high, low in points:
        settings = RunSettings(until_ms=STRETCH_MS, governor=setup.fixed({BIG: high, LITTLE: low}))
        tasks.append((job_of(settings, machine, setup.mix(mix), policy), policy))
    found = []
    for (mix, high, low), outcome in zip(points, run_all(tasks, jobs), strict=True):
        found.append(Point(mix, high, low, metrics.uniformity(setup.slowdowns_so_far(outcome))))
    return tuple(found)


def along_big(points: tuple[Point, ...], mix: str) -> dict[int, float]:
    """Uniformity by big frequency with the little cores at their highest."""
    own = [point for point in points if point.mix == mix]
    top = max(point.little_mhz for point in own)
    return {point.big_mhz: point.uniformity for point in own if point.little_mhz == top}


def best_big_mhz(points: tuple[Point, ...], mix: str) -> int:
    """The big frequency with the greatest uniformity, the little cores at their highest."""
    line = along_big(points, mix)
    return max(line, key=line.__getitem__)
