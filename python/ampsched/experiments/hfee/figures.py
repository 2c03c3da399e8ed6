"""Drawings of HFEE's figures, as SVG with reproducible bytes."""

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

from ampsched.experiments import plots
from ampsched.experiments.hfee.runs import grid
from ampsched.experiments.hfee.runs.hold import Series
from ampsched.experiments.hfee.runs.programs import Alone
from ampsched.experiments.hfee.runs.schedulers import Results
from ampsched.experiments.hfee.setup import (
    CLASSES,
    F_THRESHOLD_MHZ,
    PAPER,
    SCHEDULERS,
    UNIFORMITY_THRESHOLD,
    WORKLOADS,
)
from ampsched.experiments.plots import Bar, Figure

METRICS = {
    "uniformity": "uniformity (higher is fairer)",
    "edp_js": "energy x delay / Linux's",
    "makespan_s": "makespan / Linux's",
    "energy_j": "energy / Linux's",
}
DRAWN = tuple(scheduler.name for scheduler in SCHEDULERS if not scheduler.name.endswith("ondemand"))
"""Those with another governor differ by less than can be seen; the tables have them."""
BIG_BLUE, LITTLE_ORANGE, GREY = "#0072B2", "#E69F00", "#999999"


def draw_programs(alone: Sequence[Alone], path: Path) -> None:
    """Figures 5, 6 and 7: instruction rate, energy-efficiency ratio and freq_eq of each program."""
    ordered = sorted(alone, key=lambda each: each.top_ips)
    places = range(len(ordered))
    with plots.canvas(path, path.stem, (3, 1), (9, 7)) as (_, [[speed], [ratio], [equal]]):
        speed.bar(
            places,
            [each.top_ips / 1e9 for each in ordered],
            0.4,
            color=BIG_BLUE,
            label="big core, 2 GHz",
            align="edge",
        )
        little = [each.little_top_ips / 1e9 for each in ordered]
        speed.bar(places, little, -0.4, color=LITTLE_ORANGE, label="little core, 1.4 GHz", align="edge")
        speed.set_ylabel("10$^9$ instructions/s")
        ratio.bar(
            places,
            [each.stated_eer for each in ordered],
            0.4,
            color=GREY,
            label="published, which the policies read",
            align="edge",
        )
        ratio.bar(
            places,
            [each.modelled_eer for each in ordered],
            -0.4,
            color=BIG_BLUE,
            label="by the power model",
            align="edge",
        )
        ratio.axhline(1.0, color="black", linewidth=0.7)
        ratio.set_ylabel("EER")
        equal.bar(places, [each.equal_mhz or 0.0 for each in ordered], 0.6, color=BIG_BLUE)
        equal.axhline(F_THRESHOLD_MHZ, color="black", linewidth=0.7)
        equal.set_ylabel("big MHz as fast as\nlittle at 1400 MHz")
        for axes in (speed, ratio):
            axes.set_xticks(places, [""] * len(ordered))
            axes.legend(frameon=False, loc="upper left")
        equal.set_xticks(
            places, [each.program for each in ordered], rotation=45, ha="right", rotation_mode="anchor"
        )


def draw_grid(points: tuple[grid.Point, ...], path: Path) -> None:
    """Figure 8: uniformity at every pair of frequencies."""
    with plots.canvas(path, path.stem, (1, len(grid.WHOLE_GRID)), (11, 4)) as (canvas, [panels]):
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
                rasterized=False,
            )
            best = [max(big, key=lambda high: values[high, low]) for low in little]
            axes.plot(best, little, "w.", markersize=4, label="best for that little frequency")
            axes.set_title(f"{mix.upper()} ({CLASSES[mix]})")
            axes.set_xlabel("big MHz")
            axes.set_ylabel("little MHz")
            axes.legend(loc="upper left", labelcolor="black")
            canvas.colorbar(image, ax=axes, label="uniformity")


def draw_along_big(points: tuple[grid.Point, ...], path: Path) -> None:
    """Figure 9: uniformity along the big frequency, little cores at their highest."""
    styles = cycle(["-", "--", ":"])
    with plots.canvas(path, path.stem, (1, 1), (8, 4.5)) as (_, [[axes]]):
        for mix in WORKLOADS:
            line = grid.along_big(points, mix)
            axes.plot(
                list(line),
                list(line.values()),
                linestyle=next(styles),
                linewidth=1.1,
                label=f"{mix.upper()} {CLASSES[mix]}",
            )
        axes.axvline(F_THRESHOLD_MHZ, color="black", linewidth=0.7)
        axes.axhline(UNIFORMITY_THRESHOLD, color="black", linewidth=0.7)
        axes.set_xlabel("big MHz, little cores at 1400 MHz")
        axes.set_ylabel("uniformity")
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def draw_hold(series: Sequence[Series], path: Path) -> None:
    """What HFEE observes, epoch by epoch, and the clock that it chooses."""
    machines = list(dict.fromkeys(each.machine for each in series))
    with plots.canvas(path, path.stem, (2, len(machines)), (10, 5.5)) as (_, [observed, clocks]):
        for top, bottom, machine in zip(observed, clocks, machines, strict=True):
            styles = cycle(["-", "--", ":"])
            for each in (each for each in series if each.machine == machine):
                epochs, style = range(1, len(each.uniformity) + 1), next(styles)
                top.plot(epochs, each.uniformity, linestyle=style, linewidth=1.1, label=each.mix.upper())
                bottom.plot(epochs, each.mean_mhz, linestyle=style, linewidth=1.1)
            top.axhline(UNIFORMITY_THRESHOLD, color="black", linewidth=0.7)
            bottom.axhline(F_THRESHOLD_MHZ, color="black", linewidth=0.7)
            top.set_title(machine)
            top.set_ylabel("uniformity since the start")
            top.set_ylim(0.0, 1.0)
            bottom.set_ylabel("big MHz")
            bottom.set_xlabel("epoch of 1 s")
        observed[-1].legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


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
            for name in DRAWN
        )
        for metric, label in METRICS.items()
    }
    return Figure(f"schedulers-{machine}", f"HFEE and its opponents on {machine}", rows, 1.0)


def draw_usage(results: Results, path: Path) -> None:
    """Figure 13: the share of the programs' time on big cores."""
    with plots.canvas(path, path.stem, (1, 1), (10, 3)) as (_, [[axes]]):
        width = 0.85 / len(DRAWN)
        for index, name in enumerate(DRAWN):
            places = [place + (index - (len(DRAWN) - 1) / 2) * width for place in range(len(WORKLOADS))]
            shares = [results.mean(PAPER, mix, name, "big_share").mean for mix in WORKLOADS]
            axes.bar(places, shares, width, color=plots.COLOURS[name], label=name)
        axes.axhline(0.5, color="black", linewidth=0.7)
        axes.set_xticks(range(len(WORKLOADS)), [mix.upper() for mix in WORKLOADS])
        axes.set_ylabel("share of time on big cores")
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def draw_residency(results: Results, mix: str, path: Path) -> None:
    """Figure 14: share of time at each big frequency or below."""
    with plots.canvas(path, path.stem, (1, 1), (7, 3.5)) as (_, [[axes]]):
        for name in DRAWN:
            row = results.of(PAPER, mix, name)[0]
            total = sum(ns for _, ns in row.big_mhz)
            mhz, shares, so_far = [0], [0.0], 0.0
            for at, ns in row.big_mhz:
                so_far += ns / total
                mhz.append(at)
                shares.append(so_far)
            axes.step(
                [*mhz, 2100],
                [*shares, 1.0],
                where="post",
                color=plots.COLOURS[name],
                label=name,
            )
        axes.set_xlim(150, 2100)
        axes.set_xlabel("big MHz")
        axes.set_ylabel("share of time at most there")
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
