"""Files of recordings (``.ampr``)."""

from pathlib import Path

from ampsched._core import InputError, Recording

LIMIT_MB = 1024
"""Most that the files of a recorder's working folder may take, in MiB: what does not fit is counted as lost."""


def load(path: Path) -> Recording:
    """The recording in a file.

    Raises:
        InputError: There is no such file, or it is no recording, or damaged.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    return Recording.read(str(path), data)


def save(recording: Recording, path: Path) -> None:
    """Writes a recording to a file, which takes the place of another one at once or not at all.

    Raises:
        OSError: It cannot be written.
    """
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(recording.to_bytes())
    partial.replace(path)
