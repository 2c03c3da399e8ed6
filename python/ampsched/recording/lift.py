"""Programs made of recordings, and the check that they do what was recorded."""

import json
from collections import defaultdict
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal, get_args

from ampsched import _core
from ampsched._core import TYPICAL_PROFILE, InputError, Recording
from ampsched.catalog import Catalog
from ampsched.files import shown
from ampsched.naming import unknown

Level = Literal["full", "jobs", "literal", "work"]
Scaling = Literal["fixed-total", "per-thread"]

_MACHINE = "recorded"
_CORES_MAX = 4096


@dataclass(frozen=True)
class Check:
    """What the simulator says of a lifted program on as many equal cores as the recording's, under `linux`."""

    cores: int
    makespan_ns: int
    group_ns: dict[str, int]
    """CPU time of each group of threads."""


@dataclass(frozen=True)
class Lifted:
    """A program made of a recording."""

    toml: str
    """Its text in the workload language."""
    report: dict[str, Any]
    """What was recognised: groups, objects, works in ns, what stays literal, assumptions."""
    check: Check | None
    """None if it was not asked for."""


def lift(
    recording: Recording,
    *,
    name: str = "",
    like: str = TYPICAL_PROFILE,
    speedup: float | None = None,
    scaling: Scaling = "fixed-total",
    check: bool = True,
) -> Lifted:
    """Makes a program of a recording.

    Args:
        recording: What ran.
        name: The program's name; that of the recording by default.
        like: The profile that its code is like.
        speedup: (Speed on the fastest core) / (speed on the slowest), if known.
        scaling: What other numbers of threads do: ``"fixed-total"`` divides shares, ``"per-thread"`` keeps them.
        check: Simulate it on the recording's number of cores. A program that cannot go on there is made again with
            less recognised.

    Raises:
        InputError: There is no such profile or scaling, or the speed-up cannot be.
    """
    if scaling not in get_args(Scaling):
        raise unknown("scaling", scaling, get_args(Scaling))
    if speedup is not None and not 1 <= speedup <= 100:
        raise InputError(f"speed-up {speedup:g} is not between 1 and 100")
    levels: tuple[Level, ...] = get_args(Level)
    failures: list[str] = []
    for level in levels:
        toml, report = _core.lift(
            recording, level, shown(name), shown(like), speedup, scaling == "per-thread"
        )
        found = Lifted(toml, json.loads(report), None)
        found.report["notes"] += failures
        if not check:
            return found
        try:
            check_of = checked(found.toml, cores_of(recording))
            found.report["notes"] += _other_numbers(found.toml, check_of)
            return Lifted(found.toml, found.report, check_of)
        except InputError as error:
            if level == levels[-1]:
                raise
            failures.append(f"Level {level}: {error}.")
    raise AssertionError("the last level returns or raises")


def _other_numbers(toml: str, check: Check) -> list[str]:
    """A sentence if the program cannot go on with twice as many threads."""
    number = next((line for line in toml.splitlines() if line.startswith("n = ")), None)
    if number is None:
        return []
    n = int(number.split()[2])
    try:
        checked(toml.replace(number, f"n = {2 * n}", 1), check.cores)
    except InputError as error:
        return [f"n cannot be changed to {2 * n}: {error}."]
    return []


def cores_of(recording: Recording) -> int:
    """Cores that the recorded program could run on; 2 if that is not known."""
    return min(len(json.loads(recording.info)["cores"]) or 2, _CORES_MAX)


def checked(toml: str, cores: int, policy: str = "linux") -> Check:
    """Simulates a lifted program on equal cores.

    Raises:
        InputError: The program cannot go on.
    """
    from ampsched.api import simulate

    core = Catalog.shipped().core.copy()
    text = resources.files("ampsched").joinpath("data/machines/sym-2.toml").read_text()
    machine = text.replace("cores = 2", f"cores = {cores}").replace('name = "sym-2"', f'name = "{_MACHINE}"')
    core.add("machine", _MACHINE, f"{_MACHINE}.toml", machine)
    core.add("program", "lifted", "lifted.toml", toml)
    catalog = Catalog(core)
    outcome = simulate(catalog.machine(_MACHINE), catalog.workload("lifted"), policy)
    group_ns: dict[str, int] = defaultdict(int)
    for thread in outcome.threads:
        group_ns[thread.name.split(".")[0]] += thread.run_ns
    return Check(cores, outcome.makespan_ns, dict(group_ns))
