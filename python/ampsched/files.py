"""Reading and writing what users name."""

import contextlib
import io
import os
import re
import secrets
import shutil
import stat
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ampsched._core import (
    DATA_BYTES_MAX,
    DESCRIPTION_BYTES_MAX,
    MEMORY_BYTES_MAX,
    InputError,
    check_memory,
)

if TYPE_CHECKING:
    import polars

_DRAFT = ".draft"
"""How names of files end that are not written to their end yet."""
_START_BYTES = 4096
"""So much of a file says whose it is."""
_CELL_BYTES = 8
"""Of a table in memory."""


_HALVES = re.compile("[\udc80-\udcff]")
"""Characters that are none; Python has those from U+DC80 on for bytes of names that are no UTF-8."""
_FIRST_BYTE = 0xDC00
"""What is added to such a byte."""


def shown(name: str | Path) -> str:
    """A name as a text that any program can show: a byte that is no UTF-8 stands there as ``%ff``.

    No backslash, which some would take for the end of a folder's name.
    """
    return _HALVES.sub(lambda half: f"%{ord(half[0]) - _FIRST_BYTE:02x}", str(name))


def named(text: str) -> Path:
    """The file that `shown` has made a text of."""
    path = Path(text)
    if "%" not in text or path.exists():
        return path
    return Path(re.sub("%([89a-f][0-9a-f])", lambda byte: chr(_FIRST_BYTE + int(byte[1], 16)), text))


def read_bytes(path: Path, most_bytes: int = MEMORY_BYTES_MAX) -> bytes:
    """The bytes of a file.

    Args:
        path: The file.
        most_bytes: How long it may be; no more is read. Of what is no ordinary file, such as a pipe, that may be
            without end, no more than `DATA_BYTES_MAX` is read.

    Raises:
        InputError: If it cannot be read or is longer.
    """
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                most_bytes = min(most_bytes, DATA_BYTES_MAX)
            content = file.read(most_bytes + 1) if status.st_size <= most_bytes else None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{str(path)!r}: is no file name ({error})") from None
    if content is None or len(content) > most_bytes:
        raise InputError(
            f"{path}: is longer than {most_bytes >> 20} MiB, which is the limit (take a part of it)"
        )
    return content


def read_text(path: Path, most_bytes: int = DESCRIPTION_BYTES_MAX) -> str:
    """The text of a file, without the byte-order mark that some programs begin it with.

    Args:
        path: The file.
        most_bytes: How long it may be; no more is read, even of a file without end.

    Raises:
        InputError: If it cannot be read, is longer or is not UTF-8.
    """
    try:
        content = io.BytesIO(read_bytes(path, most_bytes))
        return io.TextIOWrapper(content, encoding="utf-8-sig").read()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text (byte {error.start})") from None


def read_parquet(path: Path, columns: list[str] | None = None) -> "polars.DataFrame":
    """A table of a Parquet file, or some columns of it.

    Raises:
        InputError: If it cannot be read, is no Parquet file, lacks a column or takes too much memory.
    """
    return parse_parquet(path, read_bytes(path), columns)


def parse_parquet(path: Path, content: bytes, columns: list[str] | None = None) -> "polars.DataFrame":
    """The same of the content of a file.

    Raises:
        InputError: If it is no Parquet file, lacks a column or takes too much memory.
    """
    import polars

    try:
        with panics_told():
            table = polars.scan_parquet(io.BytesIO(content))
            names = table.collect_schema().names()
            cells = table.select(polars.len()).collect().item() * len(names)
            check_memory(shown(path), len(content), cells * _CELL_BYTES)
            for name in columns or []:
                if name not in names:
                    raise InputError(f'{path}: column "{name}" is missing')
            return table.select(columns or names).collect()
    except polars.exceptions.PolarsError as error:
        raise InputError(f"{path}: is no Parquet file: {str(error).splitlines()[0]}") from None


@contextmanager
def writing(path: str | Path) -> Iterator[BinaryIO]:
    """Opens a file that takes the place of `path` when all of it is written.

    Whatever goes wrong meanwhile, Ctrl-C included, `path` is what it was before and nothing else is left behind. What
    is no ordinary file, such as a pipe or ``/dev/stdout``, is written to directly.

    Raises:
        OSError: If it cannot be written; the error names `path`.
    """
    try:
        mode = _mode(path)
        is_file = mode is None or stat.S_ISREG(mode)
        # What the kernel shows there, such as /dev/stdout, is open already.
        if is_file and not str(path).startswith(("/dev/", "/proc/")):
            with _beside(Path(os.path.realpath(path)), mode) as file:
                yield file
        else:
            with Path(path).open("wb") as file:
                yield file
    except OSError as error:
        if error.filename is not None and not str(error.filename).endswith(_DRAFT):
            raise
        raise OSError(error.errno, f"{error.strerror or error}{_without_folder(path)}", str(path)) from None


def _without_folder(path: str | Path) -> str:
    """What to do where the folder of a file is missing, behind an error about the file; else empty."""
    folder = Path(path).parent
    return "" if os.path.lexists(folder) else f" (there is no folder {folder}: make it first)"


def _mode(path: str | Path) -> int | None:
    """Type and permissions of what stands there; None if nothing does."""
    try:
        return os.stat(path).st_mode  # noqa: PTH116 (a path may be a text)
    except FileNotFoundError:
        return None


@contextmanager
def _beside(target: Path, mode: int | None) -> Iterator[BinaryIO]:
    """A new file in the folder of `target`, which takes its place, and its mode, in the end."""
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}{_DRAFT}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(handle, "wb") as file:  # noqa: PTH123 (a descriptor)
            if mode is not None:
                os.fchmod(handle, stat.S_IMODE(mode))
            yield file
        draft.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


@dataclass(frozen=True, slots=True)
class Ours:
    """How a file of this package is known.

    Attributes:
        name: What it is called.
        mark: What stands near the beginning of every one.
    """

    name: str
    mark: bytes

    def has_made(self, path: Path) -> bool:
        """Whether it is such a file, or empty."""
        with path.open("rb") as file:
            start = file.read(_START_BYTES)
        return not start or self.mark in start


PAGE = Ours("report", b'<meta name="generator" content="ampsched ')
"""What every page says."""
PROOF = Ours("report", b'"format": "ampsched-proof"')
EXECUTIONS = Ours("table of executions", b"task,kind,worker,start_s,end_s\n")


class _NotWrittenError(Exception):
    """It was only tried."""


def check_writable(path: Path) -> None:
    """Tries whether `writing` could write a file: before work whose outcome would be lost.

    Raises:
        OSError: If not; the error names `path`.
    """
    with contextlib.suppress(_NotWrittenError), writing(path):
        raise _NotWrittenError


@contextmanager
def temporary_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """A new folder that is gone afterwards.

    What cannot be removed stays: ``tempfile.TemporaryDirectory`` recurses without end there (Python 3.11).
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_text(path: str | Path, text: str) -> None:
    """Writes a text as UTF-8, as a whole or not at all; see `writing`."""
    with writing(path) as file:
        file.write(shown(text).encode(errors="backslashreplace"))


def write_csv(path: str | Path, frame: "polars.DataFrame") -> None:
    """Writes a data frame as CSV, as a whole or not at all; see `writing`."""
    write_text(path, frame.write_csv())


def write_parquet(path: str | Path, frame: "polars.DataFrame") -> None:
    """Writes a data frame as Parquet, as a whole or not at all; see `writing`."""
    content = parquet(frame)
    with writing(path) as file:
        file.write(content)


def parquet(frame: "polars.DataFrame", **how: Any) -> memoryview:  # noqa: ANN401 (as polars takes it)
    """A data frame as the content of a Parquet file; how, as ``polars.DataFrame.write_parquet`` takes it.

    Raises:
        OSError: If polars lacks something, such as descriptors.
    """
    buffer = io.BytesIO()
    with panics_told():
        frame.write_parquet(buffer, **how)
    return buffer.getbuffer()


@contextmanager
def panics_told() -> Iterator[None]:
    """Threads that cannot be started, by Python or by polars, which then panics, are errors like others."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != "can't start new thread":
            raise
        raise OSError(f"{error}: no memory, or too many (ulimit -u, the cgroup's pids.max)") from None
    except BaseException as error:
        # Of a type that has no name to catch it by, and is no Exception.
        if type(error).__name__ != "PanicException" or not _is_of_polars(error):
            raise
        raise OSError(f"polars cannot work here: {error}") from None


def _is_of_polars(error: BaseException) -> bool:
    frames = traceback.walk_tb(error.__traceback__)
    modules = [str(frame.f_globals.get("__name__")) for frame, _ in frames]
    return modules[-1].partition(".")[0] == "polars"


def check_suffix(what: str, path: Path | None, *suffixes: str) -> None:
    """Refuses a file whose name promises another format than it would have.

    Raises:
        InputError: If there is a path, and it ends with none of the suffixes.
    """
    if path is not None and path.suffix not in suffixes:
        raise InputError(f"{what} {path} does not end with {' or '.join(suffixes)}")


def check_target(what: str, path: Path | None, ours: Ours | None = None) -> None:
    """Refuses what cannot be written, or shall not be replaced, before anything long begins.

    Args:
        what: The option that names it.
        path: The file, if one is named.
        ours: How files are known that may be replaced; by default any may be. Empty ones always may.

    Raises:
        InputError: If there is a path, and it is a folder, its folder is missing, or it is a file of somebody else.
        OSError: If what stands there cannot be looked at; the error names it.
    """
    mode = None if path is None else _mode(path)
    if path is None or (mode is None and os.path.lexists(path.parent)):
        return
    if mode is None:
        raise InputError(f"{what} {path}: there is no folder {path.parent} (make it first)")
    if stat.S_ISDIR(mode):
        raise InputError(f"{what} {path}: is a folder")
    if ours is not None and stat.S_ISREG(mode) and not ours.has_made(path):
        raise InputError(
            f"{what} {path}: is there already and is no {ours.name} that ampsched has written, so it is not replaced "
            "(name another file, or remove this one)"
        )
