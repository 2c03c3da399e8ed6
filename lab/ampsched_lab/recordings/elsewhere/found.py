"""What is known of programs that were recorded here and run there, as it is kept."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from ampsched.recording import model_error
from ampsched.settings import CoreOrder
from ampsched_lab.gain.machines import LINUX
from ampsched_lab.recordings.elsewhere.measure import CALIBRATED_ON, MIPS, Timed
from ampsched_lab.recordings.elsewhere.programs import SETS

NAMES = dict(zip(SETS, ("elsewhere", "elsewhere-further"), strict=True))
"""What the files of each set are called."""
POLICY = f"linux:kernel={LINUX}"


@dataclass(frozen=True)
class Scheduler:
    """What schedules in a virtual machine.

    Attributes:
        policy: What predicts.
        loaded: What is loaded into the kernel; empty if Linux schedules.
        orders: How cores are numbered, a run each.
    """

    policy: str
    loaded: str
    orders: tuple[CoreOrder, ...]


SCHEDULERS = {
    "linux": Scheduler(POLICY, "", ("big-first", "little-first")),
    "acfs": Scheduler("acfs", "acfs", ("big-first",)),
}
"""Linux, and of our policies that know the cores the one with the fewest rules."""
AWARE = model_error.POLICY
"""The one of them that knows the cores."""
UNAWARE = next(iter(SCHEDULERS))
"""The one that does not know them."""
MEASURED = "2026-11-30"
"""When what is kept was measured; of programs that are measured anew, the date is to be set."""
RUNS = 3
"""Recordings of a program."""


@dataclass
class Found:
    """What is known of a program; times in ns, of this computer or of a virtual machine.

    Attributes:
        plain: Wall and CPU time here, of several runs.
        refused: Why it is refused; empty if it is not.
        follows: Share of its time that follows the cores, as the recording tells it.
        like: Its kind in the product's table of errors, by its first recording.
        mips: Million instructions per second of a machine that is as fast as this computer for it, by the machine.
        fast, slow: Wall and CPU time on two fast cores at 1000 MIPS, and on two slow ones of such a machine.
        measured: Wall time by scheduler and machine, of each order of the cores.
        predicted: Mean of the recordings, orders and seeds, by scheduler and machine.
        predicted_there: The same by the recording on two fast cores of a virtual machine.
        failed: What went wrong in a virtual machine.
    """

    plain: list[Timed] = field(default_factory=list)
    refused: str = ""
    follows: float = 0.0
    like: str = ""
    mips: dict[str, float] = field(default_factory=dict)
    fast: dict[str, Timed] = field(default_factory=dict)
    slow: dict[str, Timed] = field(default_factory=dict)
    measured: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    predicted: dict[str, dict[str, float]] = field(default_factory=dict)
    predicted_there: dict[str, dict[str, float]] = field(default_factory=dict)
    failed: str = ""

    def speedup(self, machine: str) -> float:
        """Of its CPU time, from a machine's slow cores to its fast ones; 0 if it is not known."""
        on = CALIBRATED_ON[machine]
        if on not in self.slow:
            return 0.0
        return self.slow[on].cpu_ns / (self.fast[on].cpu_ns * MIPS / self.mips[on])

    @property
    def is_known(self) -> bool:
        """Whether there is something to say of it."""
        return bool(self.refused or self.failed or self.measured)

    def errors(self, scheduler: str, is_there: bool = False) -> dict[str, float]:
        """0.05: predicted to take 5 % too long; by machine. By recordings of this computer, or by that made there."""
        measured = self.measured.get(scheduler, {})
        predicted = (self.predicted_there if is_there else self.predicted).get(scheduler, {})
        return {
            name: predicted[name] / fmean(times) - 1 for name, times in measured.items() if name in predicted
        }

    def logs(self, scheduler: str) -> dict[str, float]:
        """ln(measured / predicted) by machine."""
        return {machine: -math.log1p(error) for machine, error in self.errors(scheduler).items()}

    def changes(self) -> list[float]:
        """The same of what `AWARE` makes of the time under `UNAWARE`, for each machine where both ran."""
        aware, unaware = self.logs(AWARE), self.logs(UNAWARE)
        return [aware[machine] - unaware[machine] for machine in aware if machine in unaware]


def _found(kept: Mapping[str, Any]) -> Found:
    timed = {
        name: {machine: Timed(**each) for machine, each in kept[name].items()} for name in ("fast", "slow")
    }
    return Found(**{**kept, **timed, "plain": [Timed(**each) for each in kept["plain"]]})


def kept_rows(file: Path) -> dict[str, Found]:
    """What is known of programs, by name."""
    rows = json.loads(file.read_text("utf-8"))["rows"] if file.exists() else {}
    return {name: _found(row) for name, row in rows.items()}
