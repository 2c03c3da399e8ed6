"""What the product advises, beside what every setting took."""

import json
import math
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import ampsched
from ampsched import Catalog, InputError
from ampsched.recording import Recording, load
from ampsched.recording.advice import advise
from ampsched.recording.replay import replayed
from ampsched.recording.setting import Setting as Given
from ampsched_lab.campaign.boot import KERNEL
from ampsched_lab.campaign.store import Store
from ampsched_lab.gain.machines import SYSTEMS, X86
from ampsched_lab.recordings.exact import text_of_machine
from ampsched_lab.settings.plan import (
    AGAIN,
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
        offered: The best of what the product has compared.
        offered_ms: What that took.
        again_ms: Of the advised and the best setting, the mean from further starts, if it was missed.
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
    changes: tuple[tuple[float, float], ...] = ()
    kept_ms: float | None = None
    offered: str = ""
    offered_ms: float | None = None
    again_ms: tuple[float, float] | None = None

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
    """What the product says is best: the only place where it is asked.

    The machine's file has a name of its own, so the speed-up that was measured on these cores is stated.
    """
    try:
        speedup = _speedup(load(recordings[max(recordings)]))
        found = advise(recordings, str(machine), [LINUX], speedup=speedup)
    except InputError as error:
        text = str(error)
        for path in recordings.values():
            text = text.replace(str(path), path.stem)
        return Advised(usual, {}, text)

    def setting(given: Given) -> Setting:
        return Setting(given.threads or usual.threads, given.cores.cpus if given.cores else usual.cpus)

    tried = (*found.found.tried, *found.found.ruled_out)
    return Advised(setting(found.advised), {setting(each.setting): 1e3 * each.value for each in tried})


def _speedup(recording: Recording) -> float:
    """As it was measured when the program was recorded."""
    return float(json.loads(recording.info)["speedup"])


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
    offered = min(answer.predicted, key=lambda setting: times[setting], default=None)
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
        changes=_changes(place, times, answer.predicted),
        offered=place.words(offered) if offered else "",
        offered_ms=times[offered] if offered else None,
    )


def _changes(place: Place, times: Times, predicted: Times) -> tuple[tuple[float, float], ...]:
    """Of each predicted setting ln(time / time as it is), as predicted and as measured."""
    if place.usual not in predicted:
        return ()
    others = [setting for setting in predicted if setting != place.usual]
    return tuple(
        (
            round(math.log(predicted[setting] / predicted[place.usual]), 4),
            round(math.log(times[setting] / times[place.usual]), 4),
        )
        for setting in others
    )


@dataclass(frozen=True)
class Case:
    """A program on a machine, with what it is judged by."""

    place: Place
    kind: Kind
    times: Times
    answer: Advised
    row: Judged

    @property
    def best(self) -> Setting:
        """The best that was tried."""
        return min(self.times, key=lambda setting: self.times[setting])


def cases(results: Path, folder: Path) -> Iterator[Case]:
    """All programs of all machines that have run with every setting of the kernel's own scheduler.

    Args:
        results: What is kept.
        folder: Gets the machines' files.
    """
    for place in PLACES:
        machine = machine_file(folder, place)
        plain = {setting for setting in place.settings() if setting.policy == LINUX}
        for kind in KINDS:
            times = measured(Store(results), place, kind)
            if plain <= times.keys():
                answer = advised(recordings_of(results, place, kind), machine, place.usual)
                yield Case(place, kind, times, answer, judge(place, kind, times, answer))


def judged(results: Path) -> list[dict[str, Any]]:
    """All cases, as rows for JSON."""
    with tempfile.TemporaryDirectory(prefix="ampsched-settings-") as name:
        return [asdict(_with_causes(results, Path(name), case)) for case in cases(results, Path(name))]


def _with_causes(results: Path, folder: Path, case: Case) -> Judged:
    usual = recording(results, case.place, case.kind, case.place.usual.threads)
    row = replace(case.row, kept_ms=kept(usual, machine_file(folder, case.place)))
    return row if row.is_met else replace(row, again_ms=again(results, case))


def again(results: Path, case: Case) -> tuple[float, float] | None:
    """Means of the advised and the best setting from further starts; none if these have not run."""
    runs = Store(results).read(case.place.name, SYSTEMS[X86], KERNEL)
    pair = (mix(case.kind, case.answer.setting).name, mix(case.kind, case.best).name)
    if not all((name, sample) in runs for name in pair for sample in AGAIN):
        return None
    advised_ms, best_ms = (
        fmean(runs[name, sample]["turnaround_ns"] / 1e6 for sample in AGAIN) for name in pair
    )
    return advised_ms, best_ms


def machine_file(folder: Path, place: Place) -> Path:
    """A machine's file, written into a folder."""
    path = folder / f"{place.name}.toml"
    path.write_text(described(place), "utf-8")
    return path


def kept(path: Path, machine: Path) -> float:
    """What a recording takes in ms if no work that was handed out is handed out anew: to test causes."""
    catalog, loaded = Catalog.shipped(), load(path)
    replay = replayed(catalog, loaded, path, speedup=_speedup(loaded), sharing="none")
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
