"""The page about the attack. Each part leaves a record, so that parts may be run one by one."""

import json
import platform
import subprocess
import sys
import textwrap
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from workers import ROOT, Done, Failure

sys.path.insert(0, str(ROOT / "lab"))

from ampsched_lab.shared import plots
from ampsched_lab.shared.summary import counted, opening

ATTACKED = ["crates", "python/ampsched/data", "Cargo.lock"]
"""Where what is attacked is."""

WIDTH = 120
"""Columns of the page; tables may be wider."""

FIGURE = "attack.svg"

SHOWN_MAX = 50
"""Failures of a part that the page tells."""


@dataclass(frozen=True)
class Record:
    """What a part has come to, when and of what."""

    part: str
    title: str
    what: str
    asked: int
    done: int
    skipped: int
    seed: int
    seconds: int
    commit: str
    changed: bool
    """Whether something attacked had changes that are not committed."""
    compiler: str
    system: str
    date: str
    notes: list[str]
    failures: list[Failure]


def told(*command: str) -> str:
    """What a command prints; nothing if it fails."""
    ran = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    return ran.stdout.strip()


@dataclass(frozen=True)
class State:
    """What is attacked, as it is before a part begins: a long run outlives commits."""

    commit: str
    changed: bool


def state() -> State:
    """The present one."""
    changed = bool(told("git", "status", "--porcelain", "-uno", "--", *ATTACKED))
    return State(told("git", "rev-parse", "--short", "HEAD"), changed)


def record(
    part: str, title: str, what: str, asked: int, seed: int, state: State, seconds: float, done: Done
) -> Record:
    """A record of what was done just now of a state."""
    return Record(
        part=part,
        title=title,
        what=what,
        asked=asked,
        done=done.count,
        skipped=done.skipped,
        seed=seed,
        seconds=round(seconds),
        commit=state.commit,
        changed=state.changed,
        compiler=told("rustc", "--version").split(" (")[0],
        system=f"Linux {platform.release().partition('-')[0]}, {platform.machine()}",
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        notes=done.notes,
        failures=done.failures,
    )


def keep(folder: Path, new: Record) -> None:
    """Keeps a record in place of an earlier one of the part."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{new.part}.json").write_text(json.dumps(asdict(new), indent=2) + "\n")


def render(folder: Path, order: list[str]) -> None:
    """Writes the page about the records in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [file for part in order if (file := folder / f"{part}.json").exists()]
    records = [read(file) for file in files]
    draw(records, folder / FIGURE)
    (folder / "report.md").write_text("\n".join(map(wrapped, page(records))) + "\n")


def wrapped(line: str) -> str:
    """Prose in lines that can be read; a list's item stays one."""
    if line.startswith("|"):
        return line
    indent = "  " if line.startswith("* ") else ""
    return textwrap.fill(
        line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def read(file: Path) -> Record:
    """A record."""
    fields = json.loads(file.read_text())
    return Record(**{**fields, "failures": [Failure(**failure) for failure in fields["failures"]]})


def draw(records: list[Record], path: Path) -> None:
    """How much each part has done, and how much of it failed."""
    done = {record.title: float(record.done) for record in records}
    failed = {record.title: float(len(record.failures)) for record in records if record.failures}
    series = {"done": done} | ({"failed": failed} if failed else {})
    failed = sum(len(record.failures) for record in records)
    title = f"What was attacked how often: {failed or 'nothing'} failed"
    plots.dots(path, title, series, "times", scale="log")


def answer(records: list[Record]) -> str:
    """What was done, what failed, and of what."""
    failed = sum(len(record.failures) for record in records)
    all_done = ", ".join(f"{record.done:,} {record.title[0].lower()}{record.title[1:]}" for record in records)
    commits = {record.commit for record in records}
    dates = sorted(record.date for record in records)
    return opening(
        [
            f"**{'Nothing' if not failed else counted(failed, 'time something', 'times something')} failed in {all_done}.**",
            f"The parts took {sum(record.seconds for record in records) / 60:.0f} minutes between {dates[0]} and {dates[-1]}.",
            f"They attacked the sources of {counted(len(commits), 'commit')}.",
        ],
        FIGURE,
        "How often each part of the attack was done, and how often it failed",
    )


def page(records: list[Record]) -> list[str]:
    """The lines of the page."""
    lines = [
        "# The attack",
        "",
        *(answer(records).split("\n") if records else []),
        "",
        "Written by `make attack`. Bugs that it found on the way, and their fixes, [have a page](found.md).",
        "",
        "| part | done | seed | minutes | failed | commit | with |",
        "| --- | ---: | ---: | ---: | ---: | --- | --- |",
    ]
    lines += [row(record) for record in records]
    lines += ["", *sameness(records)]
    for record in records:
        lines += section(record)
    return lines


def row(record: Record) -> str:
    """A part in the table."""
    done = f"{record.done:,}" if record.done >= record.asked else f"{record.done:,} of {record.asked:,}"
    commit = f"{record.commit}{', changed' if record.changed else ''}"
    return (
        f"| {record.title} | {done} | {record.seed} | {record.seconds / 60:.1f} | {len(record.failures)} "
        f"| {commit} | {record.compiler}; {record.system}; {record.date} |"
    )


def sameness(records: list[Record]) -> list[str]:
    """Whether all parts have attacked the same, and what has changed since."""
    if not records:
        return ["No part has been run."]
    lines = []
    for record in records:
        if record.changed:
            lines.append(f"* {record.title}: attacked with changes that were not committed.")
        if not told("git", "rev-parse", "--verify", "--quiet", f"{record.commit}^{{commit}}"):
            lines.append(
                f"* {record.title}: what has changed since cannot be said here, where there is no such commit."
            )
            continue
        files = told("git", "diff", "--name-only", record.commit, "HEAD", "--", *ATTACKED).splitlines()
        if files:
            places = Counter("/".join(file.split("/")[:3]) for file in files)
            named = ", ".join(f"`{place}` ({count})" for place, count in sorted(places.items()))
            lines.append(f"* {record.title}: since then {len(files)} files have changed: {named}.")
    if lines:
        return ["What is attacked was not the same for all parts, or has changed since:", "", *lines]
    return ["All parts attacked the same sources, and these are the present ones."]


def section(record: Record) -> list[str]:
    """What is told of a part."""
    lines = ["", f"## {record.title}", "", record.what, ""]
    lines += [f"* {note}" for note in record.notes]
    lines += [f"* **failed**: {f.what}; `{f.repeat}`" for f in record.failures[:SHOWN_MAX]]
    more = len(record.failures) - SHOWN_MAX
    if more > 0:
        lines.append(f"* **{more:,} more failed**")
    if not record.failures:
        lines.append("* nothing failed")
    return lines
