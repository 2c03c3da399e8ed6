"""Which cores a program should use: the sets of a machine's cores that people try with ``taskset``, and what they earn.

Of 27 public threads by owners of unequal cores, 13 ask this. A program that waits at barriers for its slowest thread,
or fills two threads of each core, is often faster on fewer cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ampsched._core import Machine

ALL = "all cores"
"""What a program uses if nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class Cores:
    """Some of a machine's cores.

    Attributes:
        name: What they are, such as ``the big cores``.
        cpus: Their numbers, ascending, as the machine says.
    """

    name: str
    cpus: tuple[int, ...]

    @property
    def list(self) -> str:
        """Their numbers as Linux writes them, such as ``0-3,8``."""
        starts = [cpu for cpu in self.cpus if cpu - 1 not in self.cpus]
        ends = [cpu for cpu in self.cpus if cpu + 1 not in self.cpus]
        return ",".join(
            f"{one}" if one == other else f"{one}-{other}" for one, other in zip(starts, ends, strict=True)
        )


def core_sets(machine: Machine) -> list[Cores]:
    """The sets that are worth a try: without the slowest classes, only the slowest, each with one thread per core.

    Sets that are all cores are left out, and of equal ones the first stays.
    """
    every = frozenset(range(len(machine.cluster_of_core)))
    found: dict[frozenset[int], str] = {}
    for name, cpus in _by_class(machine):
        for which, some in ((name, cpus), _one_per_core(machine, name, cpus)):
            if some != every:
                found.setdefault(some, which)
    return [Cores(name, tuple(sorted(cpus))) for cpus, name in found.items()]


def thread_counts(machine: Machine) -> list[int]:
    """Numbers of threads that are worth a try, ascending: as many as each set of cores has, and as all cores."""
    return sorted({len(each.cpus) for each in core_sets(machine)} | {len(machine.cluster_of_core)})


def _by_class(machine: Machine) -> Iterator[tuple[str, frozenset[int]]]:
    """All cores; those of the fastest class, of the two fastest, and so on; those of the slowest."""
    classes = sorted({row[4] for row in machine.clusters}, reverse=True)
    yield ALL, frozenset(range(len(machine.cluster_of_core)))
    tried = [classes[:count] for count in range(1, len(classes))]
    for some in [*tried, classes[-1:]]:
        clusters = [number for number, row in enumerate(machine.clusters) if row[4] in some]
        names = "+".join(machine.clusters[number][0] for number in clusters)
        cpus = (cpu for cpu, cluster in enumerate(machine.cluster_of_core) if cluster in clusters)
        yield f"the {names} cores", frozenset(cpus)


def _one_per_core(machine: Machine, name: str, cpus: frozenset[int]) -> tuple[str, frozenset[int]]:
    """The same without the second of two threads of a core."""
    second = {max(one, other) for one, other, _ in machine.siblings}
    how = "one thread per core"
    return how if name == ALL else f"{name}, {how}", cpus - second
