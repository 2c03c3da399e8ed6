"""A command under one of our policies, in the kernel of an exact virtual machine."""

import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from ampsched.live.program import live_program
from ampsched.vm.error import VmError
from ampsched.vm.exact.machine import Exact, find_program

LOADER = "ampsched-live-scx"
RUN_DIR = "/run/ampsched"
FOREIGN = "lib/ampsched"
"""Folder of the programs of other architectures, each in a folder of its own."""


def loader(architecture: str) -> Path:
    """The program that puts policies into kernels: beside ``ampsched-live``, or that of another architecture.

    Raises:
        VmError: It is not there.
        InputError: There is no ``ampsched-live``.
    """
    own = architecture == platform.machine()
    path = live_program().with_name(LOADER) if own else Path(sys.prefix, FOREIGN, architecture, LOADER)
    if not path.exists():
        how = (
            "wheels bring it; in the sources, `make build` says what it needs"
            if own
            else "wheels have that of their own architecture only; in the sources, `make live-arm64` builds it"
        )
        raise VmError(f"{path} is missing, so no policy can run in such a kernel ({how})")
    return path


def under(
    policy: str, exact: Exact, command: Sequence[str], program: Path | None = None
) -> tuple[list[str], list[Path]]:
    """A command, scheduled by a policy with all that it starts, and what the guest needs for that.

    Args:
        policy: As on the command line of ``ampsched-live run``.
        exact: The machine.
        command: Program and arguments.
        program: The program that puts it into the kernel; the installed one by default.
    """
    words = [str(program or loader(exact.architecture)), "run", "--backend=scx", f"--policy={policy}"]
    words += [f"--run-dir={RUN_DIR}", *core_options(exact), "--", *command]
    named = find_program(command[0], Path.cwd(), exact.architecture)
    return words, [named] if named else []


def core_options(exact: Exact) -> list[str]:
    """Which CPUs of the guest are of which class, and how fast, as options of ``ampsched-live run``."""
    classes = _classes(exact)
    names = ["--big", *["--middle"] * (len(classes) - 2), "--little"][: len(classes)]
    options = [f"{name}={_list(cpus)}" for name, (cpus, _) in zip(names, classes, strict=True)]
    fastest = classes[0][1]
    ratios = [f"{fastest / speed:.4g}" for _, speed in classes[1:]]
    return [*options, *([f"--ratio={','.join(ratios)}"] if ratios else [])]


def _classes(exact: Exact) -> list[tuple[list[int], float]]:
    """CPUs and speed of each class, the fastest first."""
    found: dict[int, tuple[list[int], float]] = {}
    for (*_, class_), cluster in zip(exact.machine.clusters, exact.clusters(), strict=True):
        cpus, speed = found.get(class_, ([], 0.0))
        found[class_] = sorted([*cpus, *cluster.cores]), max(speed, cluster.speed)
    return [found[class_] for class_ in sorted(found, reverse=True)]


def _list(cpus: Sequence[int]) -> str:
    return ",".join(map(str, cpus))
