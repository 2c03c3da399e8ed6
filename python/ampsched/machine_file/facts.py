"""What is known of a computer, each with its origin: the form between sources and machine files."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

ASSUMED_MHZ = 1000
"""Stands where no source knows a frequency."""
KNOWN, ESTIMATE = "stated by", "estimate:"
"""How comments begin: a source states it, or nobody does."""


@dataclass(frozen=True)
class Fact:
    """A value and where it comes from."""

    value: Any
    origin: str
    """A comment: measured, stated by whom, from the core type, or an estimate and of what."""


@dataclass(frozen=True)
class Lack:
    """What no source says."""

    what: str
    stands: str
    """What stands in the file instead, or why it is left out."""
    affects: str
    """Which answers it makes less sure."""

    def __str__(self) -> str:
        return f"{self.what}: {self.stands} (affects {self.affects})"


ALL = "all comparisons"
UNREADABLE = "left out, it cannot be understood"


@dataclass
class ClusterFacts:
    """Equal cores that share a clock and, if cores share caches, these."""

    name: str
    cpus: list[int]
    """As the computer numbers them; hardware threads of one core are neighbours."""
    class_: Fact
    mhz: list[int]
    """Ascending; at least one."""
    mhz_origin: str
    core: str = ""
    """What the source calls the core, such as cortex-a78; empty: it does not."""
    core_type: Fact = field(default_factory=lambda: Fact("generic", "estimate: the core is not known"))
    capacity: float | None = None
    """Speed at the highest frequency, of 1024."""
    relative_speed: Fact | None = None
    """Of its core type's speed, if that contradicts the capacities."""
    simulated_capacity: float | None = None
    """What the core model makes of core type and relative speed, of 1024."""
    power: dict[int, float] = field(default_factory=dict)
    """mW of a busy core by MHz, of all or none of `mhz`."""
    power_origin: str = ""
    volts: dict[int, float] = field(default_factory=dict)
    """By MHz, of all or none of `mhz`."""
    coefficient: float | None = None
    """dynamic-power-coefficient, uW/MHz/V2."""
    threads_per_core: int = 1
    l2_kib: int | None = None
    shares_l2: bool = False
    """Several cores have one second-level cache."""
    remarks: list[str] = field(default_factory=list)
    """Facts that no key has yet."""


@dataclass
class MachineFacts:
    """A computer."""

    source: str
    """From what it is known, such as: this computer."""
    by: str
    """Who states the numbers, such as: the kernel."""
    clusters: list[ClusterFacts]
    sees: Fact
    last_level_cache: Fact
    costs: dict[str, Fact]
    remarks: list[str] = field(default_factory=list)
    lacks: list[Lack] = field(default_factory=list)

    @property
    def cpus(self) -> list[int]:
        """All CPUs, ascending."""
        return sorted(cpu for cluster in self.clusters for cpu in cluster.cpus)


def unique(texts: Sequence[str]) -> list[str]:
    """The texts without repetitions, in order."""
    return list(dict.fromkeys(texts))
