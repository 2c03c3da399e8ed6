"""Files of ``--report`` become part of the table of the model's errors: ``make -C lab errors REPORTS='a.json b.json'``.

Users attach such files to issues, so nothing in one is believed before it was looked at: it is a small file of JSON, of
the keys that `ampsched.proving.report` writes, each of its kind and within its range. The first thing that is not is
named, and no file is merged unless all can be. What cannot be judged is left out and told: changes that are not known
to 2 %, policies of users' own, and runs beside others that took much. A file counts once.
"""

import argparse
import hashlib
import json
import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ampsched import InputError
from ampsched.files import read_text
from ampsched.policy import policies
from ampsched.proving.programs import PROGRAMS
from ampsched.proving.report import FORMAT, OWN, VERSION
from ampsched.recording.check import LINUX
from ampsched.recording.model_error import KINDS, REPORTED_TABLE
from ampsched.recording.refusal import FOREIGN_MAX

PRODUCT = Path("python/ampsched/data") / REPORTED_TABLE
MOST_BYTES, MOST_PROOFS = 1 << 20, 1000
CPUS_MAX, CHANGE_MAX = 4096, 100.0
DIGITS = 16
_WORD = re.compile(r"[\w.+-]{1,40}", re.ASCII)
_POLICY = re.compile(r"[\w.+:=,-]{1,120}", re.ASCII)

Check = Callable[[str, Any], Any]


@dataclass(frozen=True)
class Row:
    """Errors of changes, ln(measured / predicted).

    Attributes:
        question: ``policy``, ``threads`` or ``cores``: what was changed; the first of them that was.
        kind: Of the programs, see `KINDS`.
        machine: Numbers and types of cores.
        date: When they were merged.
        number: How many there are.
        change: The errors, ascending.
    """

    question: str
    kind: str
    machine: str
    date: str
    number: int
    change: tuple[float, ...]


@dataclass(frozen=True)
class Table:
    """The table.

    Attributes:
        merged: Which files are in it, by what is in them.
        rows: What they say.
    """

    merged: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()

    def text(self) -> str:
        """The content of its file."""
        lines = [
            "# Written by make -C lab errors: errors of changes that users have measured, ln(measured / predicted).",
            f"merged = {json.dumps(self.merged)}",
            *([] if self.rows else ["reported = []"]),
        ]
        for row in self.rows:
            values = ", ".join(f"{each:.3f}" for each in row.change)
            lines += ["", "[[reported]]"]
            lines += [f"{key} = {json.dumps(value)}" for key, value in asdict(row).items() if key != "change"]
            lines.append(f"change = [{values}]")
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Report:
    """A file.

    Attributes:
        digest: Of what is in it.
        machine: Numbers and types of its computer's cores.
        proofs: As they stand in it.
        notes: What of it is left out, and why.
    """

    digest: str
    machine: str
    proofs: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...] = field(default=())


def read_table(path: Path) -> Table:
    """The table in a file."""
    value = tomllib.loads(path.read_text("utf-8"))
    rows = tuple(Row(**{**row, "change": tuple(row["change"])}) for row in value["reported"])
    return Table(tuple(value["merged"]), rows)


def read_report(path: Path) -> Report:
    """A file that users have written.

    Raises:
        InputError: It is none, or something in it cannot be.
    """
    text = read_text(path, MOST_BYTES)
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not the JSON of a report: {str(error)[:80]}") from None
    try:
        _top(value)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    machine = " + ".join(f"{each['cpus']} {each['core_type']}" for each in value["cores"])
    kept, notes = [], []
    for place, proof in enumerate(value["proofs"]):
        why = _why_left_out(proof)
        if why:
            notes.append(f"{path}: proofs[{place}] is left out: {why}")
        else:
            kept.append(proof)
    return Report(hashlib.sha256(text.encode()).hexdigest()[:DIGITS], machine, tuple(kept), tuple(notes))


def _why_left_out(proof: Mapping[str, Any]) -> str:
    measured = proof["measured"]
    if proof["setting"]["policy"] == OWN:
        return "its policy is the user's own"
    if not measured["is_known"]:
        return "the change is not known to 2 %"
    foreign = measured["foreign"] or 0.0
    return f"other programs took {foreign:.0%} of the CPUs" if foreign > FOREIGN_MAX else ""


def merge(table: Table, reports: Sequence[Report], date: str) -> Table:
    """The table with what reports say; those that are in it already add nothing."""
    merged, rows = list(table.merged), list(table.rows)
    for report in reports:
        if report.digest in merged:
            continue
        merged.append(report.digest)
        for question, kind in dict.fromkeys(map(_key, report.proofs)):
            errors = sorted(_error(each) for each in report.proofs if _key(each) == (question, kind))
            rows.append(Row(question, kind, report.machine, date, len(errors), tuple(errors)))
    return Table(tuple(merged), tuple(rows))


def _key(proof: Mapping[str, Any]) -> tuple[str, str]:
    setting = proof["setting"]
    is_policy = setting["policy"] != LINUX
    question = "policy" if is_policy else "threads" if setting["threads"] else "cores"
    return question, proof["kind"]


def _error(proof: Mapping[str, Any]) -> float:
    return round(math.log1p(proof["measured"]["change"]["mean"]) - math.log1p(proof["predicted"]), 3)


# What may stand in a file: each check raises ValueError with the key.


def _top(value: Any) -> None:  # noqa: ANN401
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise ValueError(f'is no report: "format" is not "{FORMAT}"')
    if value.get("version") != VERSION or isinstance(value["version"], bool):
        raise ValueError(f"version: is not {VERSION}, which is the one that is read here")
    _object(
        "",
        value,
        {
            "format": _text(_WORD),
            "version": _whole(VERSION, VERSION),
            "ampsched": _text(_WORD),
            "kernel": _text(re.compile(r"[\d.]{0,40}", re.ASCII)),
            "architecture": _text(_WORD),
            "cores": _list(1, CPUS_MAX, _core),
            "proofs": _list(0, MOST_PROOFS, _proof),
        },
    )


def _core(key: str, value: Any) -> None:  # noqa: ANN401
    _object(key, value, {"core_type": _text(_WORD), "is_known": _bool, "cpus": _whole(1, CPUS_MAX)})


def _proof(key: str, value: Any) -> None:  # noqa: ANN401
    checks: dict[str, Check] = {
        "kind": _one_of(KINDS),
        "program": _or_none(_one_of(PROGRAMS)),
        "setting": _setting,
        "predicted": _change,
        "band": _band,
        "measured": _measured,
    }
    _object(key, value, checks)


def _setting(key: str, value: Any) -> None:  # noqa: ANN401
    count = _or_none(_whole(1, CPUS_MAX))
    _object(key, value, {"policy": _policy, "threads": count, "cpus": count})


def _measured(key: str, value: Any) -> None:  # noqa: ANN401
    positive = _number(0, 1e9, without_low=True)
    checks: dict[str, Check] = {
        "change": _estimate,
        "energy": _or_none(_estimate),
        "today_s": positive,
        "advised_s": positive,
        "pairs": _whole(2, 10**6),
        "took_s": positive,
        "is_known": _bool,
        "foreign": _or_none(_number(0, 1)),
        "seed": _whole(0, 2**64 - 1),
    }
    _object(key, value, checks)


def _estimate(key: str, value: Any) -> None:  # noqa: ANN401
    number = _number(-CHANGE_MAX, CHANGE_MAX)
    _object(key, value, {"mean": _change, "low": number, "high": number, "n": _whole(2, 10**6)})
    if not value["low"] <= value["mean"] <= value["high"]:
        raise ValueError(f"{key}: mean is not within low and high")


def _band(key: str, value: Any) -> None:  # noqa: ANN401
    _list(2, 2, _change)(key, value)
    if value[0] > value[1]:
        raise ValueError(f"{key}: begins above its end")


def _policy(key: str, value: Any) -> None:  # noqa: ANN401
    _text(_POLICY)(key, value)
    if value != OWN and value.partition(":")[0] not in {each.name for each in policies()}:
        raise ValueError(f'{key}: is neither "{OWN}" nor a shipped policy')


def _change(key: str, value: Any) -> None:  # noqa: ANN401
    _number(-1, CHANGE_MAX, without_low=True)(key, value)


def _object(key: str, value: Any, checks: Mapping[str, Check]) -> None:  # noqa: ANN401
    if not isinstance(value, dict):
        raise ValueError(f"{key}: is no object")
    dot = f"{key}." if key else ""
    for name in value:
        if name not in checks:
            raise ValueError(f"{dot}{name[:40]!a}: is no key of a report")
    for name, check in checks.items():
        if name not in value:
            raise ValueError(f"{dot}{name}: is missing")
        check(f"{dot}{name}", value[name])


def _list(least: int, most: int, check: Check) -> Check:
    def checked(key: str, value: Any) -> None:  # noqa: ANN401
        if not isinstance(value, list) or not least <= len(value) <= most:
            raise ValueError(f"{key}: is no list of {least} to {most} items")
        for place, each in enumerate(value):
            check(f"{key}[{place}]", each)

    return checked


def _or_none(check: Check) -> Check:
    return lambda key, value: None if value is None else check(key, value)


def _text(pattern: re.Pattern[str]) -> Check:
    def checked(key: str, value: Any) -> None:  # noqa: ANN401
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError(f"{key}: is no such text as reports have ({pattern.pattern})")

    return checked


def _one_of(names: Mapping[str, object]) -> Check:
    def checked(key: str, value: Any) -> None:  # noqa: ANN401
        if not isinstance(value, str) or value not in names:
            raise ValueError(f"{key}: is none of {', '.join(names)}")

    return checked


def _bool(key: str, value: Any) -> None:  # noqa: ANN401
    if not isinstance(value, bool):
        raise ValueError(f"{key}: is neither true nor false")


def _whole(low: int, high: int) -> Check:
    def checked(key: str, value: Any) -> None:  # noqa: ANN401
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"{key}: is no whole number from {low} to {high}")

    return checked


def _number(low: float, high: float, *, without_low: bool = False) -> Check:
    def checked(key: str, value: Any) -> None:  # noqa: ANN401
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not low <= value <= high or (without_low and value == low):
            above = "above" if without_low else "from"
            raise ValueError(f"{key}: is no number {above} {low:g} to {high:g}")

    return checked


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{key[:40]!a} stands twice")
        found[key] = value
    return found


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")


def main() -> None:
    """Merges files and says what is left out."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("reports", type=Path, nargs="+", help="files that --report has written")
    options.add_argument("--table", type=Path, default=PRODUCT, help="the table (default: %(default)s)")
    options.add_argument(
        "--date", default=f"{datetime.now(UTC):%Y-%m-%d}", help="of what is new (default: today)"
    )
    arguments = options.parse_args()
    try:
        found = [read_report(path) for path in arguments.reports]
    except InputError as error:
        raise SystemExit(f"error: {error}") from None
    before = read_table(arguments.table)
    after = merge(before, found, arguments.date)
    for path, report in zip(arguments.reports, found, strict=True):
        known = report.digest in before.merged
        print(f"{path}: {'is in the table already' if known else f'{len(report.proofs)} errors'}")
        print(*report.notes, sep="\n", end="\n" if report.notes else "")
    arguments.table.write_text(after.text(), "utf-8")


if __name__ == "__main__":
    main()
