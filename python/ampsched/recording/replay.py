"""Recordings as workloads: what was done and what waited for what, on another machine under another policy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ampsched._core import InputError, Workload
from ampsched.ranges import Range
from ampsched.recording.files import load
from ampsched.spec import parse_spec

if TYPE_CHECKING:
    from ampsched.catalog import Catalog

TYPICAL_PROFILE = "ferret"
"""Of the shipped profiles the one whose speed-up is nearest to the median on 2B2S, exynos5422, pixel and
hybrid-8P16E: what a program is taken for of which nothing is known but its times."""

PARAMETERS = {
    "speedup": Range(0.05, 50),
    "speed": Range(0.001, 1000),
}
"""What may follow a recording's name: how many times as fast its code is on the machine's fastest kind of core as on
its slowest; the speed of the recording computer's fastest core, by that of the machine's."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """A recording as a workload of one program.

    Attributes:
        workload: The program alone.
        notes: What it honours differently, a sentence each.
    """

    workload: Workload
    notes: list[str]


def replay(catalog: Catalog, path: Path, parameters: list[str]) -> Workload:
    """The workload that a recording is, with parameters such as ``speedup=2``.

    Raises:
        InputError: There is no such file or parameter, or it is wrong.
    """
    _, values = parse_spec(":".join(["recording", *parameters]), f"recording {path}")
    given = dict(values)
    for name, value in values:
        if name not in PARAMETERS:
            known = ", ".join(PARAMETERS)
            raise InputError(f'{path}: unknown parameter "{name}" (a recording has {known})')
        PARAMETERS[name].check(f"{path}: {name}", value)
    return replayed(catalog, path, speedup=given.get("speedup"), speed=given.get("speed", 1.0)).workload


def replayed(
    catalog: Catalog,
    path: Path,
    *,
    like: str = TYPICAL_PROFILE,
    speedup: float | None = None,
    speed: float = 1.0,
) -> Replayed:
    """A recording as a workload, and what it honours differently.

    Args:
        catalog: Has the profile.
        path: The recording's file.
        like: Profile that says how the program behaves on other kinds of cores.
        speedup: Speed on the machine's fastest kind of core by that on its slowest; as the profile says by default.
        speed: Speed of the recording computer's fastest core by that of the machine's fastest.

    Raises:
        InputError: There is no such file or profile, or it is no recording.
    """
    workload, notes = load(path).replay(catalog.core, like, speedup, speed)
    return Replayed(workload, notes)
