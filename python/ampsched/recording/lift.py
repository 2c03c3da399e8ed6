"""Programs made of recordings, and the check that they do what was recorded."""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, Literal, get_args

from ampsched import _core
from ampsched._core import LIFT_WORK_ERROR_MAX, TYPICAL_PROFILE, InputError, Recording
from ampsched.catalog import Catalog
from ampsched.files import shown
from ampsched.naming import unknown
from ampsched.units import NS_PER_MS

Level = Literal["full", "jobs", "literal", "work"]
Scaling = Literal["fixed-total", "per-thread"]

SMALL_SHARE = 0.01
"""Differences below this share of the program's work are what switching costs, and no error of a thread."""
_PASSES_MAX = 8
"""Most simulations with more and more threads that stay as they were."""
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

    @property
    def threads(self) -> int | None:
        """The parameter n: threads that share work; none if the program has no such parameter."""
        line = next((line for line in self.toml.splitlines() if line.startswith("n = ")), None)
        return None if line is None else int(line.split()[2])


def lift(
    recording: Recording,
    *,
    name: str = "",
    like: str = TYPICAL_PROFILE,
    speedup: float | None = None,
    scaling: Scaling = "fixed-total",
    check: bool = True,
    is_fixed: bool = False,
) -> Lifted:
    """Makes a program of a recording.

    Args:
        recording: What ran.
        name: The program's name; that of the recording by default.
        like: The profile that its code is like.
        speedup: (Speed on the fastest core) / (speed on the slowest), if known.
        scaling: What other numbers of threads do: ``"fixed-total"`` divides shares, ``"per-thread"`` keeps them.
        check: Simulate it on the recording's number of cores. Threads that do more or less there than was recorded stay
            literal; a program that cannot go on there is made again with less recognised.
        is_fixed: The number of threads stays what it was.

    Raises:
        InputError: There is no such profile or scaling, or the speed-up cannot be.
    """
    if scaling not in get_args(Scaling):
        raise unknown("scaling", scaling, get_args(Scaling))
    if speedup is not None and not 1 <= speedup <= 100:
        raise InputError(f"speed-up {speedup:g} is not between 1 and 100")
    options = (shown(name), shown(like), speedup, scaling == "per-thread")
    maker = _Maker(recording, options, is_fixed)
    levels: tuple[Level, ...] = get_args(Level)
    failures: list[str] = []
    for level in levels:
        try:
            found = maker.faithful(level) if check else maker.made(level)
        except InputError as error:
            if level == levels[-1]:
                raise
            failures.append(f"Level {level}: {error}.")
            continue
        found.report["notes"] += failures
        return found
    raise AssertionError("the last level returns or raises")


@dataclass(frozen=True)
class _Maker:
    """Makes programs of a recording."""

    recording: Recording
    options: tuple[str, str, float | None, bool]
    """Name, profile, speed-up, whether each of other threads does as much."""
    is_fixed: bool

    def made(self, level: str, literal: Iterable[int] = ()) -> Lifted:
        """The program; `literal`: recorded threads that stay as they were."""
        toml, report = _core.lift(self.recording, level, *self.options, self.is_fixed, list(literal))
        return Lifted(toml, json.loads(report), None)

    def faithful(self, level: str) -> Lifted:
        """The program whose threads do what was recorded in the simulation, too.

        Raises:
            InputError: It cannot go on.
        """
        found = self.made(level)
        literal: set[int] = set()
        notes: list[str] = []
        for _ in range(_PASSES_MAX):
            check = checked(found.toml, cores_of(self.recording))
            wrong = [group for group in found.report["groups"] if is_off(group, check, found.report)]
            wrong = [group for group in wrong if not literal.issuperset(group["members"])]
            if not wrong:
                break
            # What one takes too much others miss: the worst may be the only one that is wrong.
            worst = max(wrong, key=lambda group: abs(_error(group, check)))
            wrong = [group for group in wrong if group is worst or not group["takes_items"]]
            for group in wrong:
                literal.update(group["members"])
                notes.append(f"{_difference(group, check)}: it stays literal.")
            found = self.made(found.report["level"], literal)
        else:
            check = checked(found.toml, cores_of(self.recording))
        found.report["notes"] += notes
        found = Lifted(found.toml, found.report, check)
        refused = self._why_not_twice(found, check)
        if refused is None:
            return found
        fixed = replace(self, is_fixed=True).made(found.report["level"], literal)
        fixed.report["notes"] += [*notes, refused]
        return Lifted(fixed.toml, fixed.report, checked(fixed.toml, check.cores))

    def _why_not_twice(self, found: Lifted, check: Check) -> str | None:
        """Why the number of threads stays, if the program is wrong with twice as many."""
        if found.threads is None:
            return None
        n = 2 * found.threads
        try:
            twice = checked(found.toml, check.cores, n=n)
        except InputError as error:
            return f"n stays {found.threads}: with n = {n} {error}."
        before, after = sum(check.group_ns.values()), sum(twice.group_ns.values())
        *_, is_per_thread = self.options
        if is_per_thread or abs(after - before) <= LIFT_WORK_ERROR_MAX * before:
            return None
        work = (
            f"{after / NS_PER_MS:.4g} ms instead of {before / NS_PER_MS:.4g} ms ({after / before - 1:+.0%})"
        )
        return f"n stays {found.threads}: with n = {n} all threads would do {work}."


def is_off(group: dict[str, Any], check: Check, report: dict[str, Any]) -> bool:
    """Whether a group of threads does more or less in a simulation than was recorded."""
    recorded_ns: float = group["recorded_ns"]
    small_ns: float = SMALL_SHARE * report["recorded_ns"]
    error_ns = abs(_error(group, check)) * max(recorded_ns, 1.0)
    return error_ns > max(LIFT_WORK_ERROR_MAX * recorded_ns, small_ns)


def _error(group: dict[str, Any], check: Check) -> float:
    recorded_ns: float = group["recorded_ns"]
    return (check.group_ns.get(group["name"], 0) - recorded_ns) / max(recorded_ns, 1.0)


def _difference(group: dict[str, Any], check: Check) -> str:
    found_ns, recorded_ns = check.group_ns.get(group["name"], 0), group["recorded_ns"]
    share = f" ({_error(group, check):+.0%})" if recorded_ns else ""
    return (
        f"{group['name']} would do {found_ns / NS_PER_MS:.4g} ms in the simulation instead of"
        f" {recorded_ns / NS_PER_MS:.4g} ms{share}"
    )


def cores_of(recording: Recording) -> int:
    """Cores that the recorded program could run on; 2 if that is not known."""
    return min(len(json.loads(recording.info)["cores"]) or 2, _CORES_MAX)


def checked(toml: str, cores: int, policy: str = "linux", n: int | None = None) -> Check:
    """Simulates a lifted program on equal cores, with as many threads as recorded or another number.

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
    workload = catalog.workload("lifted" if n is None else f"lifted:n={n}")
    outcome = simulate(catalog.machine(_MACHINE), workload, policy)
    group_ns: dict[str, int] = defaultdict(int)
    for thread in outcome.threads:
        group_ns[thread.name.split(".")[0]] += thread.run_ns
    return Check(cores, outcome.makespan_ns, dict(group_ns))
