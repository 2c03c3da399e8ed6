"""Reads recordings: per thread, one array per column, one entry per synchronisation event."""

import csv
import io
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import zstandard

CALIBRATION = Path(__file__).resolve().parent.parent
RECORDINGS = CALIBRATION / "recordings"
PROFILES = CALIBRATION / "profiles"

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

START, EXIT, CREATE, JOIN = 1, 2, 3, 4
LOCK, TRYFAIL, UNLOCK = 5, 6, 7
CWAIT, CWAKE, CSIG, CBCAST = 8, 9, 10, 11
BAR = 12
OMPFORK, OMPJOIN, OMPBEG, OMPEND = 20, 21, 22, 23
OMPCRIT, OMPUNCRIT = 25, 26
SPIN, SPINUN = 18, 19

FLUSH_NS = 5_000
"""CPU time that exceeds wall time by more than this is the recorder emptying its buffer (about 1 ms each)."""

BY_TRYLOCK = 2
"""Value of `aux` of a LOCK that pthread_mutex_trylock made."""


@dataclass(frozen=True)
class Events:
    """Events of one thread in program order."""

    kind: Ints
    """What happened: one of the constants above."""
    obj: Ints
    """Hash of the object's address."""
    aux: Ints
    """Detail, see the recordings' README."""
    blocked: Bools
    """Whether the call had to wait."""
    cpu: Ints
    """ns of CPU used since the thread's previous event."""
    at: Ints
    """ns of wall time since the process's first event."""

    def total_cpu(self) -> int:
        """CPU time of the thread in ns."""
        return int(self.cpu.sum())


@dataclass(frozen=True)
class Recording:
    """One recorded run."""

    name: str
    info: dict[str, Any]
    threads: list[Events]

    def total_cpu(self) -> int:
        """CPU time of all threads in ns."""
        return sum(events.total_cpu() for events in self.threads)


@cache
def load(name: str) -> Recording:
    """The recording `name` from the recordings folder."""
    info = json.loads((RECORDINGS / f"{name}.json").read_text())
    with (RECORDINGS / f"{name}.npz.zst").open("rb") as file:
        data = zstandard.ZstdDecompressor().stream_reader(file).read()
    arrays = np.load(io.BytesIO(data))
    count = 1 + max(int(key[1:].split("_")[0]) for key in arrays.files)
    return Recording(name, info, [_events(arrays, index) for index in range(count)])


def _events(arrays: Any, index: int) -> Events:
    def column(name: str) -> Ints:
        values: Ints = np.atleast_1d(arrays[f"t{index}_{name}"]).astype(np.int64)
        return values

    kind_flag, wall = column("kf"), column("dt")
    return Events(
        kind=kind_flag & 0xFF,
        obj=column("obj"),
        aux=column("aux"),
        blocked=(kind_flag >> 8) & 1 == 1,
        cpu=_without_flushes(column("cpu"), wall),
        at=int(column("t")[0]) + np.cumsum(wall),
    )


def _without_flushes(cpu: Ints, wall: Ints) -> Ints:
    """CPU times without the recorder's own work, which its wall clock leaves out but its CPU clock does not."""
    flushed = cpu > wall + FLUSH_NS
    flushed[0] = False  # the first event has no wall time before it
    return np.where(flushed, wall, cpu)


def table(name: str) -> list[dict[str, str]]:
    """Rows of a CSV file in the folder of measured program characteristics."""
    with (PROFILES / name).open(newline="") as file:
        return list(csv.DictReader(file))
