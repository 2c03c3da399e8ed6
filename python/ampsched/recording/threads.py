"""How many threads a program should have: recorded with each of some numbers, and compared under the baseline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ampsched import api
from ampsched._core import InputError, Machine
from ampsched.catalog import Catalog
from ampsched.comparison import TURNAROUND, per_seed
from ampsched.execution import Progress
from ampsched.placed import NOISE
from ampsched.recording.check import LINUX, check
from ampsched.recording.conditions import pose
from ampsched.recording.cores import ALL, Cores, core_sets
from ampsched.recording.files import load
from ampsched.recording.model_error import model_error
from ampsched.recording.refusal import reasons, reasons_before, text_of
from ampsched.recording.speedups import known_speedup
from ampsched.uncertainty import MARGIN, Verdict, judge, paired, sentences

PLACE = "{threads}"
"""Where the number of threads stands in a command."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A number of threads on some of the cores, under the baseline.

    Attributes:
        threads: How many.
        cores: Which cores; none: all.
        draws: The turnaround in ms of each draw.
    """

    threads: int
    cores: Cores | None
    draws: tuple[float, ...]

    @property
    def name(self) -> str:
        """Such as ``4 threads on only big``."""
        noun = "thread" if self.threads == 1 else "threads"
        return f"{self.threads} {noun} on {self.cores.name if self.cores else ALL}"


@dataclass(frozen=True, slots=True)
class Threads:
    """What numbers of threads make of a program's turnaround.

    Attributes:
        name: The program.
        machine: The machine.
        usual: What most programs have: as many threads as the machine has cores, on all of them.
        settings: All, the best first.
        verdict: What may be said of the best against the usual one.
    """

    name: str
    machine: str
    usual: Setting
    settings: tuple[Setting, ...]
    verdict: Verdict

    @property
    def best(self) -> Setting:
        """The best setting if it is worth it, else the usual one."""
        found = (each for each in self.settings if each.name == self.verdict.best)
        return next(found, self.usual) if self.verdict.is_worth_it else self.usual

    def answer(self, machine: str) -> list[str]:
        """The answer in lines, with a name for the machine."""
        return sentences(self.verdict, self.name, machine, TURNAROUND.name, TURNAROUND.text)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        rows = [
            {
                "threads": each.threads,
                "cores": each.cores.name if each.cores else ALL,
                "cpus": list(each.cores.cpus) if each.cores else None,
                "change": paired(each.draws, self.usual.draws).mean,
                "half_width": paired(each.draws, self.usual.draws).half_width,
            }
            for each in self.settings
        ]
        return {"usual": self.usual.name, "settings": rows, "verdict": asdict(self.verdict)}


def thread_counts(machine: Machine) -> list[int]:
    """Numbers of threads that are worth a try, ascending: as many as each set of cores has, and as all cores."""
    return sorted({len(each.cpus) for each in core_sets(machine)} | {len(machine.cluster_of_core)})


def compare_threads(
    recordings: Mapping[int, Path],
    machine: str | Machine,
    *,
    speedup: float | None = None,
    usual_speedup: float | None = None,
    repeat: int = 5,
    margin: float = MARGIN,
    jobs: int = 0,
    anyway: bool = False,
    progress: Progress | None = None,
) -> Threads:
    """Compares recordings of a program with several numbers of threads, on all cores of a machine and on sets of them.

    Args:
        recordings: A recording for each number of threads; the greatest is the usual one.
        machine: The machine.
        speedup: The program's speed-up, if it is known; see `advise`.
        usual_speedup: That of small programs on this machine, if it was measured.
        repeat: Number of draws.
        margin: By how much worse than the best others may be and still count as no worse.
        jobs: Processors to use; 0: all.
        anyway: Go on even if a recording is no basis of advice.
        progress: Called with the number of finished simulations and of all, for each recording.

    Raises:
        InputError: There are none, or one of them is no basis of advice.
    """
    if not recordings:
        raise InputError("no recording is given: how many threads can only be told from several")
    catalog = Catalog.shipped()
    where = catalog.machine(machine)
    found: list[Setting] = []
    kinds, names = [], []
    for count, path in sorted(recordings.items(), reverse=True):
        recording = load(path)
        against = reasons_before(recording)
        checked = check(recording, path, catalog) if anyway or not against else None
        if checked is not None:
            against += reasons(recording, checked)
            kinds.append(model_error(recording, checked.follows))
        if against and not anyway:
            raise InputError(text_of(path, against[0]))
        info = json.loads(recording.info)
        names.append(info["name"])
        conditions = pose(
            catalog, recording, path, known_speedup(info, catalog, where, speedup, usual_speedup)
        )
        for cores in (None, *core_sets(where)):
            workload = (
                conditions.workload if cores is None else conditions.workload.on_cores(where, cores.cpus)
            )
            compared = api.compare(
                where,
                workload,
                [LINUX],
                repeat=repeat,
                limits=False,
                noise=NOISE,
                jobs=jobs,
                progress=progress,
            )
            found.append(Setting(count, cores, tuple(per_seed(compared.runs, TURNAROUND.value))))
    usual = found[0]
    errors = kinds[0].of_changes if kinds else None
    verdict = judge({each.name: each.draws for each in found}, errors, margin=margin)
    ranked = sorted(found, key=lambda each: paired(each.draws, usual.draws).mean)
    return Threads(names[0], where.name, usual, tuple(ranked), verdict)
