"""What the runs of a campaign say: metrics of each, and estimates over start offsets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ampsched.metrics import slowdowns, stp, unfairness
from ampsched.statistics import Estimate, estimate
from ampsched_lab.campaign.boot import KERNEL
from ampsched_lab.campaign.store import Store
from ampsched_lab.gain.campaign import alone_names
from ampsched_lab.gain.machines import ALONE, SYSTEMS
from ampsched_lab.gain.mixes import MIXES, Chosen

MS_NS, US_NS = 1e6, 1e3
HOGS_UNITS = 80.0
"""Units of work (MS) of a thread of the mix ``hogs``'s hogs."""


@dataclass(frozen=True)
class Cell:
    """All runs of a mix under a scheduler on a machine.

    Attributes:
        rows: What was measured, by offset.
        alone_ns: Turnaround of each program alone on as many fast cores.
    """

    machine: str
    architecture: str
    scheduler: str
    mix: str
    rows: Mapping[int, Mapping[str, Any]]
    alone_ns: Sequence[float]

    @cached_property
    def slowdowns(self) -> dict[int, tuple[float, ...]]:
        """Of each program, by offset."""
        return {
            offset: slowdowns([program["turnaround_ns"] for program in row["programs"]], self.alone_ns)
            for offset, row in self.rows.items()
        }

    @cached_property
    def h_antt(self) -> dict[int, float]:
        """Mean slowdown, by offset."""
        return {offset: sum(each) / len(each) for offset, each in self.slowdowns.items()}

    def values(self, metric: str) -> list[float]:
        """A metric of each run; none if no program of the mix says it."""
        of = METRICS[metric]
        found = [of(self, offset) for offset in sorted(self.rows)]
        return [value for value in found if value is not None]

    def estimate(self, metric: str) -> Estimate | None:
        """Its mean and 95 % interval."""
        values = self.values(metric)
        return estimate(values) if values else None


def _sum(name: str) -> Callable[[Cell, int], float | None]:
    def of(cell: Cell, offset: int) -> float | None:
        return float(sum(program[name] for program in cell.rows[offset]["programs"]))

    return of


def _of_sleepers(name: str, unit: float) -> Callable[[Cell, int], float | None]:
    def of(cell: Cell, offset: int) -> float | None:
        found = [program[name] for program in cell.rows[offset]["programs"] if name in program]
        return found[0] / unit if found else None

    return of


def _missed(cell: Cell, offset: int) -> float | None:
    found = [program for program in cell.rows[offset]["programs"] if "missed" in program]
    return found[0]["missed"] / found[0]["sleeps"] if found else None


def _switches(cell: Cell, offset: int) -> float | None:
    return float(sum(each["voluntary"] + each["involuntary"] for each in cell.rows[offset]["programs"]))


METRICS: dict[str, Callable[[Cell, int], float | None]] = {
    "H_ANTT": lambda cell, offset: cell.h_antt[offset],
    "H_STP": lambda cell, offset: stp(cell.slowdowns[offset]),
    "unfairness": lambda cell, offset: unfairness(cell.slowdowns[offset]),
    "makespan (ms)": lambda cell, offset: cell.rows[offset]["makespan_ns"] / MS_NS,
    "wake-up p50 (us)": _of_sleepers("late_p50_ns", US_NS),
    "wake-up p99 (us)": _of_sleepers("late_p99_ns", US_NS),
    "missed deadlines": _missed,
    "switches": _switches,
    "migrations": _sum("moves"),
    "between classes": _sum("far_moves"),
}
"""Figures of a run, by what the report calls them."""


@dataclass(frozen=True)
class Results:
    """All cells of a campaign that have runs."""

    cells: Mapping[tuple[str, str, str, str], Cell]
    unit_us: Mapping[tuple[str, str], float]
    """What a unit of work takes alone on a fast core, by machine and architecture."""

    @classmethod
    def read(cls, store: Store, machines: Sequence[str], schedulers: Sequence[str]) -> "Results":
        """Everything that a store has."""
        cells, unit_us = {}, {}
        for machine in machines:
            for architecture, system in SYSTEMS.items():
                alone = store.read(f"{ALONE}-{machine}", system, KERNEL)
                if not alone:
                    continue
                unit_us[machine, architecture] = _unit_us(alone)
                for scheduler in schedulers:
                    runs = store.read(machine, system, scheduler)
                    for mix in MIXES:
                        rows = {offset: row for (name, offset), row in runs.items() if name == mix.name}
                        if rows:
                            key = machine, architecture, scheduler, mix.name
                            cells[key] = Cell(*key, rows, _alone_ns(mix, alone))
        return cls(cells, unit_us)

    def cell(self, machine: str, architecture: str, scheduler: str, mix: str) -> Cell | None:
        return self.cells.get((machine, architecture, scheduler, mix))

    def ratio(self, machine: str, architecture: str, mix: str, own: str, other: str) -> Estimate | None:
        """H_ANTT under one scheduler over that under another, minus 1, paired by offset."""
        first, second = (self.cell(machine, architecture, name, mix) for name in (own, other))
        if first is None or second is None:
            return None
        both = sorted(first.h_antt.keys() & second.h_antt.keys())
        return estimate([first.h_antt[n] / second.h_antt[n] - 1 for n in both]) if both else None


def _alone_ns(mix: Chosen, alone: Mapping[tuple[str, int], Mapping[str, Any]]) -> list[float]:
    names = alone_names()
    rows = [alone[names[mix.name, program], 0] for program in mix.programs]
    return [float(row["programs"][0]["turnaround_ns"]) for row in rows]


def _unit_us(alone: Mapping[tuple[str, int], Mapping[str, Any]]) -> float:
    """From the hogs' CPU time: 3 threads of integer work."""
    program = alone[alone_names()["hogs", "hogs"], 0]["programs"][0]
    return float(program["cpu_ns"] / US_NS / HOGS_UNITS / 3)
