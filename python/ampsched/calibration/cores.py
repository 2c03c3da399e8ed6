"""Kinds of cores of this computer, as Linux shows them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# Part numbers of Arm cores (their TRMs, MIDR_EL1) that have a core type here.
ARM_PARTS = {
    0xC07: "cortex-a7",
    0xC0F: "cortex-a15",
    0xD03: "cortex-a53",
    0xD05: "cortex-a55",
    0xD07: "cortex-a57",
    0xD0B: "cortex-a76",
    0xD44: "cortex-x1",
}
# Linux names the PMUs of Intel's hybrid processors so; which generation of core it is, they do not say.
HYBRID_PMUS = {"cpu_core": "golden-cove", "cpu_atom": "gracemont"}
UNKNOWN = "generic"


@dataclass(frozen=True, slots=True, order=True)
class CoreKind:
    """Cores that are alike."""

    name: str
    core_type: str
    """The nearest shipped core type."""
    cpus: tuple[int, ...]
    mhz: int | None
    """Highest frequency, if Linux tells it."""
    pmu: int | None
    """Type number of their PMU for perf_event_open; None for the only one."""


def find_cores(cpus: Iterable[int], sys: Path = Path("/sys"), proc: Path = Path("/proc")) -> list[CoreKind]:
    """Kinds of the given CPUs, by PMU, core type, capacity and highest frequency, the first CPU's kind first.

    Args:
        cpus: CPUs that may be used.
        sys: Where sysfs is.
        proc: Where procfs is.
    """
    pmus = _pmus(sys / "bus/event_source/devices")
    kinds: dict[tuple[str, int | None, int, int | None], list[int]] = {}
    for cpu in sorted(cpus):
        folder = sys / f"devices/system/cpu/cpu{cpu}"
        name, number = next(
            ((name, number) for name, (number, own) in pmus.items() if cpu in own), ("", None)
        )
        core_type = HYBRID_PMUS.get(name) or _arm_type(folder) or UNKNOWN
        capacity = _number(folder / "cpu_capacity") or 0
        khz = _number(folder / "cpufreq/cpuinfo_max_freq")
        kinds.setdefault((core_type, number, capacity, khz), []).append(cpu)
    # Frequencies in cpuinfo waver, so they do not tell kinds apart.
    return [
        CoreKind(
            f"{core_type}-{place}",
            core_type,
            tuple(found),
            khz // 1000 if khz else _proc_mhz(proc / "cpuinfo", found[0]),
            number,
        )
        for place, ((core_type, number, _, khz), found) in enumerate(kinds.items())
    ]


def _pmus(devices: Path) -> dict[str, tuple[int, set[int]]]:
    """PMUs of kinds of cores: type number and CPUs."""
    found = {}
    for folder in sorted(devices.glob("*")) if devices.is_dir() else []:
        number = _number(folder / "type")
        cpus = folder / "cpus"
        if number is not None and cpus.is_file() and re.match(r"cpu_|armv", folder.name):
            found[folder.name] = (number, parse_cpus(cpus.read_text()))
    return found


def parse_cpus(text: str) -> set[int]:
    """Reads a list such as ``0-3,8``."""
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cpus |= set(range(int(first), int(last or first) + 1))
    return cpus


def _arm_type(folder: Path) -> str | None:
    path = folder / "regs/identification/midr_el1"
    if not path.is_file():
        return None
    midr = int(path.read_text(), 16)
    # Implementer 0x41 is Arm.
    return ARM_PARTS.get(midr >> 4 & 0xFFF) if midr >> 24 & 0xFF == 0x41 else None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _proc_mhz(path: Path, cpu: int) -> int | None:
    """Present frequency of a CPU in cpuinfo (x86)."""
    try:
        blocks = path.read_text().split("\n\n")
    except OSError:
        return None
    for block in blocks:
        if re.search(rf"^processor\s*: {cpu}$", block, re.MULTILINE):
            found = re.search(r"^cpu MHz\s*: ([\d.]+)$", block, re.MULTILINE)
            return round(float(found[1])) if found else None
    return None
