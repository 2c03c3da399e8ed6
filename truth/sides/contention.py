"""How much the kernel back end's one lock costs: pairs of threads that wake each other on more and more cores.

CPUs of the exact machine take turns of a quantum, and whoever holds a lock at the end of its turn lets others spin for
theirs. So the quantum decides how much contention is seen: a long one hides short critical sections, as nobody looks
while they last. It is measured with several.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ampsched import Catalog
from ampsched.vm.exact import Exact
from ampsched.vm.exact.costs import SHARES, ClassCosts
from truth.campaign.boot import Guest, Scheduler
from truth.campaign.plan import Mix, Program
from truth.campaign.run import Group, carry_out_all
from truth.campaign.store import Store
from truth.sides.report import table

CORES = (4, 8, 16, 32)
QUANTA_US = (4.0, 2.0, 1.0)
MIPS = (1000, 990)
"""Of two classes, for our policies schedule nothing less: equal but for 1 %."""
WORK = 500
"""Iterations of 4 instructions between two wake-ups: 2 us."""
MS = 30
MACHINE = """name = "{name}"
description = "{cores} cores, half of them 1 % faster"
[[clusters]]
name = "big"
core_type = "generic"
cores = {half}
class = 1
opps = [{{ mhz = {big_mhz}, volt = 1.0 }}]
[[clusters]]
name = "little"
core_type = "generic"
cores = {half}
class = 0
opps = [{{ mhz = {little_mhz}, volt = 1.0 }}]
[costs]
context_switch_ns = 0
migrate_same_cluster_ns = 0
migrate_cross_cluster_ns = 0
wakeup_latency_ns = 0
"""


@dataclass(frozen=True)
class Point:
    """A machine with some cores whose CPUs take turns of a quantum."""

    cores: int
    quantum_us: float

    @property
    def name(self) -> str:
        """Names a folder."""
        return f"pairs-{self.cores}-{self.quantum_us:g}us"

    def guest(self, folder: Path, programs: Path) -> Guest:
        """The machine; its file is put into a folder."""
        path = folder / f"{self.name}.toml"
        big_mhz, little_mhz = MIPS
        machine = MACHINE.format(
            name=self.name, cores=self.cores, half=self.cores // 2, big_mhz=big_mhz, little_mhz=little_mhz
        )
        path.write_text(machine, "utf-8")
        speeds = [ClassCosts(mips * 1000, (SHARES,) * 5) for mips in MIPS]
        exact = Exact(Catalog.shipped().machine(path), quantum_us=self.quantum_us, speeds=speeds)
        return Guest(self.name, exact, programs)

    def mix(self) -> Mix:
        """As many pairs as cores: each has one thread to run all the time."""
        words = ("/campaign/bin/pairs", "--pairs", str(self.cores), "--work", str(WORK), "--ms", str(MS))
        return Mix("pairs", "pairs that wake each other", (Program("pairs", words, reports=True),))


POINTS = tuple(Point(cores, quantum_us) for quantum_us in QUANTA_US for cores in CORES)


def measure(
    folder: Path,
    programs: Path,
    schedulers: Sequence[Scheduler],
    store: Store,
    points: Sequence[Point],
    jobs: int,
) -> None:
    """Runs what the store does not have yet."""
    for point in points:
        guest = point.guest(folder, programs)
        groups = [Group(guest, scheduler, (point.mix(),)) for scheduler in schedulers]
        carry_out_all(groups, [[0]], store, jobs)


def rate(store: Store, guest: Guest, scheduler: str) -> float:
    """Wake-ups per core and ms."""
    row = store.read(guest.name, guest.system, scheduler)["pairs", 0]
    found = row["programs"][0]["report"]
    return float(found["wakeups"] / found["pairs"] / (found["ns"] / 1e6))


def rates_table(
    folder: Path, programs: Path, schedulers: Sequence[Scheduler], store: Store, points: Sequence[Point]
) -> str:
    """Wake-ups per core and ms; one row per quantum and number of cores."""
    rows = []
    for point in points:
        guest = point.guest(folder, programs)
        own = [rate(store, guest, scheduler.name) for scheduler in schedulers]
        rows.append([f"{point.cores} cores, {point.quantum_us:g} us", *(f"{each:.1f}" for each in own)])
    return table(["wake-ups per core and ms", *(f"`{scheduler.name}`" for scheduler in schedulers)], rows)
