"""Several recordings of one command: how much its work differs from run to run, instead of what is assumed."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, variance

from ampsched._core import InputError, Recording
from ampsched.kinds import RECORDING
from ampsched.recording.conditions import ASSUMED, Spread
from ampsched.recording.files import load
from ampsched.recording.refusal import reasons_before, text_of

SPREAD_MAX = 1.0
"""More than that no piece of work can vary: from nothing to twice as much."""

Threads = Mapping[tuple[str, int], float]
"""Work of each thread in ns, by its name and its number among those of that name."""


@dataclass(frozen=True, slots=True)
class Runs:
    """What is known of a program's runs.

    Attributes:
        path: What is replayed: the recording, or of several the one with the middle amount of work; or recordings by
            the number of threads.
        spread: By how much pieces of work vary.
    """

    path: Path | Mapping[int, Path]
    spread: Spread

    @staticmethod
    def of(given: Path | Mapping[int, Path] | Sequence[Path], *, anyway: bool = False) -> Runs:
        """What is known of the runs that are given.

        Args:
            given: One recording; several by the number of threads; or several of the same command.
            anyway: Take recordings of failed runs, too.

        Raises:
            InputError: A file is no recording, or of another command or number of threads than the first one, or of a
                run that has failed or hardly worked, or is named twice.
        """
        if isinstance(given, Path | Mapping):
            return Runs(given, ASSUMED)
        if not given:
            raise InputError("no recording is given")
        if len(given) == 1:
            return Runs(given[0], ASSUMED)
        paths = list(given)
        recordings = [_read(path, anyway=anyway) for path in paths]
        works = [work_of_threads(each) for each in recordings]
        for number, path in enumerate(paths):
            if path in paths[:number]:
                raise InputError(f"{path}: is named twice: each recording is a run of its own")
            same = next(
                (each for each in range(number) if _is_copy(recordings[each], recordings[number])), None
            )
            if same is not None:
                raise InputError(f"{path}: is a copy of {paths[same]}: each recording is a run of its own")
            _check_alike(paths[0], recordings[0], works[0], path, recordings[number], works[number])
        ranked = sorted(zip(paths, works, strict=True), key=lambda each: sum(each[1].values()))
        middle = ranked[len(ranked) // 2][0]
        why = f"as in {len(paths)} recordings ({middle.name} is the middle one)"
        return Runs(middle, Spread(spread_of(works), why))


def recordings_in(folder: Path) -> list[Path]:
    """The recordings in a folder, by name.

    Raises:
        InputError: There are none.
    """
    found = sorted(folder.glob(f"*{RECORDING}"))
    if not found:
        raise InputError(f"{folder}: has no recordings ({RECORDING})")
    return found


def work_of_threads(recording: Recording) -> Threads:
    """The work of each thread, by what makes it the same one in another run."""
    found: dict[tuple[str, int], float] = {}
    counts: dict[str, int] = defaultdict(int)
    for name, _, _, cpu_ns, _ in recording.threads:
        found[name, counts[name]] = float(cpu_ns)
        counts[name] += 1
    return found


def spread_of(works: Sequence[Threads]) -> float:
    """By how much threads' work is more or less from run to run, as a part of it, 0 to 1.

    The half-width of the even distribution with the deviation that threads' work has between runs: variances relative
    to the mean, of each thread in proportion to its work.

    Args:
        works: Of each run, 2 or more of the same threads.
    """
    total_ns, seen = 0.0, 0.0
    for thread in works[0]:
        values = [each[thread] for each in works]
        mean_ns = fmean(values)
        total_ns += mean_ns
        seen += variance(values) / mean_ns if mean_ns else 0.0
    return min(SPREAD_MAX, math.sqrt(3 * seen / total_ns)) if total_ns else 0.0


def _read(path: Path, *, anyway: bool) -> Recording:
    recording = load(path)
    against = reasons_before(recording)
    if against and not anyway:
        raise InputError(text_of(path, against[0]))
    return recording


def _is_copy(one: Recording, other: Recording) -> bool:
    return one.events == other.events and one.to_bytes() == other.to_bytes()


def _check_alike(
    first: Path, recording: Recording, works: Threads, path: Path, other: Recording, others: Threads
) -> None:
    """Refuses runs of another program, or with other threads."""
    mine, theirs = (_command(each) for each in (recording, other))
    if mine != theirs:
        raise InputError(f"{path}: is of {theirs}, {first} of {mine} (several recordings: of one command)")
    if len(works) != len(others):
        raise InputError(
            f"{path}: has {len(others)} threads, {first} has {len(works)} (several recordings: with the same threads; to "
            "try numbers of threads: ampsched advise -- COMMAND with {threads} in it)"
        )
    strange = next((name for name, number in others if (name, number) not in works), None)
    if strange is not None:
        raise InputError(
            f'{path}: has more threads "{strange}" than {first} (several recordings: with the same)'
        )


def _command(recording: Recording) -> str:
    info = json.loads(recording.info)
    return " ".join(info.get("command") or [info["name"]])
