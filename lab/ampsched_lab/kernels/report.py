"""The page that says which policies load into which kernels, from results that are kept beside it."""

import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from ampsched import markdown
from ampsched_lab.kernels.matrix import COLUMNS, MACHINE, Cell, Column, Result
from ampsched_lab.shared import plots
from ampsched_lab.shared.summary import opening

DATA, PAGE, FIGURE = "measured.json", "report.md", "kernels.svg"
NOT_TRIED = ""

FATES = {"loaded": plots.BLUE, "not loaded, for a reason": "#DDDDDD", "fails": plots.RED}
"""What may become of a policy in a kernel, and its colour."""

HEAD = f"""Every policy was loaded into every kernel below, scheduled a short load there, and was taken out again: threads that
compute, sleep, wake each other and start programs. `make -C lab campaign-kernels` does it, checks it and writes this page.
One boot of an [exact virtual machine](../../howto/run-on-cores-you-do-not-have.md) ({MACHINE}) tries all policies of a
kernel, one after the other.

A number says how long loading took in s of the guest's time, from the start of `ampsched-live-scx` until the kernel
had the scheduler; *no*: it is not loaded, with the reason below. It does so on a big core, which executes 1000
million integer instructions per second there, so 1 s is some 1000 million instructions; real cores are several times
as fast. Nearly all of them are the kernel's, which verifies the programs. A57 is a Cortex-A57, of Armv8.0, without
the atomic instructions of Armv8.1 (LSE), as the cores of HiKey960 and Juno are."""


@dataclass(frozen=True)
class Row:
    """A cell as it is kept.

    Attributes:
        name: Of the policy.
        load_s: Time to load it; none if it did not get into the kernel.
        reason: Why it was not loaded.
        faults: What should not have happened.
    """

    name: str
    load_s: float | None
    reason: str | None
    faults: tuple[str, ...]

    @classmethod
    def of(cls, cell: Cell, *, is_ours: bool) -> "Row":
        """Of a cell."""
        load_s = cell.load_s()
        rounded = None if load_s is None else round(load_s, 3)
        others = None if is_ours or load_s is not None else f"its last words are: {cell.last_words()}"
        return cls(cell.name, rounded, cell.reason() or others, tuple(cell.faults(is_ours=is_ours)))

    def fate(self) -> str:
        """One of `FATES`."""
        loaded, refused, fails = FATES
        return fails if self.faults else refused if self.load_s is None else loaded

    def word(self) -> str:
        """What the table shows."""
        if self.faults:
            return "**fails**"
        return "no" if self.load_s is None else f"{self.load_s:.2f}"


@dataclass(frozen=True)
class Measured:
    """A kernel's part of the page.

    Attributes:
        column: The kernel.
        release: What it calls itself.
        policies: Ours.
        peers: Schedulers of others.
    """

    column: Column
    release: str
    policies: tuple[Row, ...]
    peers: tuple[Row, ...]

    @classmethod
    def of(cls, result: Result) -> "Measured":
        """Of what was found in a boot."""
        ours = tuple(Row.of(cell, is_ours=True) for cell in result.policies)
        return cls(
            result.column, result.release, ours, tuple(Row.of(cell, is_ours=False) for cell in result.peers)
        )


def read(folder: Path) -> list[Measured]:
    """What was measured before, in the order of the columns; nothing without such a file."""
    path = folder / DATA
    if not path.exists():
        return []
    return [_measured(entry) for entry in json.loads(path.read_text("utf-8"))]


def _measured(entry: dict[str, object]) -> Measured:
    rows = {}
    for part in ("policies", "peers"):
        values = entry[part]
        assert isinstance(values, list)
        rows[part] = tuple(Row(**{**value, "faults": tuple(value["faults"])}) for value in values)
    column = entry["column"]
    assert isinstance(column, dict)
    return Measured(Column(**column), str(entry["release"]), rows["policies"], rows["peers"])


def add(folder: Path, new: Measured) -> None:
    """Puts a kernel's part into the file and the page, in the place of an older one; one process at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = {each.column: each for each in read(folder)}
        found[new.column] = new
        ordered = [found[column] for column in COLUMNS if column in found]
        text = json.dumps([_plain(each) for each in ordered], indent=1)
        (folder / DATA).write_text(text + "\n", "utf-8")
        write(folder, ordered)
    finally:
        os.close(lock)


def _plain(each: Measured) -> dict[str, object]:
    return {
        "column": vars(each.column),
        "release": each.release,
        "policies": [vars(row) for row in each.policies],
        "peers": [vars(row) for row in each.peers],
    }


def write(folder: Path, measured: Sequence[Measured]) -> None:
    """Writes the page and its figure."""
    (folder / PAGE).write_text(page(measured), "utf-8")
    fates = {each.column.title(): Counter(row.fate() for row in each.policies) for each in measured}
    least, most = (
        min(counts := [each["loaded"] for each in fates.values()], default=0),
        max(counts, default=0),
    )
    title = f"Each kernel loads {least} to {most} of our policies"
    plots.stacked(folder / FIGURE, title, fates, FATES, "policies")


def answer(measured: Sequence[Measured]) -> str:
    """How many policies load where, how long that takes, and what failed."""
    rows = [row for each in measured for row in each.policies]
    names = {row.name for row in rows}
    refused = Counter(row.name for row in rows if row.load_s is None)
    never = {name for name in names if refused[name] == len(measured)}
    loads_s = [row.load_s for row in rows if row.load_s is not None]
    failed = sum(bool(row.faults) for row in rows)
    return opening(
        [
            f"**{len(names) - len(refused)} of {len(names)} policies load into all {len(measured)} kernels, "
            f"{len(refused) - len(never)} into some, and {len(never)} into none; the table says why.**",
            f"On a core of 1000 MIPS loading takes {median(loads_s):.1f} s (median) and at most {max(loads_s):.1f} s."
            if loads_s
            else "None was loaded.",
            f"Of {len(rows)} trials {failed} failed in the kernel."
            if failed
            else f"Of {len(rows)} trials none failed.",
        ],
        FIGURE,
        "How many policies each kernel loads, refuses or fails with",
    )


def page(measured: Sequence[Measured]) -> str:
    """The page in Markdown."""
    peers = [each.peers for each in measured]
    faults = list(_faults(measured))
    return markdown.page(
        "# Kernels",
        answer(measured),
        "## How it is done",
        HEAD,
        "## Policies",
        _table("policy", measured, [each.policies for each in measured]),
        *(("## Schedulers of others", _table("scheduler", measured, peers)) if any(peers) else ()),
        "## Why some are not loaded",
        "\n".join(_reasons(measured)),
        "## What went wrong",
        "\n".join(faults) or "Nothing: no policy failed, and no kernel complained.",
        "## Kernels",
        "\n".join(f"* {each.column.title()}: {each.release}" for each in measured),
    )


def _table(what: str, measured: Sequence[Measured], columns: Sequence[tuple[Row, ...]]) -> str:
    words = [{row.name: row.word() for row in column} for column in columns]
    names = dict.fromkeys(name for column in words for name in column)
    rows = [[name, *(column.get(name, NOT_TRIED) for column in words)] for name in names]
    return markdown.table([what, *(each.column.title() for each in measured)], rows, markdown.ALL_BUT_FIRST)


def _reasons(measured: Sequence[Measured]) -> Iterator[str]:
    """Each reason with the kernels in which it was given, unless these are all."""
    found: dict[tuple[str, str], list[str]] = {}
    for each in measured:
        for row in (*each.policies, *each.peers):
            if row.reason:
                found.setdefault((row.name, row.reason), []).append(each.column.title())
    for (name, reason), where in found.items():
        only = "" if len(where) == len(measured) else f" (in {', '.join(where)})"
        yield f"* {name}: {reason}{only}"


def _faults(measured: Sequence[Measured]) -> Iterator[str]:
    for each in measured:
        for row in (*each.policies, *each.peers):
            for fault in row.faults:
                yield f"* {row.name} in {each.column.title()}: {fault}"
