"""Runs `reproduce colab` and says what came out."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from ampsched.comparison import Comparison
from ampsched.execution import Progress
from ampsched.experiments.claims.reading import read_claims
from ampsched.experiments.colab import runs
from ampsched.experiments.colab.figures import FIGURES
from ampsched.experiments.colab.measurements import MEASUREMENTS
from ampsched.experiments.normalised import Normalised
from ampsched.experiments.plots import Figure
from ampsched.experiments.reproduction import Findings, Reproduction
from ampsched.markdown import ALL_BUT_FIRST, table

if TYPE_CHECKING:
    import polars

PARTS = tuple(runs.NEEDS)
CLAIMS = read_claims(__package__, MEASUREMENTS, names=("claims.toml", "claims-draft.toml"))


def reproduce(
    only: str | None = None, jobs: int = 0, repeats: int = 3, progress: Progress | None = None
) -> Reproduction:
    """Runs the COLAB experiment, or what one figure needs, and judges the claims.

    Args:
        only: One of `PARTS`, or None for all.
        jobs: Processors to use; 0: all. Results do not depend on it.
        repeats: Seeds.
        progress: Called with the number of finished simulations and of all.
    """
    exact, predicted = runs.run(only, jobs, repeats, progress).values()
    found = Findings("colab", only, repeats, CLAIMS)
    bars = []
    for part in PARTS:
        if only in (None, part):
            results = _normalised(exact, part)
            found.judge(part, results, _normalised(predicted, part))
            if part in FIGURES:
                figure = FIGURES[part](results)
                found.section(f"{figure.name}: {figure.title}", found.draw(figure), *_tables(figure))
                bars += figure.records()
    found.frames["runs.parquet"] = partial(_frame, exact, Comparison.to_polars)
    found.frames["apps.parquet"] = partial(_frame, exact, Comparison.apps_to_polars)
    if bars:
        found.keep("figures", bars)
    count = sum(len(part.runs) for part in exact.values())
    return found.reproduction(
        f": {count} simulations, seeds 1 to {repeats}, both core orders, speed-ups known exactly (oracle). "
        "Nothing was tuned to a claim; machines, programs and policies come from independent data (see the "
        "explanations of the core model, the program models and the limits).\n\nThe column *predicted* "
        "repeats all simulations with speed-ups that the shipped model predicts from simulated counters "
        "(`--factors predicted`; its training includes these programs' profiles); its mark is the verdict "
        "that it would have.",
    )


def _normalised(results: Mapping[str, Comparison], part: str) -> Normalised:
    """What a figure shows."""
    needed = [results[name] for name in runs.NEEDS[part]]
    all_runs = tuple(run for each in needed for run in each.runs)
    return Normalised(Comparison(needed[0].policies, all_runs, needed[0].notes))


def _frame(
    parts: Mapping[str, Comparison], of: "Callable[[Comparison], polars.DataFrame]"
) -> "polars.DataFrame":
    """The runs or the applications of all parts as one data frame."""
    import polars

    return polars.concat([of(part).with_columns(part=polars.lit(name)) for name, part in parts.items()])


def _tables(figure: Figure) -> list[str]:
    """The values of a figure: a table per row of its panels."""
    return [f"**{row}**\n\n{_table(figure, row)}" for row in figure.rows]


def _table(figure: Figure, row: str) -> str:
    bars = {(bar.panel, bar.group, bar.policy): bar.value for bar in figure.rows[row]}
    policies = dict.fromkeys(bar.policy for bar in figure.rows[row])
    columns = [(panel, policy) for panel in figure.panels(row) for policy in policies]
    rows = []
    for group in dict.fromkeys(bar.group for bar in figure.rows[row]):
        values = (bars.get((panel, group, policy)) for panel, policy in columns)
        rows.append([group, *("" if value is None else f"{value.mean:.3f}" for value in values)])
    return table(["", *(f"{panel} {policy}" for panel, policy in columns)], rows, ALL_BUT_FIRST)
