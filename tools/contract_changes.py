"""Says which golden runs the one contract changed, by how much and why: ``python tools/contract_changes.py BASE``.

BASE is the commit before, such as 9e460e7. Three of the leaks that the contract closed can be opened again by an edit
of the present engine. Each is, in a copy of the checkout, and golden runs are repeated: a run that moves is one that
the leak concerns. Writes docs/reports/contract.md. Takes some minutes.
"""

import argparse
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ampsched.experiments import plots
from ampsched.experiments.opening import opening
from ampsched.markdown import table, wrapped

ROOT = Path(__file__).resolve().parents[1]
RUNS = "crates/sim/tests/golden/runs.txt"
PAGE = ROOT / "docs/reports/contract.md"

PICTURE = PAGE.with_suffix(".svg")
SMALL = 1.0
"""Changes of so many per cent are counted apart."""

Runs = Mapping[tuple[str, str, str], str]
"""The rest of each golden row, by machine, workload and policy."""


@dataclass(frozen=True)
class Leak:
    """What differed before, and the edits that bring it back: file, what stands there, what stood there."""

    word: str
    meaning: str
    edits: tuple[tuple[str, str, str], ...]


LEAKS = (
    Leak(
        "order",
        "simultaneous events happened in the order in which they were scheduled, whatever they were; now they are ordered"
        " by class first, as the architecture page says",
        (
            (
                "crates/sim/src/engine/events.rs",
                "u64::from(event.class()) << SERIAL_BITS | serial",
                "u64::from(event.class()) * 0 + serial",
            ),
        ),
    ),
    Leak(
        "plans",
        "any plan woke all idle cores at once; now they are woken if a change opens something to them, and after the"
        " wake-up latency",
        (
            (
                "crates/sim/src/engine/slow_plane.rs",
                "if opens {\n            self.offer_to_idle_cores();",
                "let _ = opens;\n        {\n            self.kick_idle_cores(self.events.now_ns());",
            ),
        ),
    ),
    Leak(
        "charge",
        "virtual times were compared as they were charged last; now they are charged up to now before",
        (
            (
                "crates/sim/src/engine/dispatch.rs",
                "if self.sched.rules().order == Order::Fifo {\n            return self.account(to);",
                "if thread.index() < usize::MAX {\n            return self.account(to);",
            ),
            (
                "crates/sim/src/engine/dispatch.rs",
                "if self.sched.rules().order == Order::Deadline && self.sched.queue_len(core) == 0 {",
                "if self.sched.rules().order == Order::Deadline && core.index() == usize::MAX {",
            ),
        ),
    ),
)

CHANGE, REASON = 5, 6
"""Columns of the table."""
OTHER = "accounting"
"""Reason of a run that no leak moves."""


def git(*arguments: str) -> str:
    """What git answers in the checkout."""
    return subprocess.run(
        ["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True
    ).stdout


def read(text: str) -> Runs:
    """The rows of a golden file."""
    rows = (line.split(" ", 3) for line in text.splitlines()[1:])
    return {(machine, workload, policy): rest for machine, workload, policy, rest in rows}


def with_leak(leak: Leak, target: Path) -> Runs:
    """Golden runs of the last commit with a leak opened again."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        git("worktree", "add", "--quiet", "--detach", str(copy))
        try:
            for file, now, then in leak.edits:
                text = (copy / file).read_text()
                if now not in text:
                    raise SystemExit(
                        f"{file}: {now!r} is not there: the engine has changed since this was written"
                    )
                (copy / file).write_text(text.replace(now, then))
            command = ["cargo", "test", "--locked", "--quiet", "-p", "ampsched-sim", "--test", "golden"]
            environment = {**os.environ, "BLESS": "1", "CARGO_TARGET_DIR": str(target)}
            subprocess.run(command, cwd=copy, env=environment, check=True, stdout=subprocess.DEVNULL)
            return read((copy / RUNS).read_text())
        finally:
            git("worktree", "remove", "--force", str(copy))


def reasons(run: tuple[str, str, str], now: Runs, leaks: Mapping[str, Runs]) -> str:
    """Which leaks move a run; the policy's own change, if there is one, is named by hand."""
    found = [word for word, runs in leaks.items() if runs[run] != now[run]]
    if run[2] == "smart-balance":
        found.append("sums")
    return ", ".join(found) or OTHER


def page(base: str, then: Runs, now: Runs, leaks: Mapping[str, Runs]) -> str:
    """The report."""
    changed = [run for run in now if then.get(run) != now[run]]
    rows = []
    for run in changed:
        before_ns, after_ns = (int(runs[run].split()[0]) for runs in (then, now))
        change = f"{100 * (after_ns / before_ns - 1):+.2f}"
        rows.append(
            (*run, f"{before_ns / 1e6:.3f}", f"{after_ns / 1e6:.3f}", change, reasons(run, now, leaks))
        )
    counts = {leak.word: sum(leaks[leak.word][run] != now[run] for run in now) for leak in LEAKS}
    listed = "\n".join(f"* *{leak.word}*: {leak.meaning} ({counts[leak.word]} runs)." for leak in LEAKS)
    head = ("machine", "workload", "policy", "before ms", "now ms", "change %", "reason")
    text = f"""# What the one contract changed

{answer(rows, len(now), base)}

A reason is measured: the leak is opened again in the present engine, and the run moves.

{listed}
* *{OTHER}*: none of them moves the run. Work, virtual time and power are accounted from an anchor instead of in rounded
  pieces, and factors that needs do not name are missing.
* *sums*: SmartBalance adds up cores, not threads, and breaks ties between equally good moves differently.

A run can be moved by a leak and still end as before in some columns; before and now are makespans. Written by
`python tools/contract_changes.py {base}`.

"""
    return wrapped(text + table(head, rows, slice(3, 6)) + "\n")


def answer(rows: Sequence[Sequence[str]], count: int, base: str) -> str:
    """How many of all golden runs changed, by how much, and how many of them for no reason but accounting.

    Args:
        rows: Of the table.
        count: All golden runs.
        base: The commit before.
    """
    moved = [abs(float(row[CHANGE])) for row in rows]
    return opening(
        [
            f"**Of {count} golden runs (one seed, every policy on five mixes) {len(rows)} differ from commit {base}.**",
            f"{sum(change <= SMALL for change in moved)} of these changed their makespan by at most {SMALL:g} %, and the "
            f"greatest change is {max(moved, default=0.0):.1f} %.",
            f"{sum(row[REASON] == OTHER for row in rows)} are moved by accounting alone.",
        ],
        PICTURE.name,
        "By how much makespans changed, for each reason",
    )


def draw(rows: Sequence[Sequence[str]], path: Path) -> None:
    """A row of marks for each reason; a run with two reasons is in both rows."""
    changes: dict[str, list[float]] = {}
    for row in rows:
        for reason in row[REASON].split(", "):
            changes.setdefault(reason, []).append(float(row[CHANGE]))
    plots.strips(path, "By how much makespans changed", changes, "change of the makespan, %", (0,))


def rows_of(text: str) -> list[list[str]]:
    """The rows of the page's table."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def main() -> None:
    """Writes the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("base", help="the commit before")
    base = parser.parse_args().base
    then, now = read(git("show", f"{base}:{RUNS}")), read((ROOT / RUNS).read_text())
    with tempfile.TemporaryDirectory() as folder:
        target = Path(os.environ.get("CARGO_TARGET_DIR", folder))
        leaks = {leak.word: with_leak(leak, target) for leak in LEAKS}
    text = page(base, then, now, leaks)
    PAGE.write_text(text)
    draw(rows_of(text), PICTURE)


if __name__ == "__main__":
    main()
