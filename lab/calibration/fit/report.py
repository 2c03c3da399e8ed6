"""Compares fitted models with the recordings and writes the tables of docs/reports/models/programs.md."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluate import Measured, measure
from model import Fitted, Observed, segment_figures
from rates import rate

SEEDS = (1, 2, 3, 4, 5)
"""Runs of each model; the tables show means."""

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "reports" / "models" / "programs.md"


@dataclass(frozen=True)
class Comparison:
    """A program's recorded figures, its model's, and the size of the model."""

    fitted: Fitted
    model: Observed
    operations: int
    """Operations of a run with default parameters."""


def compare(fitted: Fitted, seeds: Sequence[int] = SEEDS) -> Comparison:
    """Runs the model as the program was recorded, and once with its defaults."""
    runs = [_observe(fitted, measure(fitted.text, fitted.recorded_params, seed)) for seed in seeds]
    return Comparison(fitted, _mean_of(runs), measure(fitted.text, {}, seeds[0]).operations)


def _observe(fitted: Fitted, measured: Measured) -> Observed:
    """The figures of a run that are compared with the recorded ones."""
    loads = measured.work[fitted.workers]
    phases = measured.phases[fitted.workers] if fitted.observed.segments.what == "phase" else []
    items = [work for source in fitted.item_sources for work in measured.item_work[source]]
    lengths = items or [length for thread in phases for length in thread] or loads
    slowest = sum(max(parts) for parts in zip(*phases, strict=True))
    mean = sum(sum(parts) for parts in zip(*phases, strict=True)) / max(1, len(phases))
    return Observed(
        giga_instructions=sum(sum(works) for works in measured.work.values()) / 1e9,
        barriers=measured.episodes,
        pairs=round(measured.pairs * fitted.observed.thinning),
        thinning=fitted.observed.thinning,
        items=len(items),
        segments=segment_figures(fitted.observed.segments.what, lengths),
        imbalance=max(loads) * len(loads) / sum(loads),
        critical_share=slowest / mean if phases else 0.0,
    )


def _mean_of(runs: Sequence[Observed]) -> Observed:
    def mean(values: Sequence[float]) -> float:
        return sum(values) / len(values)

    first = runs[0].segments
    segments = type(first)(
        first.what, mean([run.segments.mean for run in runs]), mean([run.segments.cv for run in runs])
    )
    return Observed(
        giga_instructions=mean([run.giga_instructions for run in runs]),
        barriers=round(mean([run.barriers for run in runs])),
        pairs=round(mean([run.pairs for run in runs])),
        thinning=runs[0].thinning,
        items=round(mean([run.items for run in runs])),
        segments=segments,
        imbalance=mean([run.imbalance for run in runs]),
        critical_share=mean([run.critical_share for run in runs]),
    )


def tables(comparisons: Sequence[Comparison]) -> dict[str, str]:
    """The Markdown tables by the name of their place in the document."""
    return {
        "events": _events_table(comparisons),
        "segments": _segments_table(comparisons),
        "rates": _rates_table(comparisons),
    }


def _events_table(comparisons: Sequence[Comparison]) -> str:
    head = [
        "program",
        "work, 10⁹ instr.",
        "model",
        "barriers",
        "model",
        "lock pairs",
        "model",
        "one in",
        "items",
        "model",
        "operations simulated (default)",
    ]
    rows = []
    for each in comparisons:
        recorded, model = each.fitted.observed, each.model
        rows.append(
            [
                each.fitted.name,
                f"{recorded.giga_instructions:.3f}",
                f"{model.giga_instructions:.3f}",
                _count(recorded.barriers),
                _count(model.barriers),
                _count(recorded.pairs),
                _count(model.pairs),
                f"{recorded.thinning:.3g}" if recorded.pairs else "–",
                _count(recorded.items),
                _count(model.items),
                _count(each.operations),
            ]
        )
    return _markdown(head, rows)


def _segments_table(comparisons: Sequence[Comparison]) -> str:
    head = [
        "program",
        "segment",
        "mean, 10⁶ instr.",
        "model",
        "cv",
        "model",
        "imbalance",
        "model",
        "slowest/mean per phase",
        "model",
    ]
    rows = []
    for comparison in comparisons:
        recorded, model = comparison.fitted.observed, comparison.model
        shares = [
            f"{each.critical_share:.3f}" if recorded.critical_share else "–" for each in (recorded, model)
        ]
        rows.append(
            [
                comparison.fitted.name,
                recorded.segments.what,
                f"{recorded.segments.mean / 1e6:.4g}",
                f"{model.segments.mean / 1e6:.4g}",
                f"{recorded.segments.cv:.2f}",
                f"{model.segments.cv:.2f}",
                f"{recorded.imbalance:.3f}",
                "dynamic" if comparison.fitted.item_sources else f"{model.imbalance:.3f}",
                *shares,
            ]
        )
    return _markdown(head, rows)


RECORDINGS = {"water_nsquared": "water_nsq", "water_spatial": "water_sp", "freqmine": "freqmine_250k"}
"""Where a recording is not called like its program."""

BY_STAGE = {"dedup", "ferret", "mcf", "bzip2"}
"""Programs whose instructions do not come from one rate."""


def _rates_table(comparisons: Sequence[Comparison]) -> str:
    head = ["program", "instructions per recorded ns", "by instructions/cycle x clock", "source"]
    rows = []
    for each in comparisons:
        name = each.fitted.name
        if name not in BY_STAGE:
            recording = RECORDINGS.get(name, name)
            conversion = rate(recording if name.startswith("water") else name, recording)
            rows.append([name, f"{conversion.per_ns:.3f}", f"{conversion.by_clock:.3f}", conversion.source])
    return _markdown(head, rows)


def _count(value: int) -> str:
    return f"{value:,}".replace(",", " ") if value else "–"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def fill_in(document: str, contents: dict[str, str]) -> str:
    """The document with each `<!-- table NAME -->` ... `<!-- end -->` replaced."""
    for name, content in contents.items():
        begin, end = f"<!-- table {name} -->", "<!-- end -->"
        before, rest = document.split(begin, 1)
        document = f"{before}{begin}\n{content}\n{end}{rest.split(end, 1)[1]}"
    return document
