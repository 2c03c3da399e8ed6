"""Energy that this computer measures: by RAPL, a sensor of hwmon or a battery. What is not there is not guessed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ampsched.files import shown

SYS = Path("/sys/class")
UJ_PER_UWH = 3600
_SOCKET = "esocket"
"""How labels of sockets begin (Documentation/hwmon/amd_energy.rst)."""


@dataclass(frozen=True, slots=True)
class Counter:
    """A file that counts energy.

    Attributes:
        file: Which.
        unit_uj: What it counts in, in uJ; below 0 if it counts what is left.
        ranges: After how many of these it begins anew; none if that is not known.
    """

    file: Path
    unit_uj: int = 1
    ranges: int | None = None


@dataclass(frozen=True, slots=True)
class Meter:
    """What tells the energy of a run.

    Attributes:
        name: What it is, such as ``RAPL: package-0``.
        counters: They count different parts of the computer, so they are added.
    """

    name: str
    counters: tuple[Counter, ...]

    @property
    def files(self) -> list[str]:
        """The counters' files."""
        return [str(each.file) for each in self.counters]

    def joules(self, before: Sequence[int], after: Sequence[int]) -> float | None:
        """Energy between two readings of all counters, in J; none if one did not move or could not be read."""
        found_uj = 0
        for counter, first, last in zip(self.counters, before, after, strict=True):
            moved = last - first
            if counter.unit_uj > 0 and moved < 0 and counter.ranges:
                moved += counter.ranges
            if min(first, last) < 0 or moved * counter.unit_uj <= 0:
                return None
            found_uj += moved * counter.unit_uj
        return found_uj / 1e6


def find_meter(root: Path = SYS) -> tuple[Meter | None, str]:
    """The best meter of this computer that can be read, or why there is none.

    RAPL's packages come first; then sensors of hwmon that count sockets, or a single one; then batteries that
    discharge, which count coarsely.

    Args:
        root: Where classes of devices are.
    """
    hidden: list[str] = []
    for name, counters in (("RAPL", _rapl(root)), ("hwmon", _hwmon(root)), ("battery", _batteries(root))):
        hidden += [each.file.parent.name for each in counters.values() if _number(each.file) is None]
        if counters and all(_number(each.file) is not None for each in counters.values()):
            return Meter(f"{name}: {', '.join(counters)}", tuple(counters.values())), ""
    if hidden:
        return None, f"{', '.join(hidden)} may not be read by this user (root may)"
    return None, "neither RAPL nor a sensor of hwmon nor a battery in use tells it"


def _rapl(root: Path) -> dict[str, Counter]:
    """Packages; their parts are in them, and so may packages be in ``psys``."""
    found = {}
    for folder in sorted((root / "powercap").glob("intel-rapl:*")):
        name = _text(folder / "name")
        if name.startswith("package"):
            most = _number(folder / "max_energy_range_uj")
            found[name] = Counter(folder / "energy_uj", ranges=most and most + 1)
    return found


def _hwmon(root: Path) -> dict[str, Counter]:
    """Sockets; of others nobody knows which is part of which, unless there is only one."""
    found = {}
    for file in sorted((root / "hwmon").glob("hwmon*/energy*_input")):
        label = _text(file.with_name(file.name.replace("_input", "_label"))) or _text(file.parent / "name")
        found[label or file.name] = Counter(file)
    sockets = {label: each for label, each in found.items() if label.lower().startswith(_SOCKET)}
    return sockets or (found if len(found) == 1 else {})


def _batteries(root: Path) -> dict[str, Counter]:
    """Those that discharge."""
    folders = sorted((root / "power_supply").glob("*/energy_now"))
    return {
        shown(file.parent.name): Counter(file, -UJ_PER_UWH)
        for file in folders
        if _text(file.parent / "status") == "Discharging"
    }


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", errors="replace").strip()
    except OSError:
        return ""


def _number(file: Path) -> int | None:
    text = _text(file)
    return int(text) if text.isdecimal() else None
