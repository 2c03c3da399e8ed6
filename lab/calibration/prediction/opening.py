"""What docs/reports/prediction/report.md begins with, from its first table."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ampsched_lab.shared import plots
from ampsched_lab.shared.summary import opening

FIGURE = "errors.svg"
CELL = re.compile(r"(\d+(?:\.\d+)?) %")


@dataclass(frozen=True)
class Row:
    """A row of the table: how well the default model predicts from a core's counters; all in per cent."""

    core: str
    counts: str
    mean: float
    labels: float
    loss: float


def rows_of(lines: Sequence[str]) -> list[Row]:
    """The rows of the table, which may stand in a whole page."""
    found = []
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 6 and cells[5].startswith("error "):
            mean, labels, loss = (float(CELL.match(cell)[1]) for cell in cells[2:5])
            found.append(Row(cells[0], cells[1], mean, labels, loss))
    return found


def answer(rows: Sequence[Row], goal_mean: float, goal_labels: float) -> str:
    """On how many kinds of core the goals are met, where predictions are best and worst, and what errors cost.

    Args:
        rows: Of the table.
        goal_mean: Greatest mean error, in per cent.
        goal_labels: Least share of right labels, in per cent.
    """
    exact = [row for row in rows if row.counts == rows[0].counts]
    good, right = (
        sum(row.mean <= goal_mean for row in exact),
        sum(row.labels >= goal_labels for row in exact),
    )
    best, worst = min(exact, key=lambda row: row.mean), max(exact, key=lambda row: row.mean)
    dearest = max(exact, key=lambda row: row.loss)
    return opening(
        [
            f"**Read from exact counters, predicted speed-ups of unknown programs have a mean error of at most {goal_mean:g} % on "
            f"{good} of {len(exact)} kinds of core, and give at least {goal_labels:g} % of programs the right label on {right}.**",
            f"The best are those from the {best.core} ({best.mean:.1f} %), the worst those from the {worst.core} "
            f"({worst.mean:.1f} %).",
            f"Wrong labels cost at most {dearest.loss:.1f} % of the mean speed-up of those that get big cores "
            f"({dearest.core}).",
        ],
        FIGURE,
        "Mean error of predicted speed-ups, by the core whose counters are read and by the noise of the counts",
    )


def draw(rows: Sequence[Row], goal_mean: float, path: Path) -> None:
    """A row for each kind of core, a mark for each noise of its counts."""
    series = {
        counts: {row.core: row.mean for row in rows if row.counts == counts}
        for counts in dict.fromkeys(row.counts for row in rows)
    }
    title = f"How well speed-ups are predicted; line: the goal of {goal_mean:g} %"
    plots.dots(path, title, series, "mean error, %", limits=(goal_mean,))
