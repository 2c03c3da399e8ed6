"""Runs `reproduce colab` and says what came out."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from ampsched.comparison import Comparison
from ampsched.experiments import colab, colab_claims, plots
from ampsched.experiments.colab_figures import FIGURES, Figure
from ampsched.experiments.reproduction import Frame, Reproduction, command_of, frame_of_records

if TYPE_CHECKING:
    import polars


def reproduce_colab(
    only: str | None = None, jobs: int = 0, repeats: int = 3, progress: colab.Progress | None = None
) -> Reproduction:
    """Runs the COLAB experiment, or what one figure needs, and judges the claims.

    Args:
        only: ``"fig4"`` to ``"fig9"``, ``"summary"``, ``"tex"``, or None for all.
        jobs: Processors to use; 0: all. Results do not depend on it.
        repeats: Seeds.
        progress: Called with the number of finished simulations and of all.
    """
    parts = colab.run(only, jobs, repeats, _half(progress, 0))
    again = colab.run(only, jobs, repeats, _half(progress, 1), factors="predicted")
    wanted = [name for name in colab.NEEDS if only in (None, name)]
    views = {name: _view(parts, name) for name in wanted}
    figures = [FIGURES[name](views[name]) for name in wanted if name in FIGURES]
    claims = [claim for name in wanted for claim in colab_claims.ROWS[name](views[name])]
    results = tuple((claim, claim.measure()) for claim in claims)
    predicted = tuple(
        claim.measure() for name in wanted for claim in colab_claims.ROWS[name](_view(again, name))
    )
    frames: dict[str, Frame] = {
        "runs.parquet": partial(_frame, parts, Comparison.to_polars),
        "apps.parquet": partial(_frame, parts, Comparison.apps_to_polars),
    }
    if figures:
        bars = [record for figure in figures for record in figure.records()]
        frames["figures.parquet"] = partial(frame_of_records, bars)
    return Reproduction(
        title="COLAB (CGO 2020), reproduced in simulation",
        introduction=_introduction(only, repeats, parts),
        rules=RULES,
        claims=results,
        sections=tuple(map(_figure, figures)),
        figures={f"{figure.name}.svg": partial(plots.draw, figure) for figure in figures},
        frames=frames,
        predicted=predicted,
    )


RULES = """\
Values are changes of H_ANTT (mean normalised turnaround; H_NTT for single programs) unless H_STP (throughput) is named; means over \
workloads are geometric. [ ] is the 95 % confidence interval over seeds: it covers the random amounts of the workloads, not the model's \
errors."""


def _introduction(only: str | None, repeats: int, parts: Mapping[str, Comparison]) -> str:
    runs = sum(len(part.runs) for part in parts.values())
    return (
        f"Made by `{command_of('colab', only, repeats)}`: {runs} simulations, seeds 1 to "
        f"{repeats}, both core orders, speed-ups known exactly (oracle). Nothing was tuned to a claim; "
        "machines, programs and policies come from independent data "
        "(see the explanations of the core model, the program models and the limits).\n\n"
        "The column *predicted* repeats all simulations with speed-ups that the shipped model predicts from simulated counters "
        "(`--factors predicted`; its training includes these programs' profiles); its mark is the verdict that it would have."
    )


def _frame(
    parts: Mapping[str, Comparison], of: "Callable[[Comparison], polars.DataFrame]"
) -> "polars.DataFrame":
    """The runs or the applications of all parts as one data frame."""
    import polars

    return polars.concat([of(part).with_columns(part=polars.lit(name)) for name, part in parts.items()])


def _half(progress: colab.Progress | None, half: int) -> colab.Progress | None:
    """Progress of the first or the second of two equal runs as part of both."""
    if progress is None:
        return None
    return lambda done, total: progress(done + half * total, 2 * total)


def _view(parts: dict[str, Comparison], name: str) -> Comparison:
    """What a figure shows."""
    return merged([parts[part] for part in colab.NEEDS[name]])


def merged(parts: list[Comparison]) -> Comparison:
    """Several comparisons of the same policies as one."""
    runs = tuple(run for part in parts for run in part.runs)
    return Comparison(parts[0].policies, runs, parts[0].notes)


def _figure(figure: Figure) -> str:
    blocks = [f"## {figure.name}: {figure.title}", f"![{figure.title}]({figure.name}.svg)"]
    blocks += [_table(figure, row) for row in figure.rows]
    return "\n\n".join(blocks)


def _table(figure: Figure, row: str) -> str:
    bars = {(bar.panel, bar.group, bar.policy): bar.value for bar in figure.rows[row]}
    policies = list(dict.fromkeys(bar.policy for bar in figure.rows[row]))
    panels = figure.panels(row)
    columns = [(panel, policy) for panel in panels for policy in policies]
    head = " | ".join(f"{panel} {policy}" for panel, policy in columns)
    lines = [f"**{row}**", "", f"| | {head} |", "|---|" + "---:|" * len(columns)]
    for group in dict.fromkeys(bar.group for bar in figure.rows[row]):
        values = (bars.get((panel, group, policy)) for panel, policy in columns)
        cells = " | ".join("" if value is None else f"{value.mean:.3f}" for value in values)
        lines.append(f"| {group} | {cells} |")
    return "\n".join(lines)
