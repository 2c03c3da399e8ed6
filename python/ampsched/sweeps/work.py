"""What a worker does: it simulates some points, wherever it runs, and returns a row for each."""

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from ampsched._core import InputError, Machine, Workload
from ampsched.catalog import Catalog
from ampsched.comparison import run_row
from ampsched.execution import Mix, Progress, Run, run_mixes
from ampsched.placed import Placed, has_recordings
from ampsched.policy import Policy, PolicySpec
from ampsched.settings import CoreOrder, MixSettings, complete
from ampsched.sweeps.digests import content_of

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Thing:
    """A machine, a workload or a policy, as workers are told of it."""

    name: str
    """In results."""
    given: str | Machine | Workload | type[Policy]
    """A text means the same on every computer that has the same files in the same place."""
    digest: str
    """Of all that simulations read of it."""

    def __hash__(self) -> int:
        """Of what is compared first."""
        return hash((self.name, self.digest))


class Point(NamedTuple):
    """One simulation."""

    machine: Thing
    workload: Thing
    policy: Thing
    options: tuple[tuple[str, Any], ...]
    """Settings with their values, as texts if they are written as such."""
    core_order: CoreOrder
    seed: int
    key: str


class Done(NamedTuple):
    """What a worker returns."""

    rows: list[Row]
    """One per point."""
    seconds: float
    """How long it took."""


def simulate(
    points: Sequence[Point],
    files: tuple[str, ...],
    engine: str,
    processes: int = 1,
    progress: Progress | None = None,
) -> Done:
    """Simulates points.

    Args:
        points: Which.
        files: Files of the catalogue, beside the shipped ones.
        engine: Digest of the code that whoever asks has; this worker must have the same.
        processes: Processors to use.
        progress: Called with the number of finished simulations and of all, baselines included.

    Raises:
        InputError: If this worker has other code or other files.
    """
    from ampsched.sweeps import code

    if code.engine() != engine:
        raise InputError(
            "a worker has another version of ampsched than the one that asks; install the same on all"
        )
    start, rows = time.perf_counter(), list[Row]()
    for options, group in groupby(points, key=lambda point: point.options):
        settings = complete(MixSettings, dict(options))
        some = list(group)
        rows += _rows(some, [_mix(point, files) for point in some], settings, processes, progress)
    return Done(rows, time.perf_counter() - start)


def _rows(
    points: list[Point],
    mixes: list[Mix],
    settings: MixSettings,
    processes: int,
    progress: Progress | None,
) -> list[Row]:
    """A row for each point; if one fails, each is tried alone, so that it is known which."""
    try:
        runs = run_mixes(
            mixes, settings, same_machine=True, summed=True, processes=processes, progress=progress
        )
    except InputError as error:
        if len(points) == 1:
            return [_row(points[0], None, str(error))]
        return [
            row
            for point, mix in zip(points, mixes, strict=True)
            for row in _rows([point], [mix], settings, processes, progress)
        ]
    return [_row(point, run, None) for point, run in zip(points, runs, strict=True)]


def _row(point: Point, run: Run | None, error: str | None) -> Row:
    names = {
        "key": point.key,
        "machine": point.machine.name,
        "workload": point.workload.name,
        "policy": point.policy.name,
        "core_order": point.core_order,
        "seed": point.seed,
    }
    options = {name: value for name, value in point.options if name not in _NOT_SHOWN}
    found = run_row(run) if run else {}
    return {
        **found,
        **names,
        **options,
        "code": point.policy.digest[:12],
        "timed": any(run.timed) if run else None,
        "caveat": run.outcome.caveat if run else None,
        "error": error,
    }


_NOT_SHOWN = ("seed", "check", "energy")
"""Settings that have a column of another name or meaning, or none."""


def _mix(point: Point, files: tuple[str, ...]) -> Mix:
    return Mix(
        _found(point.machine, files, _machine),
        point.core_order,
        _placed(point, files),
        _policy(point.policy),
        point.seed,
    )


def _placed(point: Point, files: tuple[str, ...]) -> Workload:
    """Recordings are what they are on that machine, with that seed."""
    if not _is_recorded(point.workload, files):
        found: Workload = _found(point.workload, files, _workload_of)
        return found
    return _drawn(point.workload, point.machine, files, point.seed)


@functools.lru_cache(maxsize=1024)
def _is_recorded(thing: Thing, files: tuple[str, ...]) -> bool:
    return has_recordings(_catalog(files), thing.given)


@functools.lru_cache(maxsize=1024)
def _drawn(thing: Thing, on: Thing, files: tuple[str, ...], seed: int) -> Workload:
    return _on(thing, on, files).drawn(seed)


@functools.lru_cache(maxsize=1024)
def _on(thing: Thing, on: Thing, files: tuple[str, ...]) -> Placed:
    placed = Placed.of(_catalog(files), thing.given, _found(on, files, _machine))  # type: ignore[arg-type]
    _check_same(thing, placed.workload)
    return placed


@functools.lru_cache(maxsize=1024)
def _found(thing: Thing, files: tuple[str, ...], find: Callable[[Catalog, Any], Any]) -> Any:  # noqa: ANN401
    """A machine or workload; kept, as many points share it."""
    found = find(_catalog(files), thing.given)
    _check_same(thing, found)
    return found


def _check_same(thing: Thing, found: Machine | Workload) -> None:
    if content_of(found) != thing.digest:
        raise InputError(
            f'"{thing.name}" is another one for a worker: its file differs from that of whoever asks'
        )


def _machine(catalog: Catalog, given: str | Machine) -> Machine:
    return catalog.machine(given)


def _workload_of(catalog: Catalog, given: str | Workload) -> Workload:
    return catalog.workload(given)


def _catalog(files: tuple[str, ...]) -> Catalog:
    return Catalog.shipped().with_files(*files) if files else Catalog.shipped()


@functools.lru_cache(maxsize=4096)
def _policy(thing: Thing) -> PolicySpec:
    from ampsched.sweeps import code

    given: Any = thing.given
    spec = PolicySpec.of(given)
    if code.of_policy(given, spec) != thing.digest:
        raise InputError(
            f'policy "{thing.name}" is another one for a worker: its file differs from that of whoever asks'
        )
    return spec


def options_of(settings: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Settings as a point has them: what is written as a text is one."""
    return tuple(
        (name, value if value is None or isinstance(value, bool | int | float) else str(value))
        for name, value in settings.items()
    )
