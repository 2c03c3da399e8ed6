"""Writes docs/reports/prediction/degradation.md: how wrong and how old speed-ups may be."""

from pathlib import Path

import polars

from ampsched.markdown import wrapped
from ampsched_lab.prediction import degradation

REPEATS = 3
TEMPLATE = Path(__file__).parent / "degradation.md"


def losses(points: list[degradation.Point]) -> str:
    """What half the value as an error, and each source, cost every policy, in a sentence each."""
    lines = ["## In short", ""]
    for policy, found in degradation.curve(points, "error").items():
        exact, worst = found[0].value, found[-1].value
        sources = {
            point.x: point.value for point in points if (point.series, point.policy) == ("source", policy)
        }
        change = sources["predicted"].mean / sources["oracle"].mean - 1
        lines.append(
            f"* `{policy}`: {exact.mean:.3f} with exact speed-ups, {worst.mean:.3f} ({worst.mean / exact.mean - 1:+.1%}) with errors of "
            f"{found[-1].x:.0%}; {change:+.1%} with predicted instead of exact ones."
        )
    return "\n".join(lines)


def write(folder: Path) -> None:
    points = degradation.run(repeats=REPEATS)
    polars.DataFrame([point.record() for point in points]).write_csv(folder / "degradation.csv")
    show(folder, points)


def show(folder: Path, points: list[degradation.Point]) -> None:
    """Writes the page and its figures."""
    degradation.draw_sources(points, folder / degradation.SOURCES_FIGURE)
    degradation.draw(
        points, "error", "standard deviation / mean of the error", folder / "degradation-error.svg"
    )
    degradation.draw(points, "sampling_ms", "sampling period in ms", folder / "degradation-sampling.svg")
    (folder / "degradation.md").write_text(page(points), encoding="utf-8")


def page(points: list[degradation.Point]) -> str:
    """The page's text."""
    text = TEMPLATE.read_text(encoding="utf-8").format(
        opening=degradation.answer(points),
        repeats=REPEATS,
        cfs=next(point.value.mean for point in points if point.policy == degradation.REFERENCE),
        error=degradation.table(points, "error", "error"),
        sampling_error=degradation.SAMPLING_ERROR,
        sampling=degradation.table(points, "sampling_ms", "sampling in ms"),
        source=degradation.table(points, "source", "source"),
        reading=losses(points),
    )
    return wrapped(text)
