"""Recordings in workload files: each has the conditions that it has when it is named by its file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from random import Random

from ampsched._core import TYPICAL_PROFILE, Machine, Recording, Workload
from ampsched.catalog import Catalog
from ampsched.files import named
from ampsched.kinds import RECORDING
from ampsched.recording.conditions import SPREAD, Conditions, Spread
from ampsched.recording.files import load
from ampsched.recording.speedups import Speedup, known_speedup

START_SPREAD = 0.1
"""Within which part of the shortest recording's time each recording of a mix starts (ours: they were recorded one by
one, so nobody knows how they would meet). Each seed has its own starts, the same under every policy."""


@dataclass(frozen=True)
class MixConditions:
    """Recorded programs as they are simulated together, perhaps beside described ones.

    Attributes:
        workload: The mix, with starts as they are stated.
        parts: The conditions of each application that is a recording, by its name.
        within_ns: By how much later than stated each application may start, in ns; 0 for those whose start is not
            drawn.
    """

    workload: Workload
    parts: Mapping[str, Conditions]
    within_ns: tuple[int, ...]

    model_error = None
    """How far predictions of mixes are off was not measured."""

    def drawn(self, seed: int) -> Workload:
        """The mix with a seed: recordings start when it says."""
        if not any(self.within_ns):
            return self.workload
        names = (name for name, *_ in self.workload.apps)
        draws = (Random(f"start {seed} {name}").random() for name in names)  # noqa: S311 (no secrets)
        later = [round(draw * most) for draw, most in zip(draws, self.within_ns, strict=True)]
        return self.workload.starting_later(later)

    @cached_property
    def against(self) -> list[str]:
        """Why recordings are no basis of advice, a reason each."""
        return [f"{name}: {why}" for name, each in self.parts.items() for why in each.against]

    @property
    def texts(self) -> list[str]:
        """What a reader must know of them, in words."""
        told = [f"{name}: {text}" for name, each in self.parts.items() for text in each.texts]
        starts = max(self.within_ns)
        return [*told, *([f"recordings start within {starts / 1e6:.3g} ms, by the seed"] if starts else [])]


def posed_in(catalog: Catalog, given: str, machine: Machine) -> Conditions | MixConditions:
    """The conditions of the recordings in a workload file: of a single program alone as if its file were named.

    Args:
        catalog: What the file refers to, besides files.
        given: The file, with a workload's name if it has several; or the name of a workload of the catalogue.
        machine: Where it runs.

    Raises:
        InputError: A file cannot be read or is wrong, or a parameter is.
    """
    references = catalog.references(given)
    paths = {program for program, _ in references if program.endswith(RECORDING)}
    recordings = {path: load(named(path)) for path in sorted(paths)}
    known = {path: _speedup(catalog, each, machine) for path, each in recordings.items()}
    full = catalog
    for path, each in recordings.items():
        full = full.with_recording(path, each, TYPICAL_PROFILE, known[path].ratio or 0.0, SPREAD)
    workload = full.workload(given)
    parts = {}
    for number, ((path, params), (name, *_)) in enumerate(zip(references, workload.apps, strict=True)):
        if path not in recordings:
            continue
        stated = params.get("speedup")
        speedup = known[path] if stated is None else _speedup(catalog, recordings[path], machine, stated)
        parts[name] = Conditions(
            workload if len(references) == 1 else workload.alone(number),
            recordings[path],
            named(path),
            speedup,
            tuple(full.core.notes(path)),
            Spread(params.get("spread", SPREAD)),
            catalog,
        )
    return next(iter(parts.values())) if len(references) == 1 else _mixed(workload, parts)


def _mixed(workload: Workload, parts: Mapping[str, Conditions]) -> MixConditions:
    spans_ns = [json.loads(each.recording.info)["wall_ns"] for each in parts.values()]
    within_ns = round(START_SPREAD * min(spans_ns)) if len(parts) > 1 else 0
    # Whoever says that nothing of a recording varies means its start, too.
    drawn = [name in parts and parts[name].spread.part > 0 for name, *_ in workload.apps]
    return MixConditions(workload, parts, tuple(within_ns * each for each in drawn))


def _speedup(
    catalog: Catalog, recording: Recording, machine: Machine, stated: float | None = None
) -> Speedup:
    return known_speedup(json.loads(recording.info), catalog, machine, stated)
