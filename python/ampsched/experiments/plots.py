"""Bar charts of figures, and what all drawings share: files with the same bytes every time."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampsched.files import writing
from ampsched.statistics import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

# Colour-blind safe (Okabe and Ito).
COLOURS = {
    "CFS": "#999999",
    "wash": "#E69F00",
    "colab": "#0072B2",
    "rr-amp": "#009E73",
    "a-dwrr": "#999999",
    "camp": "#E69F00",
    "hsp": "#D55E00",
    "prop-sp:static=1": "#56B4E9",
    "prop-sp": "#0072B2",
    "Linux": "#999999",
    "Min-Fair": "#009E73",
    "Min-Fair, scripts": "#F0E442",
    "DTPM": "#E69F00",
    "HFEE": "#0072B2",
    "HFEE, scripts": "#56B4E9",
    "static": "#999999",
    "GTS": "#E69F00",
    "task": "#0072B2",
    "loop static": "#F0E442",
    "loop dynamic": "#009E73",
    "EEVDF": "#999999",
    "COLAB": "#0072B2",
    "scx_bpfland": "#E69F00",
    "scx_lavd": "#009E73",
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

    def panels(self, row: str) -> list[str]:
        """Panels of a row from left to right."""
        return list(dict.fromkeys(bar.panel for bar in self.rows[row]))

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


@contextmanager
def canvas(
    path: Path,
    salt: str,
    shape: tuple[int, int],
    size: tuple[float, float],
    *,
    font: float = 8,
    widths: Sequence[float] | None = None,
    share_y: bool = False,
) -> Iterator[tuple["Canvas", list[list["Axes"]]]]:
    """A canvas with axes in rows that is written to a file in the end, with the same bytes every time.

    Args:
        path: SVG or PNG, by the suffix.
        salt: Name of what is drawn; ids in the file are made from it.
        shape: Rows and columns of axes.
        size: Width and height in inches.
        font: Size of the text in points.
        widths: Relative widths of the columns; alike by default.
        share_y: Whether the axes of a row have the same scale.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    with mpl.rc_context({"svg.hashsalt": salt, "font.size": font}):
        figure, axes = pyplot.subplots(
            *shape, figsize=size, squeeze=False, width_ratios=widths, sharey="row" if share_y else False
        )
        yield figure, [list(row) for row in axes]
        for each in axes.flat:
            each.spines[["top", "right"]].set_visible(False)
        figure.tight_layout()
        how = {"metadata": {"Date": None}} if path.suffix == ".svg" else {"dpi": 150}
        with writing(path) as file:
            figure.savefig(file, format=path.suffix.removeprefix("."), **how)
        pyplot.close(figure)


def draw(figure: Figure, path: Path) -> None:
    """Draws a figure: one row of panels per quantity, grouped bars with 95 % intervals."""
    widths = _widths(figure, next(iter(figure.rows)))
    columns = max(len(figure.panels(row)) for row in figure.rows)
    size = (max(6.4, sum(widths)), 0.3 + 2.7 * len(figure.rows))
    shape = (len(figure.rows), columns)
    with canvas(path, figure.name, shape, size, widths=widths, share_y=True) as (whole, axes):
        for row, (label, bars) in enumerate(figure.rows.items()):
            for column, panel in enumerate(figure.panels(label)):
                _panel(axes[row][column], [bar for bar in bars if bar.panel == panel], figure.reference)
                axes[row][column].set_title(panel)
            axes[row][0].set_ylabel(label.replace(" (", "\n("))
        legend_above(whole, axes[0][0])
        whole.suptitle(figure.title, x=0.01, ha="left", fontsize=10)


def legend_above(whole: "Canvas", axes: "Axes") -> None:
    """Puts the legend of some axes above all of them, on the right."""
    handles, labels = axes.get_legend_handles_labels()
    whole.legend(handles, labels, loc="upper right", ncols=len(labels), frameon=False)


def _widths(figure: Figure, row: str) -> list[float]:
    """Widths of the panels in inches, by their number of bars."""
    bars = figure.rows[row]
    return [1.0 + 0.16 * sum(bar.panel == panel for bar in bars) for panel in figure.panels(row)]


def _panel(axes: "Axes", bars: list[Bar], reference: float | None) -> None:
    groups = list(dict.fromkeys(bar.group for bar in bars))
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
    if reference is not None:
        axes.axhline(reference, color="black", linewidth=0.7)
    axes.set_xticks(range(len(groups)), groups, rotation=45, ha="right", rotation_mode="anchor")
