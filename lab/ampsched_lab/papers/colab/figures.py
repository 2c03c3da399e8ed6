"""COLAB's Figures 4 to 9 as tables and bar charts."""

from collections.abc import Callable, Mapping

from ampsched.statistics import Estimate
from ampsched_lab.papers.colab.setup import GROUPS, MACHINES, SHOWN, SINGLE, workloads
from ampsched_lab.shared.normalised import LINUX, Case, Filter, Metric, Normalised
from ampsched_lab.shared.plots import Bar, Figure

AGAINST_LINUX = ("wash", "colab")
ALL = (LINUX, *AGAINST_LINUX)
METRIC_NAMES: dict[Metric, str] = {
    "h_antt": "H_ANTT / CFS (lower is better)",
    "h_stp": "H_STP / CFS (higher is better)",
}


def figure_4(results: Normalised) -> Figure:
    """Single programs on 2B2S: H_NTT under each policy."""
    groups: dict[str, Filter] = {name: _named(f"single-{name}") for name in SINGLE} | {"mean": _all}
    bars = [
        Bar("2B2S", group, SHOWN.get(policy, policy), results.level(where, policy, "h_antt"))
        for group, where in groups.items()
        for policy in ALL
    ]
    row = "H_NTT against four big cores (lower is better)"
    return Figure("fig4", "Single programs on 2B2S", {row: tuple(bars)}, 1.0)


def by_workload(name: str, title: str, *classes: str) -> Callable[[Normalised], Figure]:
    """Figures 5 to 7: workloads of some classes on every machine, relative to CFS."""

    def build(results: Normalised) -> Figure:
        groups = {each: _named(each) for each in workloads(*classes)}
        return _relative(results, name, title, groups | {f"mean {each}": GROUPS[each] for each in classes})

    return build


def figure_8(results: Normalised) -> Figure:
    """Few and many threads."""
    groups = {name: GROUPS[name] for name in ("few threads", "many threads")}
    return _relative(results, "fig8", "Few and many threads", groups)


def figure_9(results: Normalised) -> Figure:
    """Two and four programs."""
    groups = {"2 programs": GROUPS["two programs"], "4 programs": GROUPS["four programs"]}
    return _relative(results, "fig9", "Two and four programs", groups)


def _relative(results: Normalised, name: str, title: str, groups: Mapping[str, Filter]) -> Figure:
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
    for policy in AGAINST_LINUX:
        change = results.change(here, policy, LINUX, metric)
        bars.append(
            Bar(machine, group, policy, Estimate(change.mean + 1, change.low + 1, change.high + 1, change.n))
        )
    return bars


def _named(workload: str) -> Filter:
    return lambda case: case.workload == workload


def _all(_case: Case) -> bool:
    return True


FIGURES: dict[str, Callable[[Normalised], Figure]] = {
    "fig4": figure_4,
    "fig5": by_workload("fig5", "Much and little synchronisation", "sync", "nsync"),
    "fig6": by_workload("fig6", "Communication and computation", "comm", "comp"),
    "fig7": by_workload("fig7", "Random mixes", "rand"),
    "fig8": figure_8,
    "fig9": figure_9,
}
