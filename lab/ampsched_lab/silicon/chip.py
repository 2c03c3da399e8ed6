"""Chips as the judge sees them: their kinds of cores, and all cores together."""

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ampsched_lab.silicon.data import chips
from ampsched_lab.silicon.machines import Cluster, machine_file
from ampsched_lab.silicon.simulated import BENCHMARK_MS, UNTIL_MS, profile, speeds


@dataclass(frozen=True)
class Kind:
    """A cluster of a chip.

    Attributes:
        chip: Its name.
        name: The cluster's.
        core_type: Of its cores.
        l2_kib: Its L2.
        first: Number of its first core, as the file counts: hardware threads.
        cores: How many, a pair of threads as one.
        threads: Of a core.
        points: Operating points, in MHz.
    """

    chip: str
    name: str
    core_type: str
    l2_kib: int
    first: int
    cores: int
    threads: int
    points: tuple[int, ...]

    @property
    def mhz(self) -> int:
        """The highest frequency."""
        return self.points[-1]

    @classmethod
    def of(cls, chip: str) -> "list[Kind]":
        """All of a chip."""
        found, first = [], 0
        for stated in chips()[chip]["clusters"]:
            threads = stated.get("threads_per_core", 1)
            count = stated["cores"] // threads
            points = tuple(Cluster(chip, stated).mhz)
            found.append(
                cls(chip, stated["name"], stated["type"], stated["l2"], first, count, threads, points)
            )
            first += stated["cores"]
        return found

    def speed(self, program: str, mhz: int | None = None) -> float:
        """Million instructions per second of a thread on one core, the others idle, at the highest point by default."""
        others = "".join(f":{kind.name}=0" for kind in Kind.of(self.chip) if kind.name != self.name)
        part = f"{self.chip}:{self.name}={self.threads}@{mhz or self.mhz}{others}"
        return speeds(part, profile(program), [0])[0]


def everything(chip: str, program: str) -> float:
    """Million instructions per second of a thread on every hardware thread of the shipped machine."""
    return sum(speeds(chip, profile(program), _cores(chip, Kind.of(chip)), _until_ms(chip)))


def _until_ms(chip: str) -> int:
    """Where power is limited, as long as the benchmark runs; elsewhere nothing changes."""
    return BENCHMARK_MS if "limit" in chips()[chip] else UNTIL_MS


def some(chip: str, program: str, names: set[str], every: int = 1) -> list[float]:
    """Million instructions per second of a thread on every hardware thread of some clusters, or on one in so many."""
    kinds = [kind for kind in Kind.of(chip) if kind.name in names]
    return speeds(chip, profile(program), _cores(chip, kinds)[::every])


def _cores(chip: str, kinds: list[Kind]) -> list[int]:
    return [kind.first + number for kind in kinds for number in range(kind.cores * kind.threads)]


def changed(chip: str, program: str, *changes: tuple[str, str]) -> tuple[list[float], float]:
    """Million instructions per second of a thread on every hardware thread, and the sum of all cores alone.

    Args:
        chip: Its name.
        program: That all run.
        changes: Regular expressions, and what is put in the chip's machine file instead.
    """
    text = machine_file(chip)
    for pattern, other in changes:
        text = re.sub(pattern, other, text)
    kinds = Kind.of(chip)
    with tempfile.TemporaryDirectory(prefix="ampsched-silicon-") as folder:
        path = Path(folder) / f"{chip}.toml"
        path.write_text(text, "utf-8")
        own = profile(program)
        alone = sum(kind.cores * speeds(path, own, [kind.first])[0] for kind in kinds)
        return speeds(path, own, _cores(chip, kinds), _until_ms(chip)), alone


def together(chip: str, program: str, bandwidth_mb_s: float, *changes: tuple[str, str]) -> float:
    """All cores over the sum of all cores alone, if the memory carried so much, and with other changes."""
    memory = (r"bandwidth_mb_s = \d+", f"bandwidth_mb_s = {bandwidth_mb_s:.0f}")
    every, alone = changed(chip, program, memory, *changes)
    return sum(every) / alone
