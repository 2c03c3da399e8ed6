"""COLAB's Figures 4 to 9 as tables and bar charts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ampsched.comparison import Comparison
from ampsched.experiments.colab import (
    MACHINES,
    SINGLE,
    TWO_PROGRAMS,
    few_threads,
    many_threads,
    of,
    workloads,
)
from ampsched.experiments.normalised import Case, Filter, Metric, Normalised
from ampsched.statistics import Estimate

AGAINST_CFS = ("wash", "colab")
METRIC_NAMES: dict[Metric, str] = {
    "h_antt": "H_ANTT / CFS (lower is better)",
    "h_stp": "H_STP / CFS (higher is better)",
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


def figure_4(data: Comparison) -> Figure:
    """Single programs on 2B2S: H_NTT under each policy."""
    results = Normalised(data)
    bars = [
        Bar("2B2S", name, policy, results.level(_named(f"single-{name}"), policy, "h_antt"))
        for name in SINGLE
        for policy in data.policies
    ]
    means = [Bar("2B2S", "mean", policy, results.level(_all, policy, "h_antt")) for policy in data.policies]
    row = "H_NTT against four big cores (lower is better)"
    return Figure("fig4", "Single programs on 2B2S", {row: (*bars, *means)}, 1.0)


def by_workload(name: str, title: str, *classes: str) -> Callable[[Comparison], Figure]:
    """Figures 5 to 7: workloads of some classes on every machine, relative to CFS."""

    def build(data: Comparison) -> Figure:
        groups = {each: _named(each) for each in workloads(*classes)}
        return _relative(data, name, title, groups | {f"mean {each}": of(each) for each in classes})

    return build


def figure_8(data: Comparison) -> Figure:
    """Few and many threads."""
    groups: dict[str, Filter] = {"few threads": few_threads, "many threads": many_threads}
    return _relative(data, "fig8", "Few and many threads", groups)


def figure_9(data: Comparison) -> Figure:
    """Two and four programs."""
    groups: dict[str, Filter] = {
        "2 programs": lambda case: case.workload in TWO_PROGRAMS,
        "4 programs": lambda case: case.workload not in TWO_PROGRAMS,
    }
    return _relative(data, "fig9", "Two and four programs", groups)


def _relative(data: Comparison, name: str, title: str, groups: Mapping[str, Filter]) -> Figure:
    results = Normalised(data)
    rows = {}
    for metric, label in METRIC_NAMES.items():
        bars = []
        for machine in MACHINES:
            for group, where in groups.items():
                bars += _bars(results, machine, group, where, metric)
        rows[label] = tuple(bars)
    return Figure(name, title, rows, 1.0)


def _bars(results: Normalised, machine: str, group: str, where: Filter, metric: Metric) -> list[Bar]:
    def here(case: Case) -> bool:
        return case.machine == machine and where(case)

    if not any(here(case) for case in results.cases):
        return []
    bars = []
    for policy in AGAINST_CFS:
        change = results.change(here, policy, "cfs", metric)
        bars.append(
            Bar(machine, group, policy, Estimate(change.mean + 1, change.low + 1, change.high + 1, change.n))
        )
    return bars


def _named(workload: str) -> Filter:
    return lambda case: case.workload == workload


def _all(_case: Case) -> bool:
    return True


FIGURES: dict[str, Callable[[Comparison], Figure]] = {
    "fig4": figure_4,
    "fig5": by_workload("fig5", "Much and little synchronisation", "sync", "nsync"),
    "fig6": by_workload("fig6", "Communication and computation", "comm", "comp"),
    "fig7": by_workload("fig7", "Random mixes", "rand"),
    "fig8": figure_8,
    "fig9": figure_9,
}
