"""Files of recordings (``.ampr``), and the working folders of recorders, which become recordings."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ampsched._core import InputError, Recording
from ampsched.files import read_bytes, shown, writing

LIMIT_MB = 1024
"""Most that the files of a recorder's working folder may take, in MiB: what does not fit is counted as lost."""
LIMIT_MB_MAX = 1 << 20
"""More than that no program could map."""


def load(path: Path) -> Recording:
    """The recording in a file.

    Raises:
        InputError: There is no such file, or it is no recording, or damaged.
    """
    return Recording.read(shown(path), read_bytes(path))


def save(recording: Recording, path: Path) -> None:
    """Writes a recording to a file, which takes the place of another one at once or not at all.

    Raises:
        OSError: It cannot be written.
    """
    data = recording.to_bytes()
    with writing(path) as file:
        file.write(data)


@contextmanager
def keeping(folder: Path, has_events: Callable[[], bool]) -> Iterator[None]:
    """Removes a working folder when what stands in it is saved, or if nothing was recorded.

    Args:
        folder: The folder.
        has_events: Whether anything was recorded.

    Raises:
        InputError: What failed inside; with how to go on if the folder stays.
    """
    try:
        yield
    except (InputError, OSError) as error:
        failed = error
        if isinstance(error, OSError):
            failed = InputError(f"{error.filename or folder}: {error.strerror or error}")
        if has_events():
            failed.add_note(f"what was recorded is kept: ampsched record --recover {shown(folder)} -o FILE")
        else:
            shutil.rmtree(folder, ignore_errors=True)
        raise failed from None
    shutil.rmtree(folder, ignore_errors=True)
