"""Workloads on machines as every command simulates them, so that one question has one answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ampsched._core import Machine, Workload
from ampsched.catalog import Catalog, split_shares
from ampsched.kinds import RECORDING
from ampsched.naming import told_apart
from ampsched.noise import AUTO, Noise

if TYPE_CHECKING:
    from ampsched.recording.conditions import Conditions
    from ampsched.recording.mixed import MixConditions

NOISE = "idle"
"""The system's own work beside a recorded program, unless somebody says otherwise; each seed has its own."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A workload on a machine.

    Attributes:
        machine: The machine.
        workload: The workload.
        conditions: Those of recordings: of one that is named by its file, or of those in a workload file; none of
            others.
    """

    machine: Machine
    workload: Workload
    conditions: Conditions | MixConditions | None = None

    @staticmethod
    def of(catalog: Catalog, given: str | Path | Workload, machine: Machine) -> Placed:
        """What is given for a workload, on a machine.

        Raises:
            InputError: There is no such workload, or it is wrong.
        """
        if not has_recordings(catalog, given):
            return Placed(machine, catalog.workload(given))
        from ampsched.recording.conditions import posed
        from ampsched.recording.mixed import posed_in

        pose = posed if is_recording(given) else posed_in
        found = pose(catalog, str(given), machine)
        return Placed(machine, found.workload, found)

    def drawn(self, seed: int) -> Workload:
        """The workload as it is with a seed: when the recordings of a mix start is drawn, the same for all policies."""
        if self.conditions is None:
            return self.workload
        found, name = self.conditions.drawn(seed), self.workload.name
        return found if found.name == name else found.named(name)

    def notes(self, named: bool) -> list[str]:
        """What a reader must know of its conditions; `named`: of which workload and machine."""
        texts = self.conditions.texts if self.conditions else []
        return [f"{self.workload.name} on {self.machine.name}: {text}" if named else text for text in texts]


def is_recording(given: object) -> bool:
    """Whether a workload is a recording that is named by its file."""
    return isinstance(given, str | Path) and split_shares(str(given))[0].endswith(RECORDING)


def has_recordings(catalog: Catalog, given: object) -> bool:
    """Whether a workload is a recording that is named by its file, or one of a file that names recordings."""
    return is_recording(given) or any(is_recording(program) for program, _ in catalog.references(given))


def noise_beside(noise: str | Noise, *given: object, catalog: Catalog | None = None) -> Noise:
    """The noise that is asked for; ``auto`` is that beside recordings if a workload has some, else none.

    Args:
        noise: What is asked for.
        given: The workloads.
        catalog: Has them; by default the shipped one.

    Raises:
        InputError: There is no such noise, or a workload's file is wrong.
    """
    known = catalog or Catalog.shipped()
    is_recorded = Noise.of(noise).label == AUTO and any(has_recordings(known, each) for each in given)
    return noise_of(noise, has_recordings=is_recorded)


def noise_of(noise: str | Noise, *, has_recordings: bool) -> Noise:
    """The noise that is asked for; ``auto`` is that beside recordings if there are some, else none.

    Raises:
        InputError: There is no such noise.
    """
    asked = Noise.of(noise)
    if asked.label != AUTO:
        return asked
    return Noise.parse(NOISE) if has_recordings else Noise()


def named_apart(machines: Sequence[Machine], given: Sequence[object]) -> list[Machine]:
    """Machines with names that tell them apart, see `told_apart`."""
    names = told_apart([each.name for each in machines], given)
    return [
        each if each.name == name else each.part([], name) for each, name in zip(machines, names, strict=True)
    ]


def placed_apart(placed: Sequence[Placed], given: Sequence[object]) -> list[Placed]:
    """Workloads on a machine with names that tell them apart, see `told_apart`."""
    names = told_apart([each.workload.name for each in placed], given)
    return [
        each if each.workload.name == name else replace(each, workload=each.workload.named(name))
        for each, name in zip(placed, names, strict=True)
    ]
