"""The figure of turnaround against unfairness: what a policy gives up of one for the other."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from ampsched_lab.best.choice import CANDIDATES, POLICY
from ampsched_lab.best.rows import Changes
from ampsched_lab.best.variants import with_fairness
from ampsched_lab.shared import plots

WORST_H_ANTT = -0.15
"""Policies that change it by less are not drawn: they are far off."""


def draw(path: Path, policies: Mapping[str, Changes], variants: Mapping[str, Changes]) -> None:
    """Draws it.

    Args:
        path: SVG or PNG, by the suffix.
        policies: All shipped policies.
        variants: Those of abreast, by its parameter.
    """
    own = {value: variants[with_fairness(value)] for value in CANDIDATES}
    with plots.canvas(path, path.stem, (1, 1), 5.6) as (whole, [[axes]]):
        others = {
            name: each for name, each in policies.items() if name != POLICY and each.h_antt < WORST_H_ANTT
        }
        axes.plot(*_points(others.values()), "o", markersize=4, color=plots.GREY, label="other policies")
        axes.plot(
            *_points(own.values()), "o-", markersize=5, color=plots.BLUE, label="abreast, fairness 0 to 8"
        )
        named = [(100 * each.unfairness, 100 * each.h_antt, name) for name, each in others.items()]
        for value in (0, 2, 5):
            each = own[value]
            axes.annotate(
                str(value),
                (100 * each.unfairness, 100 * each.h_antt),
                (0, -11),
                textcoords="offset points",
                ha="center",
                color=plots.BLUE,
            )
        axes.set_xlabel("unfairness against cfs in % (left is fairer)")
        axes.set_ylabel("H_ANTT against cfs in % (lower is shorter)")
        axes.margins(0.06, 0.1)
        plots.name_points(axes, named, list(zip(*_points(own.values()), strict=True)))
        plots.head(whole, _message(others.values(), own.values()), axes)


def _message(others: Collection[Changes], own: Iterable[Changes]) -> str:
    """How many variants another policy beats in both."""
    best = list(own)
    found = sum(
        any(each.h_antt < mine.h_antt and each.unfairness < mine.unfairness for each in others)
        for mine in best
    )
    return f"COLAB's mixes: other policies are better in both than {found or 'none'} of {len(best)} variants of abreast"


def _points(values: Iterable[Changes]) -> tuple[list[float], list[float]]:
    found = list(values)
    return [100 * each.unfairness for each in found], [100 * each.h_antt for each in found]
