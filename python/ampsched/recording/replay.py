"""Recordings as workloads: what was done and what waited for what, on another machine under another policy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args

from ampsched._core import TYPICAL_PROFILE, Recording, Workload
from ampsched.files import shown

if TYPE_CHECKING:
    from ampsched.catalog import Catalog

Sharing = Literal["none", "handed-out", "all", "static", "guided", "aid-static", "aid-hybrid"]
"""Who does what of shared work, each at the place of its number in parameters of recordings."""

HANDED_OUT: Final[Sharing] = "handed-out"
"""What is replayed unless something else is asked for, or `handing.handed` finds that it does not fit."""
MISS_MAX = 0.10
"""A replay whose turnaround on the recording's own cores differs by more is not a basis of advice."""


def number_of(sharing: Sharing) -> float:
    """What stands for it in parameters of recordings."""
    return float(get_args(Sharing).index(sharing))


@dataclass(frozen=True, slots=True)
class Replayed:
    """A recording as a workload of one program.

    Attributes:
        workload: The program alone.
        notes: What it honours differently, a sentence each.
    """

    workload: Workload
    notes: list[str]


def replayed(
    catalog: Catalog,
    recording: Recording,
    path: Path,
    *,
    like: str = TYPICAL_PROFILE,
    speedup: float | None = None,
    speed: float = 1.0,
    sharing: Sharing = HANDED_OUT,
) -> Replayed:
    """A recording as a workload, and what it honours differently.

    Args:
        catalog: Has the profile.
        recording: The recording.
        path: Its file, for messages.
        like: Profile that says how the program behaves on other kinds of cores.
        speedup: Speed on the machine's fastest kind of core by that on its slowest; as the profile says by default.
        sharing: Who does what of the work that several threads share: with ``"none"`` each does what it did; with
            ``"handed-out"`` who is free takes the next chunk or task of OpenMP, or job of a pool, and a process
            that runs several programs at a time starts the next one when any of them ends; with ``"all"`` threads
            take what several do up to a barrier or in a parallel region piece by piece, too, as in a task runtime or
            by OpenMP's schedule ``dynamic``; with the others they take that by these schedules of loops.
        speed: Speed of the machine's fastest core by that of the recording computer's fastest.

    Raises:
        InputError: There is no such profile, or a number is out of its range.
    """
    core = catalog.with_recording(shown(path), recording, like).core
    params = [
        ("speed", speed),
        ("sharing", number_of(sharing)),
        *([("speedup", speedup)] if speedup is not None else []),
    ]
    return Replayed(core.program(shown(path), params), core.notes(shown(path)))
