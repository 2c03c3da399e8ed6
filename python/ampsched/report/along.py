"""Results along a parameter: curves, and the columns that parameters have in tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ampsched.parameters import Axis, shown, without
from ampsched.report.page import Cell, Chart, Head
from ampsched.report.words import Metric, interval, listed

Values = Mapping[str, Any]
CURVES_MAX = 12
"""Workloads on machines of which curves are drawn."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The parameters that are columns of tables.

    Attributes:
        heads_by_column: Key in rows and head of each.
    """

    heads_by_column: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(values: Values) -> "Columns":
        """Those of a saved result; earlier versions have saved none."""
        return Columns(tuple((each["column"], each["head"]) for each in values.get("parameters", ())))

    @property
    def of_mixes(self) -> "Columns":
        """Those of machines and workloads."""
        axes = ("machine", "workload")
        return Columns(tuple(each for each in self.heads_by_column if each[0].partition(":")[0] in axes))

    def heads(self) -> list[Head]:
        """The heads of the columns."""
        return [Head(head) for _, head in self.heads_by_column]

    def cells(self, row: Values) -> list[Cell]:
        """The cells of a row."""
        values = [row.get(column) for column, _ in self.heads_by_column]
        return [
            Cell(shown(value) or "–", float(value) if isinstance(value, int | float) else None)
            for value in values
        ]

    def short(self, axis: Axis, label: str) -> str:
        """A label without what the columns say."""
        return without(axis, label, [column for column, _ in self.heads_by_column])

    def short_mix(self, workload: str, machine: str) -> str:
        """The same of a workload on a machine."""
        return f"{self.short('workload', workload)} on {self.short('machine', machine)}"


NONE = Columns()


def charts(values: Values, metrics: Sequence[Metric], policies: Sequence[str]) -> list[Chart]:
    """A figure with a curve of each policy for each workload and machine.

    Args:
        values: A result with ``curves`` and ``summary``.
        metrics: What the reader may choose; the first is shown.
        policies: In order, for their colours.
    """
    keys = ("machine", "workload", "policy", "place")
    rows = {tuple(str(row.get(key, "")) for key in keys): row for row in values["summary"]}

    def line(drawn: Values, metric: Metric) -> dict[str, Any]:
        points = []
        for point in drawn["points"]:
            found = rows[tuple(str(point.get(key, "")) for key in keys)][metric.key]
            ends = [metric.factor * found[key] for key in ("low", "mean", "high")]
            points.append([point["value"], *ends])
        groups = list(dict.fromkeys(point["policy"] for point in drawn["points"]))
        return {"policy": drawn["policy"], "groups": groups, "points": points}

    def chart(curve: Values) -> Chart:
        each = [
            {
                "name": metric.name,
                "lower": metric.lower_is_better,
                "digits": metric.digits,
                "lines": [line(drawn, metric) for drawn in curve["lines"]],
            }
            for metric in metrics
        ]
        data = {"policies": list(policies), "head": curve["head"], "metrics": each}
        told = [_ends(drawn, rows, metrics[0], keys) for drawn in curve["lines"]]
        alt = f"{metrics[0].name} along {curve['head']}, {curve['name']}: {listed(told)}."
        return Chart("curves", f"{curve['name']} over {curve['head']}, with 95 % intervals", alt, data)

    return [chart(curve) for curve in values.get("curves", ())[:CURVES_MAX]]


def _ends(drawn: Values, rows: Mapping[Any, Values], metric: Metric, keys: Sequence[str]) -> str:
    """Where a curve begins and ends, in words."""
    points = drawn["points"]
    ends = [points[0], points[-1]] if len(points) > 1 else points[:1]
    found = [rows[tuple(str(point.get(key, "")) for key in keys)][metric.key] for point in ends]
    texts = [interval(each, metric.digits, metric.factor) for each in found]
    return f"{drawn['policy']} {' to '.join(texts)}"
