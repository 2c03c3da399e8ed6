"""How fast this computer's cores are, for recorders: CPU time on slow cores is less work."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from ampsched._core import CoreKind, core_kinds
from ampsched.cpus import allowed_cpus

_CPUS = "/sys/devices/system/cpu"


def core_speeds() -> list[float]:
    """The speed of each core by its number, 0 to 1, as the kernel states it; if it does not, as small programs find it.

    Kernels of Intel's hybrids state no capacities.
    """
    numbers = range(os.cpu_count() or 1)
    files = [Path(f"{_CPUS}/cpu{number}/cpu_capacity") for number in numbers]
    capacities = [float(file.read_text()) if file.exists() else 0.0 for file in files]
    if all(capacities):
        return [capacity / max(capacities) for capacity in capacities]
    kinds = core_kinds(allowed_cpus())
    measured = _measured(tuple(kinds)) if len(kinds) > 1 else {}
    return [measured.get(number, 1.0) for number in numbers]


@cache
def _measured(kinds: tuple[CoreKind, ...]) -> dict[int, float]:
    from ampsched.calibration.measure import relative_speeds

    return relative_speeds(kinds)
