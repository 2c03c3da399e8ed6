"""All that the report is made of: how it is measured, kept and read again.

A version that cannot be run any more is kept as it was measured: its rows, in a folder of its own, beside which others
count as they are now.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ampsched_lab.best import choice, losses, papers, rows, runs
from ampsched_lab.best.rows import Changes, Row, changes
from ampsched_lab.optimum import report as optimum

CHOICE, RUNS, PAPERS, ORDERS = "choice.json", "runs.parquet", "papers.json", "losses.json"
FIRST = "first"
"""Folder of the first version."""
LOSING = ("colab", "fresh")
"""Sections whose losses are looked at."""


@dataclass(frozen=True, slots=True)
class Measured:
    """All that the report is made of."""

    choice: dict[str, Changes]
    rows: list[Row]
    papers: papers.Measured
    orders: list[losses.Order]
    optimum: list[optimum.Row]

    def section(self, name: str) -> dict[str, Changes]:
        """Changes of a section's policies against the baseline."""
        return changes(self.of(name))

    def of(self, name: str) -> list[Row]:
        """A section's rows."""
        return [row for row in self.rows if row.section == name]


def measure(jobs: int = 0, progress: Callable[[str], object] = print) -> Measured:
    """Runs everything; about half an hour on two processors."""
    progress("training mixes")
    chosen = choice.measure(jobs)
    measured = [row for section in runs.SECTIONS for row in runs.run(section, jobs, progress)]
    progress("the mixes that it loses")
    orders = losses.orders([row for row in measured if row.section in LOSING], jobs)
    return Measured(chosen, measured, papers.measure(jobs, progress), orders, [])


def measure_version(folder: Path, jobs: int = 0, progress: Callable[[str], object] = print) -> None:
    """Runs the policy alone, as it is in this build, and keeps that as a version."""
    sections = [runs.own(section) for section in runs.SECTIONS if not section.name.startswith("ablations")]
    measured = [row for section in sections for row in runs.run(section, jobs, progress)]
    folder.mkdir(parents=True, exist_ok=True)
    rows.write(measured, folder / RUNS)
    _write_papers(papers.own(papers.measure(jobs, progress)), folder)


def write(folder: Path, found: Measured) -> None:
    """Writes what was measured."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = {name: asdict(each) for name, each in found.choice.items()}
    (folder / CHOICE).write_text(json.dumps(chosen, indent=1) + "\n", "utf-8")
    rows.write(found.rows, folder / RUNS)
    _write_papers(found.papers, folder)
    (folder / ORDERS).write_text(
        json.dumps([asdict(each) for each in found.orders], indent=1) + "\n", "utf-8"
    )


def _write_papers(found: papers.Measured, folder: Path) -> None:
    (folder / PAPERS).write_text(json.dumps(found.record()) + "\n", "utf-8")


def _read_papers(folder: Path) -> papers.Measured:
    return papers.Measured.of(json.loads((folder / PAPERS).read_text("utf-8")))


def read(folder: Path) -> Measured:
    """What was measured before, with the optimum of small cases, which is a report of its own."""
    chosen = json.loads((folder / CHOICE).read_text("utf-8"))
    return Measured(
        {name: Changes(**each) for name, each in chosen.items()},
        rows.read(folder / RUNS),
        _read_papers(folder),
        [losses.Order(**each) for each in json.loads((folder / ORDERS).read_text("utf-8"))],
        optimum.read(folder.parent / "optimum"),
    )


def read_first(folder: Path, now: Measured) -> Measured:
    """The first version, beside which others are as they are now."""
    kept = folder / FIRST
    return replace(
        now,
        rows=rows.read(kept / RUNS),
        papers=papers.with_own(now.papers, _read_papers(kept)),
        optimum=optimum.read(kept),
    )
