"""Gives docs/reports/recordings/report.md its opening: ``python -m ampsched_lab.recordings.opening``.

It is made of what is kept beside the page, and follows each of the three measurements that the page shows.
"""

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, TypeVar

from ampsched_lab.recordings import exact, lifted, native
from ampsched_lab.shared import plots
from ampsched_lab.shared.page import replace_region
from ampsched_lab.shared.summary import opening

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

BEGIN = "<!-- begin: opening, written by make -C lab truth-recordings, truth-predictions and truth-lifted -->"
END = "<!-- end: opening -->"
FIGURE = "errors.svg"
PAGE = Path(__file__).resolve().parents[3] / "docs/reports/recordings/report.md"

R = TypeVar("R", bound="DataclassInstance")


def kept(path: Path, form: type[R]) -> list[R]:
    """The rows of a file: a list, or by name."""
    names = {field.name for field in fields(form)}
    rows = json.loads(path.read_text("utf-8"))["rows"]
    each = rows.values() if isinstance(rows, dict) else rows
    return [form(**{name: value for name, value in row.items() if name in names}) for row in each]


def write(page: Path) -> None:
    """Writes the page's opening and its figure."""
    folder = page.parent
    found = (
        kept(folder / native.FILE, native.Row),
        kept(folder / exact.FILE, exact.Row),
        kept(folder / lifted.FILE, lifted.Row),
    )
    replace_region(page, BEGIN, END, answer(*found))
    draw(*found, folder / FIGURE)


def answer(natives: Sequence[native.Row], others: Sequence[exact.Row], lifts: Sequence[lifted.Row]) -> str:
    """How good replays, predictions and lifted programs are."""
    near = sum(abs(each.error) <= native.AIM for each in natives)
    right, pairs = exact.pairs(others)
    good = sum(abs(each.error) <= lifted.AIM for each in lifts)
    twice = [each.error_twice for each in lifts if each.error_twice is not None]
    good_twice = sum(abs(error) <= lifted.AIM_TWICE for error in twice)
    return opening(
        [
            f"**A recording's replay takes as long as the program itself within {native.AIM:.0%} for {near} of "
            f"{len(natives)} programs, and is {mean(abs(each.error) for each in natives):.1%} off on average.**",
            f"What it predicts for other cores and schedulers is {mean(abs(each.error) for each in others):.1%} off on "
            f"average, and {right} of {pairs} pairs of schedulers come out in the right order.",
            f"Programs that are lifted from recordings are within {lifted.AIM:.0%} of these for {good} of {len(lifts)}, and "
            f"with twice the threads within {lifted.AIM_TWICE:.0%} for {good_twice} of {len(twice)}.",
        ],
        FIGURE,
        "Errors of replays, predictions and lifted programs",
    )


def draw(
    natives: Sequence[native.Row], others: Sequence[exact.Row], lifts: Sequence[lifted.Row], path: Path
) -> None:
    """A row of marks for each use of a recording."""
    rows = {"replayed on the same cores": [each.error for each in natives]}
    for scheduler in dict.fromkeys(each.scheduler for each in others):
        rows[f"predicted under {scheduler}"] = [each.error for each in others if each.scheduler == scheduler]
    rows["lifted"] = [each.error for each in lifts]
    rows["lifted, twice the threads"] = [each.error_twice for each in lifts if each.error_twice is not None]
    per_cent = {name: [100 * error for error in errors] for name, errors in rows.items()}
    plots.strips(
        path,
        "How far replays, predictions and lifted programs are from real ones",
        per_cent,
        "error of the time, %",
        (0,),
    )


if __name__ == "__main__":
    write(PAGE)
