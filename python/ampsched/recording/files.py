"""Files of recordings (``.ampr``)."""

from pathlib import Path

from ampsched._core import Recording
from ampsched.files import read_bytes, shown, writing

LIMIT_MB = 1024
"""Most that the files of a recorder's working folder may take, in MiB: what does not fit is counted as lost."""


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
    with writing(path) as file:
        file.write(recording.to_bytes())
