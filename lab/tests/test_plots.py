"""The style of all figures: what fits a page, and names that cover nothing."""

import pytest

from ampsched.statistics import Estimate
from ampsched_lab.shared import plots
from ampsched_lab.shared.plots import Bar, Figure


def figure(panels=("2B2S", "4B4S"), groups=("sync-1", "sync-2")):
    value = Estimate(0.8, 0.7, 0.9, 3)
    bars = tuple(
        Bar(panel, group, policy, value)
        for panel in panels
        for group in groups
        for policy in ("wash", "colab")
    )
    return Figure(
        "example", "An example", {"H_ANTT (lower is better)": bars, "H_STP (higher is better)": bars}, 1.0
    )


def test_a_drawing_has_the_same_bytes_every_time(tmp_path):
    for name in ("one.svg", "two.svg"):
        plots.draw(figure(), tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_a_drawing_has_a_title_and_text_that_can_be_read(tmp_path):
    plots.draw(figure(), tmp_path / "it.svg")
    text = (tmp_path / "it.svg").read_text()
    assert "<title>An example</title>" in text
    assert ">2B2S, sync-1</text>" in text, "few groups are drawn without panels"


def test_what_quantities_share_is_written_once(tmp_path):
    bars = figure(("",)).rows["H_ANTT (lower is better)"]
    rows = {"2+2 (speed-up)": bars, "4+4 (speed-up)": bars}
    plots.draw(Figure("example", "An example", rows, None), tmp_path / "it.svg")
    assert (tmp_path / "it.svg").read_text().count(">speed-up</text>") == 1


def test_strips_say_how_many_values_there_are_and_their_mean(tmp_path):
    plots.strips(tmp_path / "many.svg", "Errors", {"one": [1.0, 2.0], "two": [3.0]}, "error in %")
    plots.strips(tmp_path / "single.svg", "Errors", {"one": [1.0], "two": [3.0]}, "error in %")
    many, single = ((tmp_path / f"{name}.svg").read_text() for name in ("many", "single"))
    assert ">one (2)</text>" in many
    assert ">mean</text>" in many
    assert ">one</text>" in single
    assert ">mean</text>" not in single


@pytest.mark.parametrize("panels", [("",), ("2B2S", "2B4S", "4B2S", "4B4S")])
def test_every_drawing_is_as_wide_as_a_page(panels, tmp_path):
    plots.draw(figure(panels, [f"program-{number}" for number in range(12)]), tmp_path / "it.svg")
    assert f'width="{72 * plots.PAGE_WIDTH_IN:g}pt"' in (tmp_path / "it.svg").read_text()


@pytest.mark.parametrize(("labels", "is_slanted"), [(["0+4", "2+2"], False), (["streamcluster"] * 9, True)])
def test_labels_are_slanted_only_if_they_would_not_fit(labels, is_slanted, tmp_path):
    with plots.canvas(tmp_path / "it.svg", "it", (1, 1), 2) as (_, [[axes]]):
        plots.name_places(axes, labels, plots.PAGE_WIDTH_IN)
        assert {label.get_rotation() != 0 for label in axes.get_xticklabels()} == {is_slanted}


def test_names_of_points_do_not_cover_each_other(tmp_path):
    close = [(1 + 0.01 * number, 1 + 0.005 * number, f"policy-{number}") for number in range(8)]
    with plots.canvas(tmp_path / "it.svg", "it", (1, 1), 5) as (whole, [[axes]]):
        axes.scatter(*zip(*((x, y) for x, y, _ in close), strict=True))
        axes.set(xlim=(0, 2), ylim=(0, 2))
        whole.canvas.draw()
        plots.name_points(axes, close)
        boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == len(close)
    assert not any(one.overlaps(other) for at, one in enumerate(boxes) for other in boxes[at + 1 :])
