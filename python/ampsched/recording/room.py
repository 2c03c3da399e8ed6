"""The working folder of the library that a recorded program loads, and the room for events in it.

The threads of the program only write to memory that is there: this process makes it, ahead of them, in a file that the
program has mapped since its start. The form of the files is declared in ``crates/preload/c/form.h``.
"""

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from mmap import mmap
from pathlib import Path
from typing import BinaryIO

from ampsched._core import InputError, preload_library
from ampsched.files import temporary_folder
from ampsched.recording.files import LIMIT_MB

INFO = "info.json"
"""The file of a working folder that says what is known of the recording as a whole."""
LIBRARY, CONTROL, EVENTS = "libampsched-preload.so", "control", "events"
_MAGIC = b"AMPRAW2\n"
_CONTROL_BYTES = 4096 + 16 * 65535
_CHUNK_BYTES = 65536
_TAKEN, _AVAILABLE = 4, 5
"""What `control` says of chunks, by its words of 4 bytes."""
_AHEAD_CHUNKS, _AHEAD_CHUNKS_MAX = (16 << 20) // _CHUNK_BYTES, (128 << 20) // _CHUNK_BYTES
"""How many chunks are there beyond those that are taken: as many as are taken, within these bounds."""
_PERIOD_S = 0.01
_NOT_IN_PRELOAD = frozenset(b" :;$")
"""The dynamic linker separates the paths of libraries to load, and replaces words like ``$LIB`` in them."""


def prepare(
    folder: Path, info: Mapping[str, object], limit_mb: int = LIMIT_MB, *, is_alone: bool = False
) -> None:
    """Makes a working folder.

    Args:
        folder: Where.
        info: What is known of the recording as a whole.
        limit_mb: Most that events may take, in MiB.
        is_alone: No process will make room beside the program, as in a virtual machine: the library does, too.

    Raises:
        InputError: It is there already, or cannot be written.
    """
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        hint = f"ampsched record --recover {folder} -o FILE makes a recording of it, or remove it"
        raise InputError(f"{folder}: is there already, left by a recorder that was ended ({hint})") from None
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}") from None
    try:
        (folder / LIBRARY).write_bytes(preload_library())
        words = (0, 0, 0, 0, limit_mb * (1 << 20) // _CHUNK_BYTES, int(is_alone))
        with (folder / CONTROL).open("wb") as control:
            control.write(_MAGIC + b"".join(word.to_bytes(4, "little") for word in words))
            control.flush()
            os.posix_fallocate(control.fileno(), 0, _CONTROL_BYTES)
        (folder / EVENTS).touch(mode=0o600)
        write_info(folder, info)
    except OSError as error:
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        raise InputError(f"{folder}: cannot be written: {error.strerror}") from None


def write_info(folder: Path, info: Mapping[str, object]) -> None:
    """Writes down what is known of the recording as a whole."""
    (folder / INFO).write_text(json.dumps(info), encoding="utf-8")


def taken_bytes(folder: Path) -> int:
    """How much of the file of events threads have taken, in bytes."""
    with (folder / CONTROL).open("rb") as control:
        words = memoryview(control.read(32).ljust(32, b"\0")).cast("I")
    return min(words[_TAKEN] * _CHUNK_BYTES, (folder / EVENTS).stat().st_size)


def read(folder: Path) -> tuple[bytes, bytes]:
    """What the processes of a working folder share, and the events of their threads.

    Raises:
        OSError: A file cannot be read.
    """
    with (folder / CONTROL).open("rb") as control, (folder / EVENTS).open("rb") as events:
        return control.read(_CONTROL_BYTES), events.read(taken_bytes(folder))


def check_path(path: Path) -> Path:
    """Refuses a path of a library that the dynamic linker would take for several, or for another one.

    Raises:
        InputError: It is one.
    """
    if _is_loadable(path):
        return path
    raise InputError(f'{path}: the dynamic linker takes no path with a space, ":", ";" or "$"')


def _is_loadable(path: Path) -> bool:
    return _NOT_IN_PRELOAD.isdisjoint(os.fsencode(path))


@contextmanager
def reachable(folder: Path) -> Iterator[Path]:
    """A path of the folder by which the dynamic linker finds the library, whatever the folder is called.

    Raises:
        InputError: Not even that for temporary files is one.
    """
    path = folder.absolute()
    if _is_loadable(path):
        yield path
        return
    with temporary_folder("ampsched-") as safe:
        link = check_path(safe) / "parts"
        link.symlink_to(path)
        try:
            yield link
        finally:
            link.unlink()


@contextmanager
def making_room(folder: Path) -> Iterator[None]:
    """Adds chunks to a working folder ahead of the threads that take them.

    Raises:
        InputError: There is not even room for a first one.
    """
    with (
        (folder / CONTROL).open("r+b") as control,
        (folder / EVENTS).open("r+b") as events,
        mmap(control.fileno(), _CHUNK_BYTES) as shared,
        memoryview(shared) as octets,
        octets.cast("I") as words,
    ):
        room = _Room(words, events)
        room.extend()
        if room.refused and not words[_AVAILABLE]:
            raise InputError(f"{folder}: no room for events: {room.refused}")
        is_over = threading.Event()

        def serve() -> None:
            while not is_over.wait(_PERIOD_S):
                room.extend()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


class _Room:
    """The chunks of a file of events; `words` are those of `control`."""

    def __init__(self, words: "memoryview[int]", events: BinaryIO) -> None:
        self.words = words
        self.events = events
        self.most: int = words[6]
        self.refused = ""
        """Why there is less than was asked for."""

    def extend(self) -> None:
        """Adds chunks until enough are there. What the disk, or a limit of this process, does not give is not there."""
        taken, there = self.words[_TAKEN], self.words[_AVAILABLE]
        ahead = min(max(_AHEAD_CHUNKS, taken), _AHEAD_CHUNKS_MAX)
        if there - taken >= ahead // 2:
            return
        missing = min(taken + ahead, self.most) - there
        while missing > 0:
            try:
                os.posix_fallocate(self.events.fileno(), there * _CHUNK_BYTES, missing * _CHUNK_BYTES)
            except OSError as error:
                self.refused = error.strerror or str(error)
                missing //= 2
                self.most = there + missing
            else:
                self.words[_AVAILABLE] = there + missing
                return
