"""The style of pictures: files with the same bytes every time, made for the width of a page."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampsched._core import InputError
from ampsched.files import writing

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

# Colour-blind safe (Okabe and Ito).
BLUE, ORANGE, GREEN, RED, PINK, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
YELLOW, GREY, BLACK = "#F0E442", "#999999", "#000000"
SERIES = (BLUE, ORANGE, GREEN, RED, PINK, SKY, GREY, BLACK)
"""Colours of lines that have none of their own, in order."""
PAGE_WIDTH_IN = 7.2
"""Width of every figure: at 96 pixels to the inch, that of a page's text. Figures are not scaled there."""
FONT_PT = 9.0
"""Size of all text: 12 pixels on a page."""
CHARACTER_IN = 0.6 * FONT_PT / 72
"""About the width of a character."""
REFERENCE: dict[str, Any] = {"color": "black", "linewidth": 0.7}
"""How a value to compare with is drawn."""
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text that can be searched and read aloud
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],  # the second is as wide
    "font.size": FONT_PT,
    "axes.titlesize": FONT_PT,
    "figure.titlesize": FONT_PT + 1,
    "legend.fontsize": FONT_PT,
    "legend.title_fontsize": FONT_PT + 1,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.2,
    "grid.linewidth": 0.3,
}


def check_matplotlib() -> None:
    """Refuses to draw without Matplotlib, which only figures need.

    Raises:
        InputError: If it is not installed.
    """
    if find_spec("matplotlib") is None:
        raise InputError("figures need Matplotlib: pip install 'ampsched[figures]'")


@contextmanager
def canvas(
    path: Path,
    salt: str,
    shape: tuple[int, int],
    height_in: float,
    **how: Any,  # noqa: ANN401 (what Matplotlib takes)
) -> Iterator[tuple["Canvas", list[list["Axes"]]]]:
    """A canvas as wide as a page, with axes in rows; it is written to a file in the end, always with the same bytes.

    Args:
        path: SVG or PNG, by the suffix.
        salt: Name of what is drawn; ids in the file are made from it.
        shape: Rows and columns of axes.
        height_in: Height in inches.
        how: What else `pyplot.subplots` takes, such as `sharex`.

    Raises:
        InputError: If Matplotlib is not installed.
    """
    check_matplotlib()
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    with mpl.rc_context(_STYLE | {"svg.hashsalt": salt}):
        size = (PAGE_WIDTH_IN, height_in)
        figure, axes = pyplot.subplots(*shape, figsize=size, squeeze=False, layout="constrained", **how)
        yield figure, [list(row) for row in axes]
        kind: dict[str, Any] = {"dpi": 150}
        if path.suffix == ".svg":
            kind = {"metadata": {"Date": None, "Title": _title_of(figure)}}
        with writing(path) as file:
            figure.savefig(file, format=path.suffix.removeprefix("."), **kind)
        pyplot.close(figure)


def head(whole: "Canvas", title: str, *axes: "Axes") -> None:
    """Puts the title and the legend of some axes above all of them, on the left, never over what is drawn."""
    named: dict[str, Artist] = {}
    for each in axes:
        named |= dict(zip(*reversed(each.get_legend_handles_labels()), strict=True))
    if not named:
        whole.suptitle(title, x=0.01, ha="left")
        return
    columns = _columns_of(list(named))
    whole.legend(
        list(named.values()),
        list(named),
        title=title,
        alignment="left",
        loc="outside upper left",
        ncols=columns,
    )


def _title_of(whole: "Canvas") -> str:
    """What `head` has put above all axes, or the first title of one of them; empty if there is none."""
    heads = [legend.get_title().get_text() for legend in whole.legends]
    own = [axes.get_title(place) for axes in whole.axes for place in ("left", "center")]
    return next((text.replace("\n", " ") for text in [*heads, whole.get_suptitle(), *own] if text), "")


def _columns_of(labels: Sequence[str]) -> int:
    """In how many columns a legend of these labels is not wider than a page."""
    widths_in = [len(label) * CHARACTER_IN + 0.6 for label in labels]
    is_one_row = sum(widths_in) <= PAGE_WIDTH_IN
    return len(labels) if is_one_row else max(1, int(PAGE_WIDTH_IN / max(widths_in)))
