"""The command line: ``ampsched``."""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

COMPLETION = "_AMPSCHED_COMPLETE"
"""What a shell sets that asks for completions."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and exits: 0, 2 after one line that begins with ``error:``, or 128 and a signal's number.

    Ctrl-C (SIGINT), SIGTERM and SIGHUP end any command in an orderly way, and soon.

    Args:
        arguments: Arguments without the program's name; those of the process by default.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    if COMPLETION not in os.environ and given in ([], ["-h"], ["--help"], ["--version"]):
        _answer_at_once(version() if "--version" in given else _help())
    from ampsched.cli import app

    app.main(arguments)


def version() -> str:
    """Version and build in one line."""
    from ampsched import __version__
    from ampsched._core import BUILD

    return f"ampsched {__version__} ({BUILD})"


def _help() -> str:
    from ampsched.cli import helping

    return helping.root_page()


def _answer_at_once(text: str) -> NoReturn:
    """Prints what takes no command, and so none of the libraries of commands, and exits."""
    try:
        print(text, flush=True)
    except OSError as error:
        from ampsched.cli import app

        app.end_after(error)
    sys.exit(0)


__all__ = ["main"]
