"""Reading and writing what users name."""

import contextlib
import io
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ampsched._core import DESCRIPTION_BYTES_MAX, InputError

if TYPE_CHECKING:
    import polars

_DRAFT = ".draft"
"""How names of files end that are not written to their end yet."""


def read_text(path: Path, most_bytes: int = DESCRIPTION_BYTES_MAX) -> str:
    """The text of a file.

    Args:
        path: The file.
        most_bytes: How long it may be; no more is read, even of a file without end.

    Raises:
        InputError: If it cannot be read, is longer or is not UTF-8.
    """
    try:
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
        if len(content) > most_bytes:
            raise InputError(f"{path}: is longer than {most_bytes >> 20} MiB, which is the limit")
        return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8").read()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text (byte {error.start})") from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{str(path)!r}: is no file name ({error})") from None


@contextmanager
def writing(path: str | Path) -> Iterator[BinaryIO]:
    """Opens a file that takes the place of `path` when all of it is written.

    Whatever goes wrong meanwhile, Ctrl-C included, `path` is what it was before and nothing else is left behind. What
    is no ordinary file, such as a pipe or ``/dev/stdout``, is written to directly.

    Raises:
        OSError: If it cannot be written; the error names `path`.
    """
    try:
        mode = Path(path).stat().st_mode if Path(path).exists() else None
        is_file = mode is None or stat.S_ISREG(mode)
        # What the kernel shows there, such as /dev/stdout, is open already.
        if is_file and not str(path).startswith(("/dev/", "/proc/")):
            with _beside(Path(path).resolve(), mode) as file:
                yield file
        else:
            with Path(path).open("wb") as file:
                yield file
    except OSError as error:
        if error.filename is not None and not str(error.filename).endswith(_DRAFT):
            raise
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None


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
        file.write(text.encode())


def write_csv(path: str | Path, frame: "polars.DataFrame") -> None:
    """Writes a data frame as CSV, as a whole or not at all; see `writing`."""
    write_text(path, frame.write_csv())


def write_parquet(path: str | Path, frame: "polars.DataFrame") -> None:
    """Writes a data frame as Parquet, as a whole or not at all; see `writing`."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    with writing(path) as file:
        file.write(buffer.getbuffer())


def check_suffix(what: str, path: Path | None, *suffixes: str) -> None:
    """Refuses a file whose name promises another format than it would have.

    Raises:
        InputError: If there is a path, and it ends with none of the suffixes.
    """
    if path is not None and path.suffix not in suffixes:
        raise InputError(f"{what} {path} does not end with {' or '.join(suffixes)}")
