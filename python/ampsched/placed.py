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

NOISE = "idle"
"""The system's own work beside a recorded program, unless somebody says otherwise; each seed has its own."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A workload on a machine.

    Attributes:
        machine: The machine.
        workload: The workload.
        conditions: Those of a recording that is named by its file; none of others.
    """

    machine: Machine
    workload: Workload
    conditions: Conditions | None = None

    @staticmethod
    def of(catalog: Catalog, given: str | Path | Workload, machine: Machine) -> Placed:
        """What is given for a workload, on a machine.

        Raises:
            InputError: There is no such workload, or it is wrong.
        """
        if not is_recording(given):
            return Placed(machine, catalog.workload(given))
        from ampsched.recording.conditions import posed

        found = posed(catalog, str(given), machine)
        return Placed(machine, found.workload, found)

    def notes(self, named: bool) -> list[str]:
        """What a reader must know of its conditions; `named`: of which workload and machine."""
        texts = self.conditions.texts if self.conditions else []
        return [f"{self.workload.name} on {self.machine.name}: {text}" if named else text for text in texts]


def is_recording(given: object) -> bool:
    """Whether a workload is a recording that is named by its file."""
    return isinstance(given, str | Path) and split_shares(str(given))[0].endswith(RECORDING)


def noise_beside(noise: str | Noise, *given: object) -> Noise:
    """The noise that is asked for; ``auto`` is that beside recordings if one of the workloads is one, else none."""
    asked = Noise.of(noise)
    if asked.label != AUTO:
        return asked
    return Noise.parse(NOISE) if any(map(is_recording, given)) else Noise()


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
