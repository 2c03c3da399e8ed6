"""Runs `reproduce colab` and writes what came out: claims, figures, data."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ampsched.comparison import Comparison
from ampsched.experiments import colab, colab_claims
from ampsched.experiments.claims import (
    RULE,
    Claim,
    Result,
    Verdict,
    causes_of_misses,
    claim_records,
    claims_table,
    verdicts,
)
from ampsched.experiments.colab_figures import FIGURES, Figure


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Results of the COLAB experiment, or of a part of it."""

    only: str | None
    repeats: int
    parts: dict[str, Comparison]
    figures: tuple[Figure, ...]
    claims: tuple[tuple[Claim, Result], ...]
    predicted: tuple[Result, ...]
    """The claims anew, with speed-ups predicted from counters instead of exact ones."""

    def verdicts(self) -> Counter[Verdict]:
        """How many claims have which verdict."""
        return verdicts(self.claims)

    def markdown(self) -> str:
        """The report; figures are expected beside it."""
        blocks = [
            self._head(),
            claims_table(self.claims, self.predicted),
            causes_of_misses(self.claims),
            *(_figure(figure) for figure in self.figures),
        ]
        return "\n\n".join(block for block in blocks if block) + "\n"

    def _head(self) -> str:
        only = f" --only {self.only}" if self.only else ""
        runs = sum(len(part.runs) for part in self.parts.values())
        counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(self.verdicts().items()))
        return (
            "# COLAB (CGO 2020), reproduced in simulation\n\n"
            f"Made by `ampsched reproduce colab{only} --repeats {self.repeats}`: {runs} simulations, seeds 1 to "
            f"{self.repeats}, both core orders, speed-ups known exactly (oracle). Nothing was tuned to a claim; "
            "machines, programs and policies come from independent data "
            "(see the explanations of the core model, the program models and the limits).\n\n"
            "The column *predicted* repeats all simulations with speed-ups that the shipped model predicts from simulated counters "
            "(`--factors predicted`; its training includes these programs' profiles); its mark is the verdict that it would have.\n\n"
            f"**Verdicts:** {counts}.\n\n{RULE}\n\n"
            "Values are changes of H_ANTT (mean normalised turnaround; H_NTT for single programs) unless H_STP (throughput) is named; "
            "means over workloads are geometric. [ ] is the 95 % confidence interval over seeds: it covers the random amounts of the "
            "workloads, not the model's errors."
        )

    def records(self) -> list[dict[str, Any]]:
        """The claims as flat records."""
        return claim_records(self.claims, self.predicted)

    def write(self, out: Path) -> list[Path]:
        """Writes report.md, claims.csv, figures (SVG) and runs.parquet, apps.parquet, figures.parquet into a folder.

        Returns:
            The files, report first.
        """
        import polars

        from ampsched.experiments.plots import draw

        out.mkdir(parents=True, exist_ok=True)
        files = [out / "report.md", out / "claims.csv", out / "runs.parquet", out / "apps.parquet"]
        files[0].write_text(self.markdown(), encoding="utf-8")
        polars.DataFrame(self.records(), infer_schema_length=None).write_csv(files[1])
        runs = [part.to_polars().with_columns(part=polars.lit(name)) for name, part in self.parts.items()]
        polars.concat(runs).write_parquet(files[2])
        apps = [
            part.apps_to_polars().with_columns(part=polars.lit(name)) for name, part in self.parts.items()
        ]
        polars.concat(apps).write_parquet(files[3])
        for figure in self.figures:
            files.append(out / f"{figure.name}.svg")
            draw(figure, files[-1])
        if self.figures:
            files.append(out / "figures.parquet")
            bars = [record for figure in self.figures for record in figure.records()]
            polars.DataFrame(bars, infer_schema_length=None).write_parquet(files[-1])
        return files


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
    return Reproduction(only, repeats, parts, tuple(figures), results, predicted)


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
