"""Pictures of sweeps: a metric along a parameter, policies side by side, or two metrics against each other."""

from pathlib import Path
from typing import TYPE_CHECKING

from polars import col

from ampsched._core import InputError
from ampsched.drawing import REFERENCE, SERIES, canvas, head
from ampsched.parameters import of_label, shown
from ampsched.sweeps.measures import measure
from ampsched.sweeps.result import PLACE

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes

    from ampsched.sweeps.result import Sweep

_BARS_MAX = 30
_CURVE_POINTS = 3
"""So many values of a parameter make a curve."""


def draw(result: "Sweep", path: Path, metric: str = "h_antt") -> None:
    """Draws a metric along a parameter of machines or workloads if one is varied, a line for each policy.

    Else its mean change against the baseline: along a parameter of policies if one is varied, or as bars.

    Args:
        result: The sweep.
        path: SVG or PNG, by the suffix.
        metric: See `Sweep.summary`.

    Raises:
        InputError: If there is no such metric, or nothing to compare.
    """
    rows = result.ranking(metric)
    if rows.height < 2:
        raise InputError("a plot needs two policies or more")
    along = _along(rows, result.varied)
    if along:
        with canvas(path, f"sweep-{metric}", (1, 1), 3.6) as (whole, axes):
            _draw_lines(axes[0][0], rows, along, metric)
            axes[0][0].set_xlabel(along.rpartition(":")[2])
            axes[0][0].set_ylabel(measure(metric).label)
            head(whole, f"{measure(metric).label} along {along.rpartition(':')[2]}", axes[0][0])
        return
    curves = _curves(rows) if not result.varied else {}
    with canvas(path, f"sweep-{metric}", (1, 1), 3.6 if curves else _height(rows)) as (whole, axes):
        panel = axes[0][0]
        label = f"{measure(metric).label}, change against {result.baseline}, %"
        if curves:
            parameter = next(iter(curves))
            _draw_curve(panel, rows, curves[parameter], metric)
            head(whole, "Mean over all machines and workloads", panel)
            panel.set_xlabel(parameter.replace(":", ", "))
            panel.set_ylabel(label)
        else:
            _draw_bars(panel, rows.head(_BARS_MAX), result.varied, metric)
            panel.set_xlabel(label)


def draw_front(result: "Sweep", path: Path, first: str, second: str) -> None:
    """Draws two metrics of every policy against each other, and joins those that none beats in both.

    Raises:
        InputError: If there is no such metric.
    """
    everyone = result.summary([first, second]).drop_nulls([first, second])
    front = result.pareto(first, second)
    places = everyone.select(PLACE).unique(maintain_order=True)
    with canvas(path, f"sweep-{first}-{second}", (1, 1), 4.2) as (whole, axes):
        panel = axes[0][0]
        for number, place in enumerate(places.iter_rows(named=True)):
            here = [col(name) == value for name, value in place.items()]
            colour = SERIES[number % len(SERIES)]
            some = everyone.filter(here)
            panel.scatter(some[first], some[second], s=14, color=colour, alpha=0.5)
            best = front.filter(here).sort(first)
            name = f"{place['workload']} on {place['machine']}"
            panel.plot(best[first], best[second], "o-", color=colour, markersize=5, label=name)
            if places.height == 1:
                for row in best.iter_rows(named=True):
                    at = (row[first], row[second])
                    panel.annotate(row["policy"], at, (4, 4), textcoords="offset points")
        panel.set_xlabel(_with_direction(first))
        panel.set_ylabel(_with_direction(second))
        title = "Joined: beaten by none in both"
        head(whole, title, *([panel] if 1 < places.height <= len(SERIES) else []))


def _with_direction(metric: str) -> str:
    found = measure(metric)
    return f"{found.label} ({'lower' if found.lower_is_better else 'higher'} is better)"


def _curves(rows: "polars.DataFrame") -> dict[str, dict[str, float]]:
    """The parameter that alone is varied, with its value of each policy; nothing if there is none, or several are."""
    found: dict[str, dict[str, float]] = {}
    for label in rows["policy"]:
        for name, value in of_label("policy", label).items():
            if isinstance(value, float):
                found.setdefault(name, {})[label] = value
    varied = {name: by for name, by in found.items() if len(set(by.values())) >= _CURVE_POINTS}
    if len(varied) != 1:
        return {}
    return varied if all(len(set(by.values())) == len(by) for by in varied.values()) else {}


def _draw_curve(panel: "Axes", rows: "polars.DataFrame", values: dict[str, float], metric: str) -> None:
    """A line along the parameter with its interval, and one across for each policy without it."""
    change = f"{metric}_change"
    by_label = {row["policy"]: row for row in rows.iter_rows(named=True)}
    along = sorted(values, key=values.__getitem__)
    xs = [values[label] for label in along]
    ys, lows, highs = (
        [100 * by_label[label][f"{change}{end}"] for label in along] for end in ("", "_low", "_high")
    )
    name = along[0].partition(":")[0]
    panel.fill_between(xs, lows, highs, color=SERIES[0], alpha=0.2, linewidth=0)
    panel.plot(xs, ys, "o-", color=SERIES[0], markersize=4, label=name)
    others = [label for label in by_label if label not in values]
    for number, label in enumerate(others[: len(SERIES) - 1], 1):
        panel.axhline(100 * by_label[label][change], color=SERIES[number], linewidth=1, label=label)


def _along(rows: "polars.DataFrame", varied: list[str]) -> str | None:
    """The parameter of machines or workloads that alone is varied, if it is a number."""
    if len(varied) != 1 or not rows[varied[0]].dtype.is_float() or rows[varied[0]].is_null().any():
        return None
    return varied[0] if rows[varied[0]].n_unique() >= _CURVE_POINTS else None


def _draw_lines(panel: "Axes", rows: "polars.DataFrame", along: str, metric: str) -> None:
    """A line along the parameter for each policy, with its interval."""
    for number, (policy, some) in enumerate(rows.group_by("policy", maintain_order=True)):
        colour, line = SERIES[number % len(SERIES)], some.sort(along)
        panel.fill_between(
            line[along], line[f"{metric}_low"], line[f"{metric}_high"], color=colour, alpha=0.2, linewidth=0
        )
        panel.plot(line[along], line[metric], "o-", color=colour, markersize=4, label=policy[0])


def _height(rows: "polars.DataFrame") -> float:
    return 0.9 + 0.26 * min(rows.height, _BARS_MAX)


def _draw_bars(panel: "Axes", rows: "polars.DataFrame", varied: list[str], metric: str) -> None:
    change = f"{metric}_change"
    labels = [
        " ".join([row["policy"], *(f"{name.rpartition(':')[2]}={shown(row[name])}" for name in varied)])
        for row in rows.iter_rows(named=True)
    ]
    means = (100 * rows[change]).to_list()
    errors = [
        (100 * (rows[change] - rows[f"{change}_low"])).to_list(),
        (100 * (rows[f"{change}_high"] - rows[change])).to_list(),
    ]
    panel.barh(range(len(labels)), means, xerr=errors, color=SERIES[0], error_kw={"elinewidth": 0.7})
    panel.set_yticks(range(len(labels)), labels)
    panel.invert_yaxis()
    panel.axvline(0, **REFERENCE)
