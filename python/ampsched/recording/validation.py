"""A lifted program's number of threads, checked by a second recording with another number."""

import json
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, get_args

from ampsched._core import LIFT_WORK_ERROR_MAX, TYPICAL_PROFILE, InputError, Recording
from ampsched.catalog import Catalog
from ampsched.files import shown
from ampsched.recording.lift import SMALL_SHARE, Check, Lifted, Scaling, checked, cores_of, lift
from ampsched.units import NS_PER_MS

TIME_ERROR_MAX = 0.15
"""Greatest error of the time that a lifted program takes with another number of threads, as a share."""
_OTHERS = "the other threads"


@dataclass(frozen=True)
class Recorded:
    """A recording and its file."""

    path: Path
    recording: Recording

    @property
    def info(self) -> dict[str, Any]:
        """What is known of it as a whole."""
        info: dict[str, Any] = json.loads(self.recording.info)
        return info


@dataclass(frozen=True)
class _Value:
    """What a program made of one recording does, and what another recording says. In ns."""

    what: str
    found_ns: float
    recorded_ns: float
    error_max: float
    small_ns: float = 0.0

    @property
    def error(self) -> float:
        """0.05: 5 % too much."""
        return self.found_ns / self.recorded_ns - 1 if self.recorded_ns else float(self.found_ns > 0)

    @property
    def excess(self) -> float:
        """The error in terms of what is allowed: above 1 it is too much."""
        is_small = abs(self.found_ns - self.recorded_ns) <= self.small_ns
        return 0.0 if is_small else abs(self.error) / self.error_max

    def __str__(self) -> str:
        numbers = f"{self.found_ns / NS_PER_MS:.4g} ms instead of {self.recorded_ns / NS_PER_MS:.4g} ms"
        return f"{self.what} {numbers} ({_percent(self.error)})"


@dataclass(frozen=True)
class _Comparison:
    """A program with another number of threads beside a recording with that number."""

    lifted: Lifted
    values: list[_Value]
    """Work, time, and the work of each group of threads."""

    @property
    def worst(self) -> _Value:
        """What is wrong most."""
        return max(self.values, key=lambda value: value.excess)


def validated(
    recorded: Recorded,
    other: Recorded,
    *,
    name: str = "",
    like: str = TYPICAL_PROFILE,
    speedup: float | None = None,
    scaling: Scaling | None = None,
) -> Lifted:
    """Makes a program of a recording whose number of threads another recording confirms.

    With as many threads as the other recording it must do that one's work, group by group and in all, and take its
    time; else its number of threads stays what it was, and the report says why.

    Args:
        recorded: The recording that the program is made of.
        other: One of the same program with another number of threads.
        name: As of `lift`.
        like: As of `lift`.
        speedup: As of `lift`.
        scaling: What other numbers of threads do; by default what the other recording fits best.

    Raises:
        InputError: It is another program, or the same number of threads, or more than that is different.
    """
    _check_programs(recorded, other)
    options: dict[str, Any] = {"name": name, "like": like, "speedup": speedup}
    scalings: tuple[Scaling, ...] = get_args(Scaling) if scaling is None else (scaling,)
    found = lift(recorded.recording, scaling=scalings[0], **options)
    twin = lift(other.recording, **options)
    file = shown(other.path.name)
    if twin.threads == found.threads and (found.threads or _count(recorded) == _count(other)):
        count = found.threads or _count(recorded)
        raise InputError(
            f"{shown(other.path)}: recorded with {count} threads, as {shown(recorded.path)}:"
            " record the program with another number of threads"
        )
    if found.threads is None:
        found.report["notes"].append(f"{file} checks nothing: the program has no number of threads.")
        return found
    if twin.threads is None:
        return _fixed(
            recorded, options, f"n stays {found.threads}: no number of threads was found in {file}."
        )
    others = [lift(recorded.recording, scaling=each, **options) for each in scalings[1:]]
    candidates = [each for each in (found, *others) if each.threads == found.threads]
    compared = [_comparison(each, twin, twin.threads, other) for each in candidates]
    best = min(compared, key=lambda each: each.worst.excess)
    work, time = best.values[:2]
    head = f"checked against {file} ({twin.threads} threads): work {_percent(work.error)}, time {_percent(time.error)}"
    against = {
        "recording": file,
        "n": twin.threads,
        "work_error": work.error,
        "time_error": time.error,
        "fits": best.worst.excess <= 1,
    }
    if best.worst.excess > 1:
        limits = f"{LIFT_WORK_ERROR_MAX:.0%} of work and {TIME_ERROR_MAX:.0%} of time are allowed"
        fixed = _fixed(recorded, options, f"n stays {found.threads}: {head}; {best.worst}; {limits}.")
        fixed.report["checked_against"] = against
        return fixed
    best.lifted.report["notes"].append(f"{head}.")
    best.lifted.report["checked_against"] = against
    return best.lifted


def _percent(share: float) -> str:
    return f"{round(share, 2) + 0.0:+.0%}"


def _fixed(recorded: Recorded, options: dict[str, Any], why: str) -> Lifted:
    found = lift(recorded.recording, is_fixed=True, **options)
    found.report["notes"].append(why)
    return found


def _count(recorded: Recorded) -> int:
    return len(recorded.recording.threads)


def _check_programs(recorded: Recorded, other: Recorded) -> None:
    one, two = recorded.info, other.info
    names = [Path(info["command"][0]).name if info["command"] else info["name"] for info in (one, two)]
    if names[0] != names[1]:
        raise InputError(
            f"{shown(other.path)}: a recording of {shown(names[1])}, not of {shown(names[0])} as"
            f" {shown(recorded.path)}: record the same program with another number of threads"
        )
    differences = _differences(one["command"][1:], two["command"][1:])
    if len(differences) > 1:
        raise InputError(
            f"{shown(other.path)}: its command differs from that of {shown(recorded.path)} in"
            f" {' and '.join(differences)}: only the number of threads may differ"
        )


def _differences(one: list[str], two: list[str]) -> list[str]:
    """Where two command lines differ; an option that only one of them has is one place, with its value."""
    found = []
    for kind, begin, end, other_begin, other_end in SequenceMatcher(None, one, two, False).get_opcodes():
        here, there = one[begin:end], two[other_begin:other_end]
        if kind == "replace" and len(here) == len(there):
            found += [f"{shown(old)} / {shown(new)}" for old, new in zip(here, there, strict=True)]
        elif kind != "equal":
            words = [shown(word) for word in here + there]
            is_option = len(words) == 2 and words[0].startswith("-")
            found += [" ".join(words)] if is_option else words
    return found


def _comparison(found: Lifted, twin: Lifted, n: int, other: Recorded) -> _Comparison:
    check = checked(found.toml, cores_of(other.recording), n=n)
    recorded_ns = {group["name"]: group["recorded_ns"] for group in twin.report["groups"]}
    all_ns = sum(recorded_ns.values())
    groups = _by_group(check, recorded_ns)
    values = [
        _Value("all threads would do", sum(check.group_ns.values()), all_ns, LIFT_WORK_ERROR_MAX),
        _Value("it would take", check.makespan_ns, _time_ns(other), TIME_ERROR_MAX),
        *(
            _Value(f"{name} would do", found_ns, own_ns, LIFT_WORK_ERROR_MAX, SMALL_SHARE * all_ns)
            for name, (found_ns, own_ns) in groups.items()
        ),
    ]
    return _Comparison(found, values)


def _by_group(check: Check, recorded_ns: dict[str, float]) -> dict[str, tuple[float, float]]:
    """The works of groups of threads; those that only one side knows by that name are taken together."""
    names = check.group_ns.keys() & recorded_ns.keys()
    found = {name: (float(check.group_ns[name]), recorded_ns[name]) for name in sorted(names)}
    found[_OTHERS] = (
        float(sum(work_ns for name, work_ns in check.group_ns.items() if name not in names)),
        sum(work_ns for name, work_ns in recorded_ns.items() if name not in names),
    )
    return found


def _time_ns(other: Recorded) -> float:
    """How long it takes by its replay, which no other program disturbs; else as it was recorded."""
    from ampsched.recording.check import reproduce

    try:
        return reproduce(other.recording, other.path, Catalog.shipped()).replayed_s * 1e9
    except InputError:
        return float(other.info["wall_ns"])
