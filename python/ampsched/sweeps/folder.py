"""Results of simulations in a folder: one table, and what has been added since it was written.

    results/ampsched-sweep    says that it is such a folder
    results/table.parquet     one row per simulation, sorted
    results/added/*.parquet   rows that are not in the table yet, of this or another computer

A row is found by its key, a digest of all that determines it. So folders of several people can be put together by
copying: a table of somebody else is a file to add. The table's bytes depend on its rows only.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import polars

from ampsched._core import InputError
from ampsched.files import parquet, parse_parquet, read_bytes, read_text, writing
from ampsched.sweeps.digests import sha
from ampsched.sweeps.work import Row

MARK = "ampsched-sweep"
_FORM = "1\n"
_TABLE = "table.parquet"
_ADDED = "added"
KEY = "key"
NAMES = (
    "machine",
    "workload",
    "factors",
    "noise",
    "overhead",
    "governor",
    "repetitions",
    "limit_s",
    "policy",
    "core_order",
    "seed",
)
"""The columns that say which simulation a row is of, by which tables are sorted."""
_TYPES: dict[str, type[polars.DataType]] = {
    **dict.fromkeys((KEY, *NAMES, "engine", "code", "caveat", "error"), polars.String),
    "repetitions": polars.UInt32,
    "limit_s": polars.Float64,
    "seed": polars.UInt64,
    "timed": polars.Boolean,
}
"""Types of columns; all others are numbers."""
_NEEDED = (KEY, *NAMES, "timed", "caveat", "error")
"""The columns without which nothing can be said about a simulation."""
_ROW_GROUP = 1 << 16


def frame_of(rows: Sequence[Row]) -> polars.DataFrame:
    """Rows as a frame; every one has the same columns."""
    names = list(dict.fromkeys(name for row in rows for name in row)) or [KEY, *NAMES]
    schema = {name: _TYPES.get(name, polars.Float64) for name in names}
    return polars.DataFrame(
        {name: [row.get(name) for row in rows] for name in names}, schema=schema, strict=False
    )


class Folder:
    """A folder of results.

    Raises:
        InputError: If it is a folder of something else.
        OSError: If it can't be made or written to; the error names it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        mark = path / MARK
        # Somebody else may be making it at this moment.
        if _exists(path) and not _is_of_a_sweep(path):
            raise InputError(
                f"{path}: is no folder of a sweep's results (it has no file {MARK}); name a new one, or an empty one"
            )
        (path / _ADDED).mkdir(parents=True, exist_ok=True)
        with self._locked() as lock:  # whether it can be written to is better known before the simulations
            if os.fstat(lock.fileno()).st_size == 0:
                lock.write(_FORM)
                lock.flush()
            if (form := read_text(mark)) != _FORM:
                raise InputError(
                    f"{mark}: form {form.strip()[:20]!r} is not known to this version of ampsched"
                )

    def keys(self) -> set[str]:
        """Keys of the results that are there."""
        with self._locked():
            return {key for file in self._files() for key in _read(file, [KEY])[KEY]}

    def add(self, rows: Sequence[Row]) -> None:
        """Adds results, all or none of them."""
        if rows:
            name = sha(*(str(row[KEY]) for row in rows))[:32]
            _write(self.path / _ADDED / f"{name}.parquet", frame_of(rows))

    def frame(self) -> polars.DataFrame:
        """All results, sorted, each once."""
        with self._locked():
            return _tidy([_read(file) for file in self._files()])

    def merge(self) -> polars.DataFrame:
        """Moves into the table what has been added, and returns it; several processes may do so at once."""
        with self._locked():
            files = self._files()
            whole = _tidy([_read(file) for file in files])
            if [file.name for file in files] != [_TABLE]:
                _write(self.path / _TABLE, whole)
            for file in files:
                if file.parent.name == _ADDED:
                    file.unlink()
        return whole

    def _files(self) -> list[Path]:
        table = self.path / _TABLE
        return [*([table] if table.exists() else []), *sorted((self.path / _ADDED).glob("*.parquet"))]

    @contextmanager
    def _locked(self) -> Iterator[TextIO]:
        """Nobody else merges meanwhile: files stay where they are."""
        with (self.path / MARK).open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                yield file
            finally:
                with contextlib.suppress(OSError):
                    fcntl.flock(file, fcntl.LOCK_UN)


def _is_of_a_sweep(path: Path) -> bool:
    """Whether it is a folder of results, or an empty one."""
    there = {file.name for file in path.iterdir()} if path.is_dir() else {path.name}
    return MARK in there or not there - {_ADDED}


def _exists(path: Path) -> bool:
    """Whether something is there; links in a circle are an error."""
    try:
        path.stat()
    except FileNotFoundError:
        return False
    return True


def _read(file: Path, columns: list[str] | None = None) -> polars.DataFrame:
    """A table, or some of its columns, each of which is of its type."""
    content = read_bytes(file)  # what cannot be read may be whole: nobody is told to delete it
    try:
        table = parse_parquet(file, content, columns)
        for name in columns or _NEEDED:
            if name not in table.columns:
                raise InputError(f'{file}: column "{name}" is missing')
        for name, type_ in table.schema.items():
            wanted = _TYPES.get(name, polars.Float64)
            is_number = wanted.is_numeric() and type_.is_numeric()
            if type_ not in (wanted, polars.Null) and not is_number:
                raise InputError(f'{file}: column "{name}" has {type_}, not {wanted}')
    except InputError as error:
        raise InputError(f"{error} (delete it, and its simulations run again)") from None
    return table


def _write(file: Path, frame: polars.DataFrame) -> None:
    content = parquet(frame, compression="zstd", compression_level=3, row_group_size=_ROW_GROUP)
    with writing(file) as out:
        out.write(content)


def _tidy(frames: Sequence[polars.DataFrame]) -> polars.DataFrame:
    """Rows of several frames in one order, each key once, columns in one order."""
    if not frames:
        return frame_of([])
    whole = polars.concat(frames, how="diagonal_relaxed").unique(KEY, keep="first")
    rest = sorted(set(whole.columns) - {KEY, *NAMES})
    return whole.select(KEY, *NAMES, *rest).sort([*NAMES, KEY], nulls_last=True).rechunk()
