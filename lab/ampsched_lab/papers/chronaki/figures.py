"""Drawings of the paper's figures, as SVG with reproducible bytes."""

from collections.abc import Sequence

from ampsched_lab.papers.chronaki.runs import Metric, Results
from ampsched_lab.papers.chronaki.setup import (
    EIGHT,
    FOUR,
    LOOPS,
    METHODS,
    PROGRAMS,
    WITH_LOOPS,
    Cores,
)
from ampsched_lab.shared.plots import Bar, Figure

LABELS: dict[Metric, str] = {
    "speedup": "speed-up over one little core",
    "power_w": "power (W)",
    "energy": "energy / 0+4 static's",
    "edp": "energy x delay / 0+4 static's",
}


def average(name: str, title: str, results: Results, configurations: Sequence[Cores]) -> Figure:
    """Means over the programs: speed-up, power, energy, energy x delay (Figures 3, 4, 5 and 6)."""
    rows = {
        label: tuple(
            Bar("", str(cores), method.name, results.mean(metric, method, cores))
            for cores in configurations
            for method in METHODS
        )
        for metric, label in LABELS.items()
    }
    return Figure(name, title, rows, None)


def by_program(name: str, title: str, results: Results, configurations: Sequence[Cores]) -> Figure:
    """Speed-ups of each program, a row per configuration (Figures 2, 7 and 8)."""
    rows = {
        f"{cores} ({LABELS['speedup']})": tuple(
            Bar("", program, method.name, results.mean("speedup", method, cores, [program]))
            for program in PROGRAMS
            for method in METHODS
        )
        for cores in configurations
    }
    return Figure(name, title, rows, None)


def all_of(results: Results) -> tuple[Figure, ...]:
    """Figures 2 to 8."""
    return (
        by_program("fig2", "Four cores: speed-up of each program", results, FOUR),
        average("fig3-5", "Four cores: means over the programs", results, FOUR),
        average("fig6", "Four big cores and more: means over the programs", results, EIGHT),
        by_program("fig7-8", "Four big cores and more: speed-up of each program", results, EIGHT),
    )


def loops(results: Results) -> Figure:
    """Figure 9: a row per program."""
    rows = {
        f"{program} ({LABELS['speedup']})": tuple(
            Bar("", str(cores), method.name, results.mean("speedup", method, cores, [program]))
            for cores in EIGHT
            for method in LOOPS
        )
        for program in WITH_LOOPS
    }
    return Figure("fig9", "Loops and tasks", rows, None)
