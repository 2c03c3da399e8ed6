"""What the product advises, beside what every setting took."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import ampsched
from ampsched import Catalog, InputError
from ampsched.recording import load
from ampsched.recording.replay import replayed
from ampsched.recording.threads import compare_threads
from ampsched_lab.campaign.boot import KERNEL
from ampsched_lab.campaign.store import Store
from ampsched_lab.gain.machines import SYSTEMS, X86
from ampsched_lab.recordings.exact import text_of_machine
from ampsched_lab.settings.plan import (
    KINDS,
    LINUX,
    MIPS,
    NEAR,
    PLACES,
    SAMPLE,
    Kind,
    Place,
    Setting,
    exact,
    mix,
)

COSTS_MIPS = 1000.0
"""Of the virtual machine in which the costs of scheduling were measured: instructions take longer with fewer."""

Times = Mapping[Setting, float]
"""Turnarounds in ms."""


@dataclass(frozen=True)
class Advised:
    """The product's answer.

    Attributes:
        setting: What it advises; as it is, if it refuses.
        predicted: The turnaround in ms of each setting that it has compared; empty if it refuses.
        refusal: Why it refuses.
    """

    setting: Setting
    predicted: Times
    refusal: str = ""


@dataclass(frozen=True)
class Judged:
    """A program on a machine; times in ms.

    Attributes:
        machine: The machine.
        program: The program.
        usual: As it is.
        usual_ms: What that took.
        advised: What the product advises.
        advised_ms: What that took.
        predicted_ms: What the product says it takes, if it does not refuse.
        usual_predicted_ms: The same of the program as it is.
        best: The best of all that was tried.
        best_ms: What that took.
        fast: As many threads as there are fastest cores, on these.
        fast_ms: What that took.
        tried: Number of settings.
        refusal: Why there is no advice.
        errors: Of each time that the product says: 0.05 is 5 % too long.
        kept_ms: Simulated as it is, with every thread doing what it did when it was recorded.
    """

    machine: str
    program: str
    usual: str
    usual_ms: float
    advised: str
    advised_ms: float
    predicted_ms: float | None
    usual_predicted_ms: float | None
    best: str
    best_ms: float
    fast: str
    fast_ms: float
    tried: int
    refusal: str = ""
    errors: tuple[float, ...] = ()
    kept_ms: float | None = None

    @property
    def gap(self) -> float:
        """By how much longer than the best: 0.03 is 3 %."""
        return self.advised_ms / self.best_ms - 1

    @property
    def is_met(self) -> bool:
        """Whether the advised setting is near the best."""
        return self.gap <= NEAR

    @property
    def is_worse(self) -> bool:
        """Whether it would have been better to leave the program as it is."""
        return self.advised_ms > self.usual_ms


def advised(recordings: Mapping[int, Path], machine: Path, usual: Setting) -> Advised:
    """What the product says is best: the only place where it is asked."""
    try:
        found = compare_threads(recordings, str(machine))
    except InputError as error:
        text = str(error)
        for path in recordings.values():
            text = text.replace(str(path), path.stem)
        return Advised(usual, {}, text)
    settings = {
        each.name: Setting(each.threads, each.cores.cpus if each.cores else usual.cpus)
        for each in found.settings
    }
    predicted = {settings[each.name]: fmean(each.draws) for each in found.settings}
    return Advised(settings[found.best.name], predicted)


def measured(store: Store, place: Place, kind: Kind) -> dict[Setting, float]:
    """What was tried."""
    system, found = SYSTEMS[X86], {}
    for setting in place.settings():
        scheduler = KERNEL if setting.policy == LINUX else setting.policy
        runs = store.read(place.name, system, scheduler)
        row = runs.get((mix(kind, setting).name, SAMPLE))
        if row is not None:
            found[setting] = row["turnaround_ns"] / 1e6
    return found


def fast(place: Place) -> Setting:
    """As many threads as there are of the fastest cores, on these: what people try."""
    clusters = exact(place.name).clusters()
    cpus = tuple(max(clusters, key=lambda each: each.speed).cores)
    return Setting(len(cpus), cpus)


def judge(place: Place, kind: Kind, times: Times, answer: Advised) -> Judged:
    """The verdict on an answer."""
    best = min(times, key=lambda setting: times[setting])
    return Judged(
        machine=place.name,
        program=kind.name,
        usual=place.words(place.usual),
        usual_ms=times[place.usual],
        advised=place.words(answer.setting),
        advised_ms=times[answer.setting],
        predicted_ms=answer.predicted.get(answer.setting),
        usual_predicted_ms=answer.predicted.get(place.usual),
        best=place.words(best),
        best_ms=times[best],
        fast=place.words(fast(place)),
        fast_ms=times[fast(place)],
        tried=len(times),
        refusal=answer.refusal,
        errors=tuple(ms / times[setting] - 1 for setting, ms in answer.predicted.items()),
    )


def judged(results: Path) -> list[dict[str, Any]]:
    """All programs of all machines on which every setting of the kernel's own scheduler has run, as rows for JSON."""
    rows, store = [], Store(results)
    with tempfile.TemporaryDirectory(prefix="ampsched-settings-") as folder:
        for place in PLACES:
            machine = Path(folder) / f"{place.name}.toml"
            machine.write_text(described(place), "utf-8")
            plain = {setting for setting in place.settings() if setting.policy == LINUX}
            for kind in KINDS:
                times = measured(store, place, kind)
                if plain <= times.keys():
                    answer = advised(recordings_of(results, place, kind), machine, place.usual)
                    row = judge(place, kind, times, answer)
                    usual = recording(results, place, kind, place.usual.threads)
                    rows.append(asdict(replace(row, kept_ms=kept(usual, machine))))
    return rows


def kept(path: Path, machine: Path) -> float:
    """What a recording takes in ms if no work that was handed out is handed out anew: to test causes."""
    catalog, loaded = Catalog.shipped(), load(path)
    speedup = json.loads(loaded.info)["speedup"]
    replay = replayed(catalog, loaded, path, speedup=speedup, sharing="none")
    return ampsched.simulate(machine, replay.workload, LINUX).apps[0].turnaround_ns / 1e6


def described(place: Place) -> str:
    """The machine's file: its cores, and what scheduling costs there."""
    return text_of_machine(place.name, exact(place.name, COSTS_MIPS), COSTS_MIPS / MIPS)


def recordings_of(results: Path, place: Place, kind: Kind) -> dict[int, Path]:
    """Kept recordings by their number of threads."""
    return {threads: recording(results, place, kind, threads) for threads in place.recorded()}


def recording(results: Path, place: Place, kind: Kind, threads: int) -> Path:
    """Where a recording is kept."""
    return results / "recordings" / f"{place.name}-{kind.name}-{threads}.ampr"
