"""Drawings of HFEE's figures, as SVG with reproducible bytes."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampsched_lab.papers.hfee.runs import grid
from ampsched_lab.papers.hfee.runs.hold import Series
from ampsched_lab.papers.hfee.runs.programs import Alone
from ampsched_lab.papers.hfee.runs.schedulers import Results
from ampsched_lab.papers.hfee.setup import (
    CLASSES,
    F_THRESHOLD_MHZ,
    PAPER,
    SCHEDULERS,
    UNIFORMITY_THRESHOLD,
    WORKLOADS,
)
from ampsched_lab.shared import plots
from ampsched_lab.shared.plots import Bar, Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh

METRICS = {
    "uniformity": "uniformity (higher is fairer)",
    "edp_js": "energy x delay / Linux's",
    "makespan_s": "makespan / Linux's",
    "energy_j": "energy / Linux's",
}
DRAWN = tuple(scheduler.name for scheduler in SCHEDULERS if not scheduler.name.endswith("ondemand"))
"""Those with another governor differ by less than can be seen; the tables have them."""
FROM_PAPER = tuple(name for name in DRAWN if not name.endswith("scripts"))
"""Without those from the authors' scripts, for figures of all workloads; the tables have them."""


def draw_programs(alone: Sequence[Alone], path: Path) -> None:
    """Figures 5, 6 and 7: instruction rate, energy-efficiency ratio and freq_eq of each program."""
    ordered = sorted(alone, key=lambda each: each.top_ips)
    places = range(len(ordered))
    with plots.canvas(path, path.stem, (3, 1), 6.6, sharex="col") as (whole, [[speed], [ratio], [equal]]):
        pair: dict[str, Any] = {"width": 0.4, "align": "edge"}
        left = [place - 0.4 for place in places]
        big_ips, little_ips = zip(
            *((each.top_ips / 1e9, each.little_top_ips / 1e9) for each in ordered), strict=True
        )
        speed.bar(left, little_ips, color=plots.ORANGE, label="little core, 1.4 GHz", **pair)
        speed.bar(places, big_ips, color=plots.BLUE, label="big core, 2 GHz", **pair)
        speed.set_ylabel("10⁹ instructions/s")
        ratio.bar(
            places,
            [each.stated_eer for each in ordered],
            color=plots.GREY,
            label="ratio, published (read by policies)",
            **pair,
        )
        ratio.bar(
            left,
            [each.modelled_eer for each in ordered],
            color=plots.GREEN,
            label="ratio, by the power model",
            **pair,
        )
        ratio.axhline(1.0, **plots.REFERENCE)
        ratio.set_ylabel("energy-efficiency\nratio")
        equal.bar(places, [each.equal_mhz or 0.0 for each in ordered], 0.6, color=plots.BLUE)
        equal.axhline(F_THRESHOLD_MHZ, **plots.REFERENCE)
        equal.set_ylabel("big MHz as fast as\nlittle at 1400 MHz")
        plots.name_places(equal, [each.program for each in ordered], plots.PAGE_WIDTH_IN)
        plots.head(whole, "Programs alone", speed, ratio)


def draw_grid(points: tuple[grid.Point, ...], path: Path) -> None:
    """Figure 8: uniformity at every pair of frequencies."""
    columns = len(grid.WHOLE_GRID)
    with plots.canvas(path, path.stem, (1, columns), 3.6, sharey="row") as (whole, [panels]):
        for axes, mix in zip(panels, grid.WHOLE_GRID, strict=True):
            own = [point for point in points if point.mix == mix]
            big = sorted({point.big_mhz for point in own})
            little = sorted({point.little_mhz for point in own})
            values = {(point.big_mhz, point.little_mhz): point.uniformity for point in own}
            image = axes.pcolormesh(
                big,
                little,
                [[values[high, low] for high in big] for low in little],
                vmin=0.0,
                vmax=1.0,
                cmap="viridis",
            )
            best = [max(big, key=lambda high: values[high, low]) for low in little]
            axes.plot(
                best, little, "wo", markersize=4, mec="black", mew=0.5, label="best for that little frequency"
            )
            axes.set_title(f"{mix.upper()} ({CLASSES[mix]})")
            axes.set_xlabel("big MHz")
        panels[0].set_ylabel("little MHz")
        whole.colorbar(image, ax=panels, label="uniformity")
        plots.head(whole, "Uniformity at every pair of frequencies", *panels)


def draw_along_big(points: tuple[grid.Point, ...], path: Path) -> None:
    """Figure 9: uniformity along the big frequency, little cores at their highest: a panel per workload."""
    lines = {mix: grid.along_big(points, mix) for mix in WORKLOADS}
    columns = 5
    shape = (-(-len(lines) // columns), columns)
    with plots.canvas(path, path.stem, shape, 5.2, sharex="all", sharey="all") as (whole, axes):
        panels = [each for row in axes for each in row]
        for panel, (mix, line) in zip(panels, lines.items(), strict=False):
            for other in lines.values():
                panel.plot(list(other), list(other.values()), color="#DDDDDD", linewidth=0.6, zorder=0)
            panel.plot(list(line), list(line.values()), color=plots.BLUE, linewidth=1.6)
            panel.axvline(F_THRESHOLD_MHZ, **plots.REFERENCE)
            panel.axhline(UNIFORMITY_THRESHOLD, **plots.REFERENCE)
            panel.set_title(f"{mix.upper()} {CLASSES[mix]}")
        for unused in panels[len(lines) :]:
            unused.set_visible(False)
        whole.supxlabel("big MHz, little cores at 1400 MHz", fontsize=plots.FONT_PT)
        whole.supylabel("uniformity", fontsize=plots.FONT_PT)
        plots.head(whole, "Uniformity along the big frequency; grey: the other workloads")


def draw_hold(series: Sequence[Series], path: Path) -> None:
    """What HFEE observes, epoch by epoch, and the clock that it chooses: a strip per workload."""
    machines = list(dict.fromkeys(each.machine for each in series))
    with plots.canvas(path, path.stem, (2, len(machines)), 5.4, sharex="all") as (whole, [observed, clocks]):
        for top, bottom, machine in zip(observed, clocks, machines, strict=True):
            own = [each for each in series if each.machine == machine]
            fair = _strips(
                top, own, [each.uniformity for each in own], "RdBu", 2 * UNIFORMITY_THRESHOLD - 1.0, 1.0
            )
            clock = _strips(bottom, own, [each.mean_mhz for each in own], "viridis", None, None)
            top.set_title(machine)
            bottom.set_xlabel("epoch of 1 s")
        whole.colorbar(
            fair,
            ax=observed,
            label=f"uniformity since the start\n(white: {UNIFORMITY_THRESHOLD})",
            extend="min",
        )
        whole.colorbar(clock, ax=clocks, label="big MHz")
        plots.head(whole, "What HFEE observes and the clock that it chooses")


def _strips(
    axes: "Axes",
    own: Sequence[Series],
    values: Sequence[Sequence[float]],
    colours: str,
    low: float | None,
    high: float | None,
) -> "QuadMesh":
    """A row of cells per workload, one per epoch."""
    mesh = axes.pcolormesh(
        range(1, len(values[0]) + 2), range(len(own) + 1), values, cmap=colours, vmin=low, vmax=high
    )
    axes.set_yticks([row + 0.5 for row in range(len(own))], [each.mix.upper() for each in own])
    axes.invert_yaxis()
    return mesh


def comparison(results: Results, machine: str) -> Figure:
    """Figures 10 to 12: uniformity, and energy x delay, makespan and energy relative to Linux."""
    rows = {
        label: tuple(
            Bar(
                "",
                mix.upper(),
                name,
                results.mean(machine, mix, name, metric)
                if metric == "uniformity"
                else results.relative(machine, mix, name, "Linux", metric),
            )
            for mix in WORKLOADS
            for name in FROM_PAPER[metric != "uniformity" :]
        )
        for metric, label in METRICS.items()
    }
    return Figure(f"schedulers-{machine}", f"HFEE and its opponents on {machine}", rows, 1.0)


def draw_usage(results: Results, path: Path) -> None:
    """Figure 13: the share of the programs' time on big cores."""
    with plots.canvas(path, path.stem, (1, 1), 2.8) as (whole, [[axes]]):
        width = 0.85 / len(FROM_PAPER)
        for index, name in enumerate(FROM_PAPER):
            places = [place + (index - (len(FROM_PAPER) - 1) / 2) * width for place in range(len(WORKLOADS))]
            shares = [results.mean(PAPER, mix, name, "big_share").mean for mix in WORKLOADS]
            axes.bar(places, shares, width, color=plots.COLOURS[name], label=name)
        axes.axhline(0.5, **plots.REFERENCE)
        plots.name_places(axes, [mix.upper() for mix in WORKLOADS], plots.PAGE_WIDTH_IN)
        axes.set_ylabel("share of time on big cores")
        plots.head(whole, "Use of big cores", axes)


def draw_residency(results: Results, mix: str, path: Path) -> None:
    """Figure 14: share of time at each big frequency, a bar per scheduler."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    all_of = {name: results.of(PAPER, mix, name)[0].big_mhz for name in DRAWN}
    clocks = [mhz for row in all_of.values() for mhz, _ in row]
    moving = {name: row for name, row in all_of.items() if len(row) > 1}
    still = [name for name in all_of if name not in moving]
    found = ({"\n".join(still): all_of[still[0]]} if still else {}) | moving
    colour = Normalize(min(clocks), max(clocks))
    scale = ScalarMappable(colour, colormaps["viridis"])
    with plots.canvas(path, path.stem, (1, 1), 2.8) as (whole, [[axes]]):
        for place, row in enumerate(found.values()):
            total, left = sum(ns for _, ns in row), 0.0
            for mhz, ns in sorted(row):
                axes.barh(
                    place,
                    ns / total,
                    left=left,
                    color=colormaps["viridis"](colour(mhz)),
                    edgecolor="white",
                    linewidth=0.4,
                )
                left += ns / total
        axes.set_yticks(range(len(found)), list(found))
        axes.invert_yaxis()
        axes.set_xlim(0.0, 1.0)
        axes.set_xlabel("share of time")
        whole.colorbar(scale, ax=axes, label="big MHz")
        plots.head(whole, f"Frequencies of the big cluster, {mix.upper()}: who lowers them, and for how long")
