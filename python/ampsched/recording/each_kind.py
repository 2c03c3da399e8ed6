"""A program's own speed-up: it is run once on each kind of core of this computer."""

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ampsched._core import CoreKind, InputError, Recording, core_kinds
from ampsched.children import cpu_s_of_children
from ampsched.cpus import allowed_cpus


@dataclass(frozen=True)
class MeasuredSpeedup:
    """What runs on single kinds of cores tell."""

    speedup: float
    """CPU time on the slowest kind by that on the fastest."""
    kinds: tuple[str, str]
    """Core types of the fastest kind and of the slowest, as catalogues name them."""


def kinds_here() -> list[CoreKind]:
    """The kinds of cores that this process may use.

    Raises:
        InputError: There are not two of them.
    """
    kinds = core_kinds(allowed_cpus())
    if len(kinds) < 2:
        raise InputError(
            "--each-kind: all cores here are of one kind, so no speed-up can be measured: leave it out, and say "
            "--speedup where you ask for advice, or use ampsched vm record"
        )
    return kinds


def measure_speedup(
    command: Sequence[str], kinds: Sequence[CoreKind], step: Callable[[str], None]
) -> MeasuredSpeedup:
    """Runs a command once on each kind of core, without streams, and compares CPU times.

    Args:
        command: Program and arguments.
        kinds: Two kinds of cores or more.
        step: Is told what is run next.

    Raises:
        InputError: The command fails, or uses no CPU time.
    """
    cpu_s = {}
    for kind in kinds:
        step(f"once more on {kind.name} only")
        cpu_s[kind.core_type] = _cpu_s(command, kind)
    fastest, slowest = min(cpu_s, key=cpu_s.__getitem__), max(cpu_s, key=cpu_s.__getitem__)
    return MeasuredSpeedup(cpu_s[slowest] / cpu_s[fastest], (fastest, slowest))


def with_speedup(recording: Recording, measured: MeasuredSpeedup) -> Recording:
    """The recording with what was measured: `speedup` and `speedup_kinds` of `Recording.info`."""
    info = json.loads(recording.info)
    info |= {"speedup": measured.speedup, "speedup_kinds": list(measured.kinds)}
    return recording.with_info(json.dumps(info))


def _cpu_s(command: Sequence[str], kind: CoreKind) -> float:
    """CPU time of a command, and all that it starts, on the cores of a kind, in s."""
    allowed = allowed_cpus()
    before_s = cpu_s_of_children()
    os.sched_setaffinity(0, kind.cpus)
    try:
        done = subprocess.run(  # noqa: S603 (the user's own)
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    finally:
        os.sched_setaffinity(0, allowed)
    used_s = cpu_s_of_children() - before_s
    if done.returncode != 0:
        raise InputError(
            f"{command[0]}: ends with exit code {done.returncode} on {kind.name}, without input: no speed-up is measured"
        )
    if used_s <= 0:
        raise InputError(f"{command[0]}: uses no CPU time that could be measured on {kind.name}")
    return used_s
