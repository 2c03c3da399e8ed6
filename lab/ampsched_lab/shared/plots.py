"""Charts of reports, in the style of `ampsched.drawing`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypeVar

from ampsched.drawing import BLACK as BLACK
from ampsched.drawing import BLUE as BLUE
from ampsched.drawing import CHARACTER_IN as CHARACTER_IN
from ampsched.drawing import FONT_PT as FONT_PT
from ampsched.drawing import GREEN as GREEN
from ampsched.drawing import GREY as GREY
from ampsched.drawing import ORANGE as ORANGE
from ampsched.drawing import PAGE_WIDTH_IN as PAGE_WIDTH_IN
from ampsched.drawing import PINK as PINK
from ampsched.drawing import RED as RED
from ampsched.drawing import REFERENCE as REFERENCE
from ampsched.drawing import SERIES as SERIES
from ampsched.drawing import SKY as SKY
from ampsched.drawing import YELLOW as YELLOW
from ampsched.drawing import canvas as canvas
from ampsched.drawing import head as head
from ampsched.statistics import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = TypeVar("Kind", bound=str)

DARK = (BLUE, RED, GREEN, BLACK)
"""On these text is white."""
LEAST_SHARE = 0.015
"""A part of a row with at most this share of the longest row has no number: it would not fit."""
FEW = 2
"""Figures with no more groups than this are drawn without panels."""

COLOURS = {
    "CFS": GREY,
    "wash": ORANGE,
    "colab": BLUE,
    "rr-amp": GREEN,
    "a-dwrr": GREY,
    "camp": ORANGE,
    "hsp": RED,
    "prop-sp:static=1": SKY,
    "prop-sp": BLUE,
    "Linux": GREY,
    "Min-Fair": GREEN,
    "Min-Fair, scripts": YELLOW,
    "DTPM": ORANGE,
    "HFEE": BLUE,
    "HFEE, scripts": SKY,
    "static": GREY,
    "GTS": ORANGE,
    "task": BLUE,
    "loop static": YELLOW,
    "loop dynamic": GREEN,
    "EEVDF": GREY,
    "COLAB": BLUE,
    "scx_bpfland": ORANGE,
    "scx_lavd": GREEN,
}


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a chart: a group on the x axis, one policy."""

    panel: str
    """Title of the panel: machine, or the metric's name."""
    group: str
    policy: str
    value: Estimate


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure: panels of grouped bars."""

    name: str
    title: str
    rows: dict[str, tuple[Bar, ...]]
    """Bars by what is on the y axis."""
    reference: float | None
    """Value of the horizontal line."""

    def panels(self) -> list[str]:
        """Names of the panels, in order."""
        return list(dict.fromkeys(bar.panel for bars in self.rows.values() for bar in bars))

    def groups(self) -> list[str]:
        """Groups on the x axis, in order."""
        return list(dict.fromkeys(bar.group for bars in self.rows.values() for bar in bars))

    def records(self) -> list[dict[str, Any]]:
        """One flat record per bar."""
        return [
            {
                "figure": self.name,
                "metric": row,
                "panel": bar.panel,
                "group": bar.group,
                "policy": bar.policy,
                "value": bar.value.mean,
                "low": bar.value.low,
                "high": bar.value.high,
            }
            for row, bars in self.rows.items()
            for bar in bars
        ]


def name_places(axes: "Axes", labels: Sequence[str], width_in: float) -> None:
    """Writes labels below the places 0, 1, ... of the x axis; slanted if they would not fit side by side.

    Args:
        axes: Where.
        labels: In their order.
        width_in: About the width of the axes in inches.
    """
    widest_in = (max(map(len, labels), default=0) + 1) * CHARACTER_IN
    if widest_in * len(labels) <= width_in:
        axes.set_xticks(range(len(labels)), labels)
    else:
        axes.set_xticks(range(len(labels)), labels, rotation=45, ha="right", rotation_mode="anchor")


def name_points(
    axes: "Axes",
    points: Sequence[tuple[float, float, str]],
    others: Sequence[tuple[float, float]] = (),
    gap: float = 0.008,
) -> None:
    """Writes names beside points so that they cover neither each other nor a point.

    Args:
        axes: Where; its limits must be final.
        points: x, y and name.
        others: x and y of points without a name.
        gap: Least distance of a name from its point, as a share of the axes: that of a marker's radius.
    """
    import textalloc

    places = [(x, y) for x, y, _ in points]
    x_all, y_all = _columns([*places, *others])
    textalloc.allocate(
        axes,
        *_columns(places),
        [name for _, _, name in points],
        x_scatter=x_all,
        y_scatter=y_all,
        textsize=FONT_PT,
        linecolor=GREY,
        linewidth=0.5,
        min_distance=gap,
        max_distance=0.2,
        margin=0.003,
        draw_all=True,
        avoid_label_lines_overlap=True,
    )


def _columns(places: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in places], [y for _, y in places]


def stacked(
    path: Path, title: str, rows: Mapping[str, Mapping[Kind, int]], colours: Mapping[Kind, str], label: str
) -> None:
    """Draws a row of parts for each name: how many there are of each kind.

    Args:
        path: SVG or PNG, by the suffix.
        title: Above all.
        rows: Counts of kinds by name, from above.
        colours: Of the kinds, in their order.
        label: What is counted.
    """
    from matplotlib.ticker import MaxNLocator

    with canvas(path, path.stem, (1, 1), 1.1 + 0.27 * len(rows)) as (whole, [[axes]]):
        left = [0] * len(rows)
        most = max((sum(each.values()) for each in rows.values()), default=0)
        for kind, colour in colours.items():
            counts = [each[kind] for each in rows.values()]
            bars = axes.barh(range(len(rows)), counts, left=left, color=colour, label=kind)
            shown = [f"{count:,}" if count > LEAST_SHARE * most else "" for count in counts]
            axes.bar_label(bars, shown, label_type="center", color="white" if colour in DARK else "black")
            left = [start + count for start, count in zip(left, counts, strict=True)]
        axes.set_yticks(range(len(rows)), list(rows))
        axes.invert_yaxis()
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel(label)
        head(whole, title, axes)


def dots(
    path: Path,
    title: str,
    series: Mapping[str, Mapping[str, float]],
    label: str,
    *,
    limits: Sequence[float] = (),
    scale: str = "linear",
) -> None:
    """Draws a row for each name with a mark for each series that has a value there.

    Args:
        path: SVG or PNG, by the suffix.
        title: Above all.
        series: Values by name, from above, for each series.
        label: What the values are, with their unit.
        limits: Values of vertical lines: nothing, or an aim.
        scale: Of the x axis, ``linear``, ``log`` or ``symlog``.
    """
    names = list(dict.fromkeys(name for values in series.values() for name in values))
    with canvas(path, path.stem, (1, 1), 1.2 + 0.21 * len(names)) as (whole, [[axes]]):
        for index, (kind, values) in enumerate(series.items()):
            aside = 0.5 * ((index + 0.5) / len(series) - 0.5)
            places = [names.index(name) + aside for name in values]
            mark: dict[str, Any] = {"marker": "oDs^vP"[index % 6], "markersize": 4.5, "linestyle": ""}
            axes.plot(list(values.values()), places, label=kind, color=SERIES[index % len(SERIES)], **mark)
        for limit in limits:
            axes.axvline(limit, **REFERENCE)
        axes.set_xscale(scale)
        if scale != "linear":  # powers of ten would be written smaller than all other text
            axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.grid(axis="y")
        axes.set_xlabel(label)
        head(whole, title, *([axes] if len(series) > 1 else []))


def strips(
    path: Path, title: str, rows: Mapping[str, Sequence[float]], label: str, limits: Sequence[float] = ()
) -> None:
    """Draws a row of marks for each name: all values that there are, their number and their mean.

    Args:
        path: SVG or PNG, by the suffix.
        title: Above all.
        rows: Values by name, from above.
        label: What the values are, with their unit.
        limits: Values of vertical lines: nothing, or an aim.
    """
    is_single = all(len(values) == 1 for values in rows.values())
    height_in = (0.2 if is_single else 0.3) * len(rows)
    with canvas(path, path.stem, (1, 1), 1.2 + height_in) as (whole, [[axes]]):
        for place, values in enumerate(rows.values()):
            axes.plot(
                values, [place] * len(values), marker="|", markersize=12, linestyle="", color=BLUE, alpha=0.7
            )
            if not is_single:
                axes.plot(
                    fmean(values), place, marker="D", markersize=4, linestyle="", color=BLACK, label="mean"
                )
        for limit in limits:
            axes.axvline(limit, zorder=0, **REFERENCE)
        names = [
            "\n".join(wrap(name if is_single else f"{name} ({len(values)})", 32)[:2])
            for name, values in rows.items()
        ]
        axes.set_yticks(range(len(rows)), names, linespacing=0.9)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel(label)
        head(whole, title, axes)


def draw(figure: Figure, path: Path) -> None:
    """Draws grouped bars with 95 % intervals: a row of axes per quantity, or per panel with a column per quantity."""
    figure = _without_panels(figure)
    panels, quantities, groups = figure.panels(), list(figure.rows), figure.groups()
    is_one = len(panels) == 1
    rows, columns = (len(quantities), 1) if is_one else (len(panels), len(quantities))
    height_in = 1.1 + 1.6 * rows
    names, shared = _labels(quantities) if is_one else (panels, "")
    how: dict[str, Any] = {"sharex": "col", "sharey": "none" if is_one else "col"}
    with canvas(path, figure.name, (rows, columns), height_in, **how) as (whole, axes):
        for row in range(rows):
            for column in range(columns):
                here = axes[row][column]
                quantity, panel = (
                    (quantities[row], panels[0]) if is_one else (quantities[column], panels[row])
                )
                _panel(here, [bar for bar in figure.rows[quantity] if bar.panel == panel], groups)
                if figure.reference is not None:
                    here.axhline(figure.reference, **REFERENCE)
                if row == 0 and not is_one:
                    here.set_title(quantity)
            axes[row][0].set_ylabel("\n".join(wrap(names[row], 20)))
        whole.supylabel(shared, fontsize=FONT_PT)
        for each in axes[-1]:
            name_places(each, groups, (PAGE_WIDTH_IN - 0.7) / columns - 0.2)
        head(whole, figure.title, *(each for row in axes for each in row))


def _without_panels(figure: Figure) -> Figure:
    """A figure of few groups with their panels' names in the groups' names: small panels would be mostly frames."""
    if len(figure.panels()) == 1 or len(figure.groups()) > FEW:
        return figure
    rows = {
        row: tuple(replace(bar, panel="", group=f"{bar.panel}, {bar.group}") for bar in bars)
        for row, bars in figure.rows.items()
    }
    return replace(figure, rows=rows)


def _labels(quantities: Sequence[str]) -> tuple[Sequence[str], str]:
    """What differs in quantities such as `2+2 (speed-up)`, and what they share: written once, not beside each."""
    parts = [each.removesuffix(")").partition(" (") for each in quantities]
    shared = {unit for _, _, unit in parts}
    return (
        ([name for name, _, _ in parts], shared.pop()) if len(shared) == 1 < len(parts) else (quantities, "")
    )


def _panel(axes: "Axes", bars: list[Bar], groups: list[str]) -> None:
    policies = list(dict.fromkeys(bar.policy for bar in bars))
    thickness = 0.8 / max(1, len(policies))
    for index, policy in enumerate(policies):
        mine = [bar for bar in bars if bar.policy == policy]
        places = [groups.index(bar.group) + (index - (len(policies) - 1) / 2) * thickness for bar in mine]
        errors = [
            [bar.value.mean - bar.value.low for bar in mine],
            [bar.value.high - bar.value.mean for bar in mine],
        ]
        values = [bar.value.mean for bar in mine]
        axes.bar(
            places,
            values,
            thickness,
            yerr=errors,
            label=policy,
            color=COLOURS.get(policy),
            error_kw={"elinewidth": 0.7},
        )
