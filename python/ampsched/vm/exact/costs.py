"""How fast the cores of an exact virtual machine are, and what instructions cost on them: from the machine's file.

The simulator's core model (docs/explanation/core-model.md) says how many cycles an instruction of each kind takes on
a core type, and a load that misses caches. This module only scales what the model says. Branches cost what they cost
if they are predicted. Nothing is chosen here:

* clocks come from the machine's file: the highest frequency of each cluster;
* pipeline, width, window, latencies, and how long units are occupied come from the core type's file, which names the
  source of every number (optimisation guides, compilers' pipeline descriptions, measurements; else *estimate*);
* how much code waits for results is the mean over the shipped programs' profiles, which were measured.
"""

from dataclasses import dataclass

from ampsched._core import Machine
from ampsched.catalog import Catalog
from ampsched.vm.error import VmError

SHARES = 64
"""The clock counts shares: so many are an instruction of cost 1. Equals SHARES in ``crates/live/exact/machine.h``."""
MIPS = (1.0, 100_000.0)
"""Lowest and highest rate of the fastest cores; the clock's own limits."""


@dataclass(frozen=True)
class MissCosts:
    """Caches of a cluster, and what an access that misses the L1 costs beside its instruction.

    Attributes:
        cluster: Number of the cluster, whose cores share the L2.
        l1_kib: Size of each core's L1 data cache.
        l2_kib: Size of the L2.
        shares: Cost in shares: a load that hits the L2; one that misses it; both behind a line that was used just
            before, which prefetchers foresee; a store that misses the L2.
    """

    cluster: int
    l1_kib: int
    l2_kib: int
    shares: tuple[int, int, int, int, int]


@dataclass(frozen=True)
class RateChoice:
    """Rates of a cluster among which the guest chooses.

    Attributes:
        address: Place in the guest's memory, in bytes, of the word with the number of the chosen rate.
        rates_kips: The rates; none is above that of the class.
    """

    address: int
    rates_kips: tuple[int, ...]


@dataclass(frozen=True)
class ClassCosts:
    """What cores of a class can execute.

    Attributes:
        rate_kips: Thousand instructions of cost 1 (64 shares) per second.
        shares: Cost of an instruction in shares: integer, memory, branch, floating point, SIMD.
        misses: Caches; without, all accesses cost what they cost in the L1.
        choice: Rates among which the guest chooses; without, they always have the one above.
    """

    rate_kips: int
    shares: tuple[int, int, int, int, int]
    misses: MissCosts | None = None
    choice: RateChoice | None = None


def costs(machine: Machine, mips: float = 1000.0, *, caches: bool = False) -> list[ClassCosts]:
    """What the cores of each cluster can execute at their highest frequency, in the order of the clusters.

    An integer instruction costs 1 everywhere, so rates stand to each other as speeds of integer code do. Another
    kind costs as many times an integer instruction as it takes cycles of one on that core. A lower frequency
    lowers the rate in proportion and leaves the costs.

    Args:
        machine: Clusters, their core types and frequencies.
        mips: Million integer instructions per second of the fastest cluster. Real cores do more than a computer
            that imitates them has time for; the ratios are what counts.
        caches: Whether an L1 per core and an L2 per cluster are modelled, so that programs that wait for memory gain
            less from a fast core. It takes up to three times the computer's time.

    Raises:
        VmError: The rate is out of range, also that of a slower cluster.
    """
    cycles = machine.kind_cycles(Catalog.shipped().core)
    speeds = [mhz / each[0] for (_, _, _, mhz, _), each in zip(machine.clusters, cycles, strict=True)]
    misses = _misses(machine, [each[0] for each in cycles]) if caches else [None] * len(cycles)
    return [
        ClassCosts(_rate_kips(mips * speed / max(speeds)), _shares(each), missed)
        for speed, each, missed in zip(speeds, cycles, misses, strict=True)
    ]


def _rate_kips(mips: float) -> int:
    if not MIPS[0] <= mips <= MIPS[1]:
        raise VmError(f"{mips:g} million instructions per second: from {MIPS[0]:g} to {MIPS[1]:g}")
    return round(mips * 1000)


def _shares(cycles: tuple[float, float, float, float, float]) -> tuple[int, int, int, int, int]:
    integer, memory, branch, floating_point, simd = (round(SHARES * each / cycles[0]) for each in cycles)
    return integer, memory, branch, floating_point, simd


def _misses(machine: Machine, integer_cycles: list[float]) -> list[MissCosts | None]:
    """Caches of each cluster: sizes and costs from its core type and frequency, as the core model has them."""
    cycles = machine.miss_cycles(Catalog.shipped().core)
    return [
        _miss_costs(cluster, machine.caches(cluster), missed, integer)
        for cluster, (missed, integer) in enumerate(zip(cycles, integer_cycles, strict=True))
    ]


def _miss_costs(
    cluster: int, caches: tuple[float, float, float], missed: tuple[float, float, float], integer: float
) -> MissCosts:
    l1_kib, l2_kib, prefetch_share = caches
    near, far, line = missed
    left = 1 - prefetch_share
    l2, memory, l2_stream, memory_stream, store = (
        round(SHARES * each / integer)
        for each in (near, near + far, near * left, near * left + max(far * left, line), line)
    )
    return MissCosts(cluster, round(l1_kib), round(l2_kib), (l2, memory, l2_stream, memory_stream, store))
