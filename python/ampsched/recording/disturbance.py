"""How much of the CPUs' time others take."""

import os
from collections.abc import Collection
from pathlib import Path

from ampsched.cpus import allowed_cpus

_BUSY_FIELDS = (0, 1, 2, 5, 6, 7)
"""Of a line of /proc/stat: user, nice, system, interrupts, soft interrupts, stolen by a hypervisor."""


def busy_s(cpus: Collection[int]) -> float:
    """Time since boot during which these CPUs were not idle, or were taken away by a hypervisor, summed, in s.

    Raises:
        OSError: The kernel does not tell.
    """
    names = {f"cpu{cpu}" for cpu in cpus}
    lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    rows = [line.split() for line in lines if line.startswith("cpu")]
    ticks = sum(int(row[1:][field]) for row in rows if row[0] in names for field in _BUSY_FIELDS)
    return ticks / os.sysconf("SC_CLK_TCK")


class Disturbance:
    """What others than this process and its children take of some CPUs, from its making on.

    Args:
        cpus: The CPUs; those that this process may use by default.
    """

    def __init__(self, cpus: Collection[int] | None = None) -> None:
        self._cpus = allowed_cpus() if cpus is None else cpus
        self._begin_busy_s, self._begin = self._busy_s(), os.times()

    @property
    def elapsed_s(self) -> float:
        """Time since then, in s."""
        return os.times().elapsed - self._begin.elapsed

    def share(self) -> float | None:
        """The share of the CPUs' time that neither this process nor its ended children took, nor was idle: 0 to 1.

        None where the kernel does not tell.
        """
        end_busy_s, end = self._busy_s(), os.times()
        if end_busy_s is None or self._begin_busy_s is None or end.elapsed <= self._begin.elapsed:
            return None
        own_s = sum(end[:4]) - sum(self._begin[:4])
        all_s = (end.elapsed - self._begin.elapsed) * len(self._cpus)
        return min(1.0, max(0.0, (end_busy_s - self._begin_busy_s - own_s) / all_s))

    def _busy_s(self) -> float | None:
        try:
            return busy_s(self._cpus)
        except (OSError, ValueError, IndexError):
            return None
