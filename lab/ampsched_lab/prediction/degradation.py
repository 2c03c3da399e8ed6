"""How wrong and how old speed-ups may be before a policy suffers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ampsched import markdown
from ampsched.api import compare
from ampsched.execution import Progress
from ampsched.statistics import Estimate
from ampsched_lab.papers.colab.setup import workloads
from ampsched_lab.shared import plots
from ampsched_lab.shared.normalised import Normalised
from ampsched_lab.shared.summary import opening

MACHINES = ("2B2S", "4B4S")
POLICIES = ("wash", "colab", "camp", "hsp", "prop-sp")
REFERENCE = "cfs"
# Standard deviation / mean of the error, from exact to half the value.
ERRORS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
# How often speed-ups are looked at: from COLAB's context switches to Prop-SP's 200 ms.
SAMPLINGS_MS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0)
# The error of each sample while the sampling is varied: about that of the trained models.
SAMPLING_ERROR = 0.2
# Policies that look at all threads every epoch, and those with a sampling period of their own.
EPOCH_MS, EPOCH_POLICIES = 10.0, ("wash", "colab")
SOURCES = (
    "oracle",
    "predicted",
    "predicted:cv=0.1",
    "predicted:colab-table2",
    "sampled",
    "constant:2.5",
    "none",
)
SOURCES_FIGURE = "degradation-sources.svg"
COLOURS = {
    "wash": plots.ORANGE,
    "colab": plots.BLUE,
    "camp": plots.RED,
    "hsp": plots.GREEN,
    "prop-sp": plots.PINK,
    "cfs": plots.GREY,
}


@dataclass(frozen=True, slots=True)
class Point:
    """Mean H_ANTT of a policy over all workloads and machines."""

    series: str
    """What is varied: ``error``, ``sampling_ms`` or ``source``."""
    policy: str
    x: float | str
    value: Estimate

    def record(self) -> dict[str, Any]:
        """A flat record."""
        value = self.value
        return {
            "series": self.series,
            "policy": self.policy,
            "x": str(self.x),
            "h_antt": value.mean,
            "low": value.low,
            "high": value.high,
            "seeds": value.n,
        }

    @staticmethod
    def of(record: Mapping[str, Any]) -> "Point":
        """Of a flat record."""
        x = record["x"]
        value = Estimate(record["h_antt"], record["low"], record["high"], record["seeds"])
        return Point(
            record["series"], record["policy"], x if record["series"] == "source" else float(x), value
        )


@dataclass(frozen=True, slots=True)
class _Setting:
    series: str
    x: float | str
    factors: str
    policies: tuple[str, ...]


def sampled_policy(policy: str, sampling_ms: float) -> str:
    """The policy with the parameter that makes it look that often."""
    if policy in EPOCH_POLICIES:
        return f"{policy}:epoch_ms={min(sampling_ms, EPOCH_MS):g}"
    return f"{policy}:sample_ms={sampling_ms:g}:tick_ms={min(sampling_ms, EPOCH_MS):g}"


def settings() -> list[_Setting]:
    """Everything that is run."""
    noisy = [_Setting("error", error, f"noisy:cv={error:g}:stale_ms=0", POLICIES) for error in ERRORS]
    sampled = [
        _Setting(
            "sampling_ms",
            ms,
            f"noisy:cv={SAMPLING_ERROR:g}:stale_ms={ms:g}",
            tuple(sampled_policy(policy, ms) for policy in POLICIES),
        )
        for ms in SAMPLINGS_MS
    ]
    sources = [_Setting("source", source, source, (REFERENCE, *POLICIES)) for source in SOURCES]
    return [*noisy, *sampled, *sources]


def run(
    jobs: int = 0,
    repeats: int = 3,
    progress: Progress | None = None,
    names: Sequence[str] | None = None,
) -> list[Point]:
    """Runs COLAB's 26 workloads, or some of them, with every error, sampling and source.

    Args:
        jobs: Processors to use; 0: all. Results do not depend on it.
        repeats: Seeds.
        progress: Called with the number of finished settings and of all.
        names: Workloads; COLAB's by default.
    """
    every = settings()
    points: list[Point] = []
    for done, setting in enumerate(every):
        if progress:
            progress(done, len(every))
        result = compare(
            MACHINES,
            names or workloads(),
            setting.policies,
            repeat=repeats,
            factors=setting.factors,
            limits=False,
            jobs=jobs,
        )
        levels = Normalised(result)
        for label in result.policies:
            policy = label.split(":")[0]
            value = levels.level(lambda _case: True, label, "h_antt")
            points.append(Point(setting.series, policy, setting.x, value))
    return points


def curve(points: Sequence[Point], series: str) -> dict[str, list[Point]]:
    """Points of a series by policy."""
    mine = [point for point in points if point.series == series]
    return {policy: [point for point in mine if point.policy == policy] for policy in POLICIES}


def answer(points: Sequence[Point]) -> str:
    """What errors, predictions and having no speed-ups at all cost."""
    errors, sources = _changes(points, "error", max(ERRORS)), _changes(points, "source", "predicted")
    without = _changes(points, "source", "none")
    most = max(without, key=without.__getitem__)
    return opening(
        [
            f"**Errors of {max(ERRORS):.0%} change a policy's H_ANTT by {min(errors.values()):+.1%} to "
            f"{max(errors.values()):+.1%}, compared with exact speed-ups.**",
            f"Predicted speed-ups change it by {min(sources.values()):+.1%} to {max(sources.values()):+.1%}.",
            f"Without any it changes by {min(without.values()):+.1%} to {without[most]:+.1%}, most for {most}.",
        ],
        SOURCES_FIGURE,
        "H_ANTT of each policy with each source of speed-ups",
    )


def _changes(points: Sequence[Point], series: str, x: float | str) -> dict[str, float]:
    """How much more H_ANTT is than with exact speed-ups, by policy."""
    found = {(point.series, point.policy, point.x): point.value.mean for point in points}
    exact: dict[str, float | str] = {"error": 0.0, "source": "oracle"}
    return {
        policy: found[series, policy, x] / found[series, policy, exact[series]] - 1 for policy in POLICIES
    }


def draw_sources(points: Sequence[Point], path: Path) -> None:
    """A row for each policy, a mark for each source of speed-ups."""
    series = {
        source: {
            point.policy: point.value.mean
            for point in points
            if point.series == "source" and point.x == source
        }
        for source in SOURCES
    }
    changes = _changes(points, "source", "predicted")
    worst = 100 * max(map(abs, changes.values()))
    title = f"Predicted instead of exact speed-ups change H_ANTT by at most {worst:.1f} %"
    plots.dots(path, title, series, "H_ANTT (lower is better)")


def draw(points: Sequence[Point], series: str, label: str, path: Path) -> None:
    """Draws H_ANTT over a numeric series, with 95 % intervals over seeds, as SVG with reproducible bytes."""
    with plots.canvas(path, series, (1, 1), 3.2) as (whole, [[axes]]):
        for policy, found in curve(points, series).items():
            values = [point.value for point in found]
            spread = [[each.mean - each.low for each in values], [each.high - each.mean for each in values]]
            places = [float(point.x) for point in found]
            means = [each.mean for each in values]
            axes.errorbar(
                places, means, yerr=spread, label=policy, color=COLOURS[policy], marker="o", ms=3, lw=1
            )
        if series == "sampling_ms":
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:g}")
        axes.set_xlabel(label)
        axes.set_ylabel("H_ANTT (lower is better)")
        reference = next(point.value.mean for point in points if point.policy == REFERENCE)
        title = f"{_message(points, series)} ({REFERENCE}, which reads none: {reference:.2f})"
        plots.head(whole, title, axes)


def _message(points: Sequence[Point], series: str) -> str:
    """What the greatest value of a series changes against the least."""
    ends = [(found[0], found[-1]) for policy, found in curve(points, series).items() if policy != REFERENCE]
    (first, last), *_ = ends
    changes = [100 * (end.value.mean / start.value.mean - 1) for start, end in ends]
    what = (
        f"Errors of {100 * float(last.x):g} %"
        if series == "error"
        else f"Samples every {last.x:g} ms instead of {first.x:g}"
    )
    return f"{what} change H_ANTT by {min(changes):+.1f} to {max(changes):+.1f} %"


def table(points: Sequence[Point], series: str, head: str) -> str:
    """A Markdown table: a row per value of the series, a column per policy."""
    mine = [point for point in points if point.series == series]
    policies = list(dict.fromkeys(point.policy for point in mine))
    rows = []
    for x in dict.fromkeys(point.x for point in mine):
        found = {point.policy: point.value for point in mine if point.x == x}
        cells = (f"{found[policy].mean:.3f} ± {found[policy].half_width:.3f}" for policy in policies)
        rows.append([f"{x:g}" if isinstance(x, float) else f"`{x}`", *cells])
    return markdown.table([head, *policies], rows, markdown.ALL_BUT_FIRST)
