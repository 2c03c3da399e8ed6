"""Everything that ``ampsched calibrate`` does."""

import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ampsched._core import CoreKind, InputError, core_kinds
from ampsched.calibration.machine import classes, known_facts, measured_facts
from ampsched.calibration.measure import Window, counter_table, mean_speeds, measure, speeds
from ampsched.catalog import Catalog
from ampsched.counters import write_counters
from ampsched.cpus import allowed_cpus
from ampsched.files import write_csv, write_text
from ampsched.machine_file.facts import MachineFacts
from ampsched.machine_file.writing import machine_text


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was found and written."""

    kinds: tuple[CoreKind, ...]
    speeds: pl.DataFrame
    """Kernel, kind, rounds per second."""
    counters: tuple[str, ...]
    """Counters that could be read."""
    files: tuple[Path, ...]
    missing: tuple[str, ...]
    """What could not be measured, and why."""

    @property
    def machine(self) -> Path:
        """The machine's file."""
        return self.files[0]

    @property
    def usual_speedup(self) -> float | None:
        """Speed of small programs on the fastest kind of core by that on the slowest; none if there is one kind."""
        relative = mean_speeds(self.speeds).values()
        return max(relative) / min(relative) if len(self.kinds) > 1 else None


def calibrate_briefly(folder: Path) -> Calibration:
    """Measures this computer in a second or two, for a question that is asked now; the rest as `calibrate`."""
    return calibrate(folder / "this-computer", window_ms=20, windows=3)


def calibrate(
    out: Path,
    *,
    window_ms: float = 50.0,
    windows: int = 5,
    step: Callable[[int, int], object] | None = None,
) -> Calibration:
    """Measures this computer; writes ``machine.toml``, ``speeds.csv``, ``counters.parquet`` and perhaps ``model.json``.

    Args:
        out: Folder; made if it is not there.
        window_ms: Length of a measurement, about, in ms of CPU time.
        windows: Measurements per kernel and kind of core.
        step: Called with the number of finished kernels and of all.

    Raises:
        InputError: On a system other than Linux, or one whose files on CPUs cannot be understood.
    """
    if sys.platform != "linux":
        raise InputError(f"calibrate works on Linux only, this is {sys.platform}")
    kinds = core_kinds(allowed_cpus())
    out.mkdir(parents=True, exist_ok=True)
    measured = measure(kinds, window_ms, windows, step)
    table = speeds(measured)
    relative = mean_speeds(table)
    of_class = classes(relative)
    files = [out / "machine.toml", out / "speeds.csv", out / "counters.parquet"]
    facts = measured_facts(known_facts(kinds), kinds, of_class, relative)
    write_text(files[0], machine_text(out.name, "This computer, by ampsched calibrate", facts))
    # What was written can be simulated.
    Catalog.shipped().machine(files[0])
    write_csv(files[1], table)
    write_counters(counter_table(measured), files[2])
    missing = _missing(facts, of_class, measured)
    if len(set(of_class.values())) > 1 and _has_counters(measured):
        trained = _train(out, of_class, measured)
        files += [trained] if isinstance(trained, Path) else []
        missing += [trained] if isinstance(trained, str) else []
    counters = sorted({name for window in measured for name in window.counts})
    return Calibration(tuple(kinds), table, tuple(counters), tuple(files), tuple(missing))


def _has_counters(measured: Sequence[Window]) -> bool:
    return all({"instructions", "cycles"} <= window.counts.keys() for window in measured)


def _missing(facts: MachineFacts, of_class: dict[str, int], measured: Sequence[Window]) -> list[str]:
    notes = []
    if len(set(of_class.values())) == 1:
        notes.append("speed-ups and a model: all cores that may be used are equally fast")
    if not _has_counters(measured):
        notes.append(
            "counters and a model: no PMU, or perf_event_open is not allowed "
            "(see /proc/sys/kernel/perf_event_paranoid; virtual machines often have none)"
        )
    for cluster in facts.clusters:
        if cluster.mhz_origin.startswith("estimate"):
            notes.append(f"frequency of {cluster.name}: {cluster.mhz[-1]} MHz stands in machine.toml")
        if cluster.core_type.origin.startswith("estimate"):
            notes.append(f"type of {cluster.name}: {cluster.core_type.value} stands in machine.toml")
    notes.append("voltages, power, and costs of switching and migration: estimates stand in machine.toml")
    return notes


def _train(out: Path, of_class: dict[str, int], measured: Sequence[Window]) -> Path | str:
    """Trains a model of the fastest and the slowest kind; the reason if it cannot."""
    if importlib.util.find_spec("sklearn") is None:
        return "a model: scikit-learn is not installed (install it with: pip install 'ampsched[train]')"
    from ampsched.training.measured import measured_rows
    from ampsched.training.train import model_file, train, write_model

    slowest = min(of_class, key=lambda kind: of_class[kind])
    fastest = max(of_class, key=lambda kind: of_class[kind])
    rows = measured_rows(counter_table(measured), fastest, slowest)
    try:
        models = train(rows)
    except InputError as error:
        return f"a model: {error}"
    write_model(out / "model.json", model_file(out.name, models, {"source": "ampsched calibrate"}))
    return out / "model.json"
