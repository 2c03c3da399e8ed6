"""A computer's files as Linux shows them: on this computer, or below a folder that stands for ``/``."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from ampsched.machine_file.facts import Lack

CPU = "sys/devices/system/cpu"
ENERGY = "sys/kernel/debug/energy_model"
BYTES_MAX = 1 << 16
"""Of one file of /sys or /proc; longer ones are cut there (no fact is that long but cpuinfo of servers)."""
CPUINFO_BYTES_MAX = 1 << 24
SAFE = re.compile(r"[^\x20-\x7e]")


@dataclass
class Source:
    """A tree of files, and what has no place in one."""

    title: str
    """What it is, such as: this computer."""
    by: str
    """Who states the numbers, such as: the kernel."""
    root: Path
    """Stands for ``/``."""
    cores: dict[int, str] = field(default_factory=dict)
    """What the source calls the core of a CPU, such as cortex-a78."""
    volts: dict[int, dict[int, float]] = field(default_factory=dict)
    """Of a CPU, by MHz."""
    coefficients: dict[int, float] = field(default_factory=dict)
    """dynamic-power-coefficient of a CPU, uW/MHz/V2."""
    remarks: list[str] = field(default_factory=list)
    left_out: list[Lack] = field(default_factory=list)
    """What of it could not be understood or used."""
    is_arm: bool | None = None
    """None: the tree says it."""


class Tree:
    """A tree that a translator writes."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, name: str, text: object) -> None:
        """Writes a file of the tree."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")

    def online(self, cpus: list[int]) -> None:
        """States which CPUs there are."""
        self.put(f"{CPU}/online", ",".join(map(str, sorted(cpus))))

    def clock(self, cpus: list[int], khz: list[int], number: int) -> None:
        """States the frequencies that CPUs share, and which."""
        folder = f"{CPU}/cpufreq/policy{number}"
        self.put(f"{folder}/affected_cpus", " ".join(map(str, cpus)).replace(" ", ","))
        if len(khz) > 1:
            self.put(f"{folder}/scaling_available_frequencies", " ".join(map(str, sorted(khz))))
        self.put(f"{folder}/cpuinfo_min_freq", max(khz))
        self.put(f"{folder}/cpuinfo_max_freq", max(khz))
        for cpu in cpus:
            self.put(f"{CPU}/cpu{cpu}/cpufreq/cpuinfo_max_freq", max(khz))

    def cache(self, cpu: int, level: int, kind: str, kib: int, shared: list[int]) -> None:
        """States a cache of a CPU."""
        index = {"Data": 0, "Instruction": 1, "Unified": level}[kind]
        folder = f"{CPU}/cpu{cpu}/cache/index{index}"
        self.put(f"{folder}/level", level)
        self.put(f"{folder}/type", kind)
        if kib:
            self.put(f"{folder}/size", f"{kib}K")
        self.put(f"{folder}/shared_cpu_list", ",".join(map(str, sorted(shared))))

    def energy(self, cpus: list[int], uw_by_khz: dict[int, int]) -> None:
        """States the energy model of CPUs."""
        folder = f"{ENERGY}/cpu{cpus[0]}"
        self.put(f"{folder}/cpus", ",".join(map(str, cpus)))
        self.put(f"{folder}/flags", "0x1")
        for khz, uw in uw_by_khz.items():
            self.put(f"{folder}/ps:{khz}/frequency", khz)
            self.put(f"{folder}/ps:{khz}/power", uw)


def text(root: Path, name: str, most_bytes: int = BYTES_MAX) -> str | None:
    """A file's text in printable ASCII without the white space around it; None if it cannot be read or is empty."""
    try:
        with (root / name).open("rb") as file:
            content = file.read(most_bytes)
    except (OSError, ValueError):
        return None
    lines = content.decode("utf-8", "replace").strip().split("\n")
    return "\n".join(SAFE.sub(" ", line) for line in lines).strip() or None


def number(root: Path, name: str) -> int | None:
    """A whole number of at least 0 in a file; None if there is none."""
    found = text(root, name) or ""
    return int(found) if re.fullmatch(r"\d{1,19}", found) else None


def names(root: Path, folder: str, pattern: str) -> list[str]:
    """Names in a folder that match a pattern as a whole, those with numbers in their order."""
    try:
        found = [path.name for path in (root / folder).iterdir()]
    except OSError:
        return []
    matching = [name for name in found if re.fullmatch(pattern, name)]
    return sorted(matching, key=lambda name: [int(part) for part in re.findall(r"\d+", name)] or [0])
