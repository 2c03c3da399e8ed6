"""Reading what users name."""

from pathlib import Path

from ampsched._core import InputError


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        InputError: If it cannot be read or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text (byte {error.start})") from None
    except ValueError as error:
        raise InputError(f"{str(path)!r}: is no file name ({error})") from None
