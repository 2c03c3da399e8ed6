"""Performance counters of the calling thread, or of processes that it starts, by the system call perf_event_open(2)."""

import ctypes
import os
import platform
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

# include/uapi/linux/perf_event.h
_TYPE_HARDWARE, _TYPE_CACHE = 0, 3
_L1D, _L1I, _DTLB, _READ_MISS = 0, 1, 3, 1 << 16
_FORMAT_TIMES = 1 | 2
_DISABLED, _INHERIT, _EXCLUDE_KERNEL, _EXCLUDE_HV = 1 << 0, 1 << 1, 1 << 5, 1 << 6
_IOC_ENABLE, _IOC_DISABLE = 0x2400, 0x2401
_ATTR_BYTES = 64  # PERF_ATTR_SIZE_VER0
_SYSCALL = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "armv7l": 364}
# Counter of the vocabulary: type, event.
EVENTS = {
    "cycles": (_TYPE_HARDWARE, 0),
    "instructions": (_TYPE_HARDWARE, 1),
    "llc_accesses": (_TYPE_HARDWARE, 2),
    "llc_misses": (_TYPE_HARDWARE, 3),
    "branches": (_TYPE_HARDWARE, 4),
    "branch_mispredicts": (_TYPE_HARDWARE, 5),
    "stall_fetch_cycles": (_TYPE_HARDWARE, 7),
    "stall_backend_cycles": (_TYPE_HARDWARE, 8),
    "l1d_read_misses": (_TYPE_CACHE, _L1D | _READ_MISS),
    "l1i_misses": (_TYPE_CACHE, _L1I | _READ_MISS),
    "dtlb_misses": (_TYPE_CACHE, _DTLB | _READ_MISS),
}


@dataclass(frozen=True, slots=True)
class Count:
    """A counter's value, scaled up, and the share of the time in which it ran."""

    value: float
    running_share: float


def attributes(kind: int, event: int, pmu: int | None, *, with_children: bool = False) -> bytes:
    """A ``perf_event_attr`` that counts user code, disabled at first.

    With children it also counts threads and processes that are started later, once they have ended.

    On processors with several PMUs the upper half of the event names one (PERF_PMU_TYPE_SHIFT).
    """
    config = event | (pmu or 0) << 32
    flags = _DISABLED | _EXCLUDE_KERNEL | _EXCLUDE_HV | (_INHERIT if with_children else 0)
    return struct.pack("=IIQQQQQIIQ", kind, _ATTR_BYTES, config, 0, 0, _FORMAT_TIMES, flags, 0, 0, 0)


def _open(attribute: bytes) -> int | None:
    """A file descriptor for the calling thread on any CPU; None if the kernel or the PMU refuses."""
    number = _SYSCALL.get(platform.machine())
    if number is None:
        return None
    call = ctypes.CDLL(None, use_errno=True).syscall
    descriptor = int(call(number, ctypes.c_char_p(attribute), 0, -1, -1, ctypes.c_ulong(0)))
    return descriptor if descriptor >= 0 else None


@contextmanager
def counting(pmu: int | None, *, with_children: bool = False) -> Iterator[dict[str, Count]]:
    """Counts what the calling thread does inside, and what it starts; the dictionary is filled at the end.

    Events that this computer does not have are missing from it; all are if it has no PMU or may not be used.
    """
    from fcntl import ioctl

    files = {
        name: _open(attributes(*event, pmu, with_children=with_children)) for name, event in EVENTS.items()
    }
    opened = {name: file for name, file in files.items() if file is not None}
    counts: dict[str, Count] = {}
    try:
        for file in opened.values():
            ioctl(file, _IOC_ENABLE, 0)
        yield counts
        for file in opened.values():
            ioctl(file, _IOC_DISABLE, 0)
        for name, file in opened.items():
            value, enabled_ns, running_ns = struct.unpack("=QQQ", os.read(file, 24))
            if running_ns:
                counts[name] = Count(value * enabled_ns / running_ns, running_ns / enabled_ns)
    finally:
        for file in opened.values():
            os.close(file)
