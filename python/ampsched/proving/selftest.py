"""How exact the simulator is on this computer: small programs are recorded, predicted for settings, and run there."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from ampsched._core import Machine
from ampsched.calibration.calibrate import Calibration, calibrate_briefly
from ampsched.calibration.measure import mean_speeds
from ampsched.catalog import Catalog
from ampsched.cpus import allowed_cpus
from ampsched.files import temporary_folder
from ampsched.placed import NOISE
from ampsched.proving import measuring, programs
from ampsched.proving.energy import Meter
from ampsched.proving.report import Proof, errors_of
from ampsched.recording.conditions import posed
from ampsched.recording.cores import Cores, core_sets
from ampsched.recording.goals import TIME_METRIC
from ampsched.recording.model_error import setting_errors
from ampsched.recording.preload import record
from ampsched.recording.search import Trials
from ampsched.recording.setting import Setting

DRAWS = 5
"""Simulations of a setting."""
ONE_CORE_MAX = 8
"""With more cores than these, what a single one takes is too long."""
FILE = Path(programs.__file__)

Step = Callable[[str, int, int], object]


@dataclass(frozen=True, slots=True)
class Selftest:
    """What was predicted and measured.

    Attributes:
        proofs: A row for each program and setting.
        left: Settings for which the time did not suffice, or programs that cannot be judged, with the reason.
        meter: What told energy, or why nothing did.
    """

    proofs: tuple[Proof, ...]
    left: tuple[str, ...]
    meter: str

    @property
    def mean(self) -> float:
        """Mean of the predicted times' absolute errors; 0 of nothing."""
        return fmean(abs(each.error) for each in self.proofs) if self.proofs else 0.0

    @property
    def worst(self) -> Proof:
        """The row with the largest error, if there is any."""
        return max(self.proofs, key=lambda each: abs(each.error))

    @property
    def inside(self) -> tuple[int, int]:
        """How many lie in the shipped table's bands, of how many."""
        return sum(each.is_inside for each in self.proofs), len(self.proofs)

    @property
    def shipped(self) -> float:
        """Mean absolute error of such changes in the shipped table."""
        return math.expm1(fmean(map(abs, setting_errors().values)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "mean": self.mean,
            "worst": self.worst.error if self.proofs else 0.0,
            "shipped": self.shipped,
            "inside": list(self.inside),
            "rows": [each.to_dict() for each in self.proofs],
            "left": list(self.left),
            "energy": self.meter,
        }


def settings_of(machine: Machine) -> list[Setting]:
    """What this computer can do: each set that `core_sets` knows, half of its cores, and one if there are few."""
    count = len(machine.cluster_of_core)
    some = [Cores("half of the cores", tuple(range(count // 2))), Cores("one core", (0,))]
    unique: dict[tuple[int, ...], Cores] = {}
    for each in [*core_sets(machine), *some[: 1 if count > ONE_CORE_MAX else 2]]:
        if 0 < len(each.cpus) < count:
            unique.setdefault(each.cpus, each)
    return [Setting(cores=each) for each in unique.values()]


def selftest(
    *,
    time_s: float,
    seed: int = 1,
    meter: tuple[Meter | None, str] = (None, ""),
    step: Step = lambda *_: None,
) -> Selftest:
    """Records, predicts and runs all programs in all settings.

    Args:
        time_s: How long it may take, about, in s; each comparison gets its part of what is left.
        seed: Of the orders of runs.
        meter: What tells energy, or why nothing does.
        step: Called with what is done next, how many comparisons are finished, and of how many.

    Raises:
        InputError: This computer cannot be measured, or a program not be recorded or run.
    """
    begin_s = time.monotonic()
    with temporary_folder("ampsched-selftest-") as folder:
        step("measuring this computer", 0, 1)
        found = calibrate_briefly(folder)
        catalog = Catalog.shipped()
        machine = catalog.machine(found.machine)
        settings = settings_of(machine)
        total = len(programs.PROGRAMS) * len(settings)
        proofs: list[Proof] = []
        left: list[str] = []
        # All programs come first in one setting: the time may not suffice for all settings.
        jobs = [(name, place) for place in range(len(settings)) for name in programs.PROGRAMS]
        known: dict[str, Trials] = {}
        for done, (name, place) in enumerate(jobs):
            rest_s = time_s - (time.monotonic() - begin_s)
            setting = settings[place]
            if rest_s <= 0:
                left.append(f"{name}, {setting.name}: the time was over")
                continue
            step(f"{name}, {setting.name}", done, total)
            command = [sys.executable, "-I", "-S", str(FILE), name, str(len(machine.cluster_of_core))]
            if name not in known:
                known[name] = _recorded(command, folder / f"{name}.ampr", machine, found, catalog)
            errors = known[name].posed[None].model_error
            if errors is None:
                left.append(f"{name}, {setting.name}: its recording does not tell its cores")
                continue
            measured = measuring.measure(
                command,
                known[name].usual,
                setting,
                cpus=_cpus(setting, found),
                time_s=rest_s / (total - done),
                seed=seed,
                meter=meter[0],
            )
            known[name].run([known[name].usual, setting], DRAWS)
            predicted = known[name].tried(setting).change.mean
            band = errors_of(setting, errors).band(predicted)
            proofs.append(Proof(errors.kind, name, setting, predicted, band, measured))
    return Selftest(tuple(proofs), tuple(left), meter[0].name if meter[0] else meter[1])


def _recorded(
    command: Sequence[str], path: Path, machine: Machine, found: Calibration, catalog: Catalog
) -> Trials:
    """The simulations of a program, which is recorded on cores of the fastest kind: there CPU time is work.

    On others it is more, and a recording does not tell by how much where the kernel states no capacities.
    """
    allowed = allowed_cpus()
    os.sched_setaffinity(0, fastest(found))
    try:
        record(command, path)
    finally:
        os.sched_setaffinity(0, allowed)
    ratio = f":speedup={found.usual_speedup:.3f}" if found.usual_speedup else ""
    conditions = posed(catalog, f"{path}{ratio}", machine)
    return Trials(machine, {None: conditions}, Setting(), TIME_METRIC, {"noise": NOISE})


def fastest(found: Calibration) -> list[int]:
    """The CPUs of the kind on which small programs were fastest."""
    speeds = mean_speeds(found.speeds)
    return max(found.kinds, key=lambda kind: speeds[kind.name]).cpus


def _cpus(setting: Setting, found: Calibration) -> str | None:
    """What Linux calls the cores of a setting: the machine numbers those of each kind in turn."""
    if setting.cores is None:
        return None
    numbers = [cpu for kind in found.kinds for cpu in kind.cpus]
    return ",".join(str(numbers[core]) for core in setting.cores.cpus)
