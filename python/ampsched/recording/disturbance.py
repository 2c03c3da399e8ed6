"""How much of the CPUs' time others took while a program was recorded."""

import os
from pathlib import Path

_BUSY_FIELDS = (0, 1, 2, 5, 6, 7)
"""Of a line of /proc/stat: user, nice, system, interrupts, soft interrupts, stolen by a hypervisor."""


class Disturbance:
    """Measures from its making on."""

    def __init__(self) -> None:
        self._cpus = os.sched_getaffinity(0)
        self._begin_busy_s, self._begin = self._busy_s(), os.times()

    def share(self) -> float | None:
        """The share of the allowed CPUs' time that neither this process nor its ended children took, nor was idle.

        None where the kernel does not tell.
        """
        end_busy_s, end = self._busy_s(), os.times()
        if end_busy_s is None or self._begin_busy_s is None or end.elapsed <= self._begin.elapsed:
            return None
        own_s = sum(end[:4]) - sum(self._begin[:4])
        all_s = (end.elapsed - self._begin.elapsed) * len(self._cpus)
        return min(1.0, max(0.0, (end_busy_s - self._begin_busy_s - own_s) / all_s))

    def _busy_s(self) -> float | None:
        names = {f"cpu{cpu}" for cpu in self._cpus}
        try:
            lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
            rows = [line.split() for line in lines if line.startswith("cpu")]
            ticks = sum(int(row[1:][field]) for row in rows if row[0] in names for field in _BUSY_FIELDS)
        except (OSError, ValueError, IndexError):
            return None
        return ticks / os.sysconf("SC_CLK_TCK")
