"""Prop-SP's Figure 1: fairness against throughput by the analytical model."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from ampsched.analytic import POLICIES, TABLE_1, Mix, predict_all, table_1
from ampsched.statistics import Estimate
from ampsched_lab.shared import plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colour-blind safe (Okabe and Ito). The reference is a ring, so that a policy that reaches it is seen inside.
COLOURS = {
    "hsp": plots.RED,
    "rr": plots.GREEN,
    "prop-sp": plots.BLUE,
    "opt-unfairness": plots.PINK,
    "opt-asp-ref": plots.BLACK,
}
MARKERS = {"hsp": "^", "rr": "s", "prop-sp": "o", "opt-unfairness": "v", "opt-asp-ref": "o"}
RING = "opt-asp-ref"
CROWDED = 0.2
"""Normalised unfairness up to which points are shown again, enlarged, and only there with their names."""
FAR = 0.5
"""Policies whose ASP differs from the median by more than this share are named, not drawn."""
SAME = 0.02
"""Points of a workload that are nearer than this have one name together."""


@dataclass(frozen=True, slots=True)
class Point:
    """A workload under a policy."""

    workload: str
    policy: str
    asp: float
    unfairness: float
    asp_normalised: float
    """ASP / the greatest of all workloads and policies, 0 to 1."""
    unfairness_normalised: float
    """(unfairness - 1) / the same of the least fair workload and policy, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """Points of workloads under policies, normalised together."""

    title: str
    points: tuple[Point, ...]

    def records(self) -> list[dict[str, Any]]:
        """One flat record per point."""
        return [asdict(point) for point in self.points]


def figure_1(mixes: Sequence[Mix] | None = None, policies: Sequence[str] | None = None) -> Tradeoff:
    """The paper's Figure 1, or the same for other mixes or fewer policies.

    The paper does not say what it divides by. Taken over all workloads, the greatest ASP is 4.8 and the
    greatest unfairness 3.4, and Prop-SP's unfairness comes to lie within 0 to 10 %, as the text says;
    workload by workload it would not. The scale is that of all policies, whichever are shown.

    Args:
        mixes: What to show; Table 1 on two fast and two slow cores by default.
        policies: What to show; all by default.
    """
    mixes = [table_1(name) for name in TABLE_1] if mixes is None else mixes
    predictions = [(mix, each) for mix in mixes for each in predict_all(mix)]
    asp = max(each.asp for _, each in predictions)
    unfairness = max(each.unfairness for _, each in predictions)
    points = tuple(
        Point(
            mix.name,
            each.policy,
            each.asp,
            each.unfairness,
            # Where nobody gains anything, or everything is fair, there is nothing to divide by.
            each.asp / asp if asp > 0.0 else 1.0,
            (each.unfairness - 1.0) / (unfairness - 1.0) if unfairness > 1.0 else 0.0,
        )
        for mix, each in predictions
        if each.policy in (POLICIES if policies is None else policies)
    )
    return Tradeoff("Throughput and fairness by the analytical model", points)


def simulated_figure_1(values: Mapping[tuple[str, str], tuple[float, float]]) -> Tradeoff:
    """Figure 1 with other values of ASP and unfairness for some workloads and policies, on the same scales.

    Args:
        values: ASP and unfairness by workload and policy; what is not in it is the model's.
    """
    model = figure_1()
    greatest_asp = max(point.asp for point in model.points)
    greatest_unfairness = max(point.unfairness for point in model.points)

    def measured(point: Point) -> Point:
        asp, unfairness = values.get((point.workload, point.policy), (point.asp, point.unfairness))
        return Point(
            point.workload,
            point.policy,
            asp,
            unfairness,
            asp / greatest_asp,
            (unfairness - 1.0) / (greatest_unfairness - 1.0),
        )

    return Tradeoff("Throughput and fairness, simulated", tuple(map(measured, model.points)))


def draw_pareto(points: Mapping[str, tuple[Estimate, Estimate]], path: Path) -> None:
    """Draws policies by mean ASP and unfairness, with intervals, and the front beyond which none is.

    Args:
        points: ASP and unfairness of each policy.
        path: SVG file.
    """
    from ampsched_lab.papers.prop_sp.runs import pareto_front

    front = pareto_front({name: (asp.mean, fair.mean) for name, (asp, fair) in points.items()})
    middle = median(asp.mean for asp, _ in points.values())
    far = [name for name, (asp, _) in points.items() if abs(asp.mean - middle) > FAR * middle]
    with plots.canvas(path, "pareto", (1, 1), 7.0) as (whole, [[axes]]):
        best = sorted((points[name] for name in front), key=lambda each: each[0].mean)
        places = [(asp.mean, fair.mean) for asp, fair in best]
        axes.step(*zip(*places, strict=True), where="pre", color=plots.RED, linewidth=0.9, zorder=1)
        near = {name: values for name, values in points.items() if name not in far}
        for name, (asp, fair) in near.items():
            axes.errorbar(
                asp.mean,
                fair.mean,
                xerr=[[asp.mean - asp.low], [asp.high - asp.mean]],
                yerr=[[fair.mean - fair.low], [fair.high - fair.mean]],
                marker="o" if name in front else ".",
                color=plots.RED if name in front else "#666666",
                elinewidth=0.6,
                zorder=2,
            )
        axes.margins(0.08)
        axes.set_xlabel("mean aggregate speed-up (higher is better)")
        axes.set_ylabel("mean unfairness (lower is fairer)")
        plots.head(whole, "Throughput and fairness of every policy; on the line: none is better at both")
        whole.canvas.draw()
        plots.name_points(axes, [(asp.mean, fair.mean, name) for name, (asp, fair) in near.items()])
        if far:
            axes.set_title("\n".join(wrap(f"Far to the left, not shown: {', '.join(far)}", 90)), loc="left")


def draw(figure: Tradeoff, path: Path) -> None:
    """Draws a figure as SVG or PNG, by the path's suffix: all points, and those near fairness enlarged."""
    with plots.canvas(path, figure.title, (2, 1), 7.4, height_ratios=(2, 3), sharex="col") as (whole, axes):
        [all_of_them], [enlarged] = axes
        near = [point for point in figure.points if point.unfairness_normalised <= CROWDED]
        top = 1.1 * max((point.unfairness_normalised for point in near), default=CROWDED) or CROWDED
        _markers(all_of_them, figure.points)
        all_of_them.axhspan(-0.03, top, color="#DDDDDD", zorder=0)
        all_of_them.set_ylim(-0.03, 1.06)
        _markers(enlarged, near)
        enlarged.set_ylim(-0.09 * top, top)
        enlarged.set_title("the grey part, enlarged", loc="left")
        enlarged.set_xlabel("aggregate speed-up, normalised (higher is better)")
        whole.supylabel("unfairness, normalised (lower is fairer)", fontsize=plots.FONT_PT)
        for each in (all_of_them, enlarged):
            each.margins(x=0.09)
        plots.head(whole, figure.title, all_of_them)
        whole.canvas.draw()
        _names(all_of_them, [point for point in figure.points if point not in near])
        _names(enlarged, near)


def _markers(axes: "Axes", points: Sequence[Point]) -> None:
    for policy in dict.fromkeys(point.policy for point in points):
        mine = [point for point in points if point.policy == policy]
        axes.scatter(
            [point.asp_normalised for point in mine],
            [point.unfairness_normalised for point in mine],
            s=110 if policy == RING else 45,
            marker=MARKERS[policy],
            facecolors="none" if policy == RING else COLOURS[policy],
            edgecolors=COLOURS[policy],
            label=policy,
            zorder=2,
        )


def _names(axes: "Axes", points: Sequence[Point]) -> None:
    """Writes the workloads' names beside the points, once for points that (nearly) coincide."""
    named: list[Point] = []
    for point in points:
        if not any(_same(point, other) for other in named):
            named.append(point)
    if named:
        places = [(each.asp_normalised, each.unfairness_normalised, each.workload) for each in named]
        others = [(each.asp_normalised, each.unfairness_normalised) for each in points]
        plots.name_points(axes, places, others, gap=0.025)


def _same(one: Point, other: Point) -> bool:
    distance = math.hypot(
        one.asp_normalised - other.asp_normalised, one.unfairness_normalised - other.unfairness_normalised
    )
    return one.workload == other.workload and distance < SAME
