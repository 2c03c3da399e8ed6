"""The program ``ampsched-live``: where it is, and what it says of this computer."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ampsched._core import InputError

NAME = "ampsched-live"


def live_program() -> Path:
    """The program ``ampsched-live``, beside the interpreter or the ``ampsched`` command, or in the path.

    Raises:
        InputError: If there is none.
    """
    beside = [Path(sys.executable).parent, Path(sys.argv[0]).resolve().parent]
    for folder in beside:
        if (folder / NAME).is_file():
            return folder / NAME
    found = shutil.which(NAME)
    if found is None:
        raise InputError(
            f"{NAME}: there is no such program beside {sys.executable} or in the path (build it in the source folder: "
            "'make build', or 'cargo install --path crates/live/cli')"
        )
    return Path(found)


@dataclass(frozen=True, slots=True)
class Cores:
    """Which CPUs are fast and which slow, as lists such as ``0-1``; all empty: as the kernel shows."""

    big: str = ""
    middle: tuple[str, ...] = ()
    little: str = ""
    ratio: str = ""
    """Speed of the fastest class over that of the others, from the next to the slowest, such as ``1.4,2.5``."""

    def arguments(self) -> list[str]:
        """The same as arguments of ``ampsched-live``."""
        named = [("big", self.big), *(("middle", cpus) for cpus in self.middle), ("little", self.little)]
        named.append(("ratio", self.ratio))
        return [f"--{name}={value}" for name, value in named if value]

    def classes(self) -> dict[str, list[int]]:
        """The CPUs of each class by its name, the fastest first.

        Raises:
            InputError: If the lists are wrong, or classes cannot be told apart.
        """
        found = doctor(self)
        if not found["classes"]:
            raise InputError(found["evidence"])
        return {row["name"]: row["cpus"] for row in found["classes"]}


def doctor(cores: Cores) -> dict[str, Any]:
    """What ``ampsched-live doctor`` says of this computer."""
    command = [str(live_program()), "doctor", "--json", *cores.arguments()]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if ended.returncode != 0:
        raise InputError(error_of(ended.stderr))
    value: dict[str, Any] = json.loads(ended.stdout)
    return value


def error_of(text: str) -> str:
    """The message of a program that has ended with an error."""
    lines = [line for line in text.splitlines() if line.startswith("error: ")]
    return (lines[-1] if lines else text.strip()).removeprefix(
        "error: "
    ) or f"{NAME} failed without a message"
