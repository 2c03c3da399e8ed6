"""Shows this computer's root in a folder, read-only, and becomes a command: ``_read_only.py FOLDER COMMAND...``.

A file of its own that imports nothing of the package. It is called in a mount namespace of its own.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")


def mounts_below(folder: str, mountinfo: str) -> list[str]:
    """Where something is mounted in a folder or on it, by a text of the form of ``/proc/self/mountinfo`` (proc(5))."""
    points = (_plain(line.split(" ")[4]) for line in mountinfo.splitlines())
    return [point for point in points if point == folder or point.startswith(f"{folder}/")]


def _plain(text: str) -> str:
    """White space and backslashes are octal numbers there."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def _mount(*arguments: str) -> None:
    ended = subprocess.run(["mount", *arguments], check=False)  # noqa: S603, S607
    if ended.returncode != 0:
        sys.exit(ended.returncode)


def _main(folder: str, command: list[str]) -> None:
    _mount("--make-rprivate", "/")
    _mount("--rbind", "/", folder)
    for point in mounts_below(folder, MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")):
        _mount("-o", "remount,bind,ro", point)
    os.execvp(command[0], command)  # noqa: S606


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2:])
