"""The program ``ampsched-live``: where it is, and what it says of this computer."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ampsched._core import InputError

NAME = "ampsched-live"


def live_program() -> Path:
    """The program ``ampsched-live``: as ``AMPSCHED_LIVE`` says, beside the interpreter or ``ampsched``, or in the path.

    Raises:
        InputError: If there is none.
    """
    if named := os.environ.get("AMPSCHED_LIVE"):
        if not os.access(named, os.X_OK):
            raise InputError(f"AMPSCHED_LIVE: {named} is not a program that can be run here")
        return Path(named)
    beside = [Path(sys.executable).parent, Path(sys.argv[0]).resolve().parent]
    for folder in beside:
        if (folder / NAME).is_file():
            return folder / NAME
    found = shutil.which(NAME)
    if found is None:
        raise InputError(
            f"{NAME}: there is no such program beside {sys.executable} or in the path (wheels of `make wheels` bring "
            "it; in the sources, `make build` or `cargo install --path crates/live/cli` builds it)"
        )
    return Path(found)


def preview(arguments: Sequence[str]) -> dict[str, Any]:
    """What ``ampsched-live run`` would do with the same arguments: its settings, and the classes of cores.

    Raises:
        InputError: If an argument is wrong.
    """
    command = [str(live_program()), "preview", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if ended.returncode != 0:
        raise InputError(error_of(ended.stderr))
    value: dict[str, Any] = json.loads(ended.stdout)
    return value


def refusal(policy: str, options: Sequence[str]) -> str | None:
    """Why ``ampsched-live run`` would not begin with a policy; none if it would.

    Raises:
        InputError: If an option is wrong.
    """
    refused: str | None = preview([f"--policy={policy}", *options, "--", "true"])["refused"]
    return refused


def core_classes(options: Sequence[str]) -> dict[str, list[int]]:
    """The CPUs of each class of cores by its name, the fastest first.

    Args:
        options: Arguments of ``ampsched-live run``.

    Raises:
        InputError: If an option is wrong, or classes cannot be told apart.
    """
    # No session runs for this, so any policy will do.
    found = preview(["--policy=none", *options])
    if "error" in found:
        raise InputError(found["error"])
    return {row["name"]: row["cpus"] for row in found["classes"]}


def error_of(text: str) -> str:
    """The message of a program that has ended with an error."""
    lines = [line for line in text.splitlines() if line.startswith("error: ")]
    return (lines[-1] if lines else text.strip()).removeprefix(
        "error: "
    ) or f"{NAME} failed without a message"
