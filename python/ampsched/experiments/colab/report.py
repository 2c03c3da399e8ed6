"""Runs `reproduce colab` and says what came out."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from functools import partial
from typing import TYPE_CHECKING

from ampsched.comparison import Comparison
from ampsched.execution import Progress
from ampsched.experiments.claims.reading import read_claims
from ampsched.experiments.colab import runs
from ampsched.experiments.colab.figures import AGAINST_LINUX, FIGURES, METRIC_NAMES
from ampsched.experiments.colab.measurements import MEASUREMENTS, Facts
from ampsched.experiments.colab.setup import BASELINE, GROUPS, STAND_INS
from ampsched.experiments.normalised import LINUX, Normalised
from ampsched.experiments.plots import Figure
from ampsched.experiments.reproduction import Findings, Reproduction
from ampsched.markdown import ALL_BUT_FIRST, table

if TYPE_CHECKING:
    import polars

PARTS = tuple(runs.NEEDS)
CLAIMS = read_claims(
    __package__, MEASUREMENTS, [fact.name for fact in fields(Facts)], ("claims.toml", "claims-draft.toml")
)


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
    facts = asdict(Facts.of([run for each in exact.values() for run in each.runs]))
    bars = []
    for part in PARTS:
        if only in (None, part):
            runs_of_part = _needed(exact, part)
            results = Normalised(runs_of_part, BASELINE.policy)
            others = {policy: Normalised(runs_of_part, policy) for policy in STAND_INS}
            again = Normalised(_needed(predicted, part), BASELINE.policy)
            found.judge(part, results, again, facts, others)
            if part == "summary":
                found.section("summary: Gains over other kernels", *_gains(results, others))
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


def _needed(results: Mapping[str, Comparison], part: str) -> Comparison:
    """All runs of a part."""
    needed = [results[name] for name in runs.NEEDS[part]]
    all_runs = tuple(run for each in needed for run in each.runs)
    return Comparison(needed[0].policies, all_runs, needed[0].notes)


def _gains(results: Normalised, others: Mapping[str, Normalised]) -> list[str]:
    """What WASH and COLAB change against every policy in Linux's place: a table per metric."""
    against = {BASELINE.policy: results} | dict(others)
    blocks = [
        "Mean changes over the 26 workloads on all machines. Linux 4.14 knows the cores' capacities; 7.3 also places "
        "threads by them, and moves those that need more to big cores."
    ]
    for metric, name in METRIC_NAMES.items():
        rows = []
        for policy, each in against.items():
            changes = (each.change(GROUPS["all"], own, LINUX, metric) for own in AGAINST_LINUX)
            rows.append([f"`{policy}`", *(f"{100 * change.mean:+.1f} %" for change in changes)])
        blocks.append(
            f"**{name.split(' / ')[0]}**\n\n{table(['against', *AGAINST_LINUX], rows, ALL_BUT_FIRST)}"
        )
    return blocks


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
