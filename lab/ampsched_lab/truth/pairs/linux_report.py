"""Tables of Linux's own scheduler, in a kernel and in the simulator."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean

from ampsched_lab.truth.pairs.report import table
from ampsched_lab.truth.pairs.simulated import Ended

MEAN_AIM, WORST_AIM = 0.04, 0.1
"""Of turnaround: on average and at worst."""
SHARE_AIM = 0.05
"""Of the share of time on big cores."""
FACTOR_AIM = 1.5
"""Of switches and moves."""
HEADER = (
    "workload, program",
    "kernel (ms)",
    "simulated",
    "error",
    "on big cores",
    "simulated",
    "points",
    "switches",
    "factor",
    "migrations",
    "factor",
)
SUMMARY = (
    "system",
    "beside it",
    f"error, mean (aim: {MEAN_AIM:.0%})",
    f"worst (aim: {WORST_AIM:.0%})",
    f"within {WORST_AIM:.0%}",
    "points, mean",
    f"worst (aim: {100 * SHARE_AIM:.0f})",
    f"within {100 * SHARE_AIM:.0f}",
    f"switches within {FACTOR_AIM:g}",
    f"migrations within {FACTOR_AIM:g}",
)


@dataclass(frozen=True)
class Row:
    """A program of a workload: what became of it in the kernel and in the simulator, in runs at all start offsets."""

    workload: str
    program: str
    kernel: tuple[Ended, ...]
    simulated: tuple[Ended, ...]

    @property
    def error(self) -> float:
        """Of the mean turnaround over all offsets."""
        return _mean(self.simulated, "turnaround_ns") / _mean(self.kernel, "turnaround_ns") - 1

    @property
    def points(self) -> float:
        """How much larger the simulated share of time on big cores is."""
        return share(self.simulated) - share(self.kernel)

    @property
    def switches(self) -> float:
        """Simulated switches as a multiple of the kernel's."""
        return self._factor("switches")

    @property
    def moves(self) -> float:
        """The same of moves between cores."""
        return self._factor("moves")

    def _factor(self, name: str) -> float:
        return (1 + _mean(self.simulated, name)) / (1 + _mean(self.kernel, name))

    def by_offset(self, offsets: int) -> list["Row"]:
        """The runs at each start offset: the kernel's are dealt out to them, those of the simulator lie together."""
        own = len(self.simulated) // offsets
        return [
            replace(
                self,
                kernel=self.kernel[number::offsets],
                simulated=self.simulated[number * own : (number + 1) * own],
            )
            for number in range(offsets)
        ]

    def cells(self) -> list[str]:
        """Of the table."""
        return [f"`{self.workload}`, {self.program}", *self.columns()]

    def columns(self) -> list[str]:
        """The columns of figures."""
        return [
            f"{_mean(self.kernel, 'turnaround_ns') / 1e6:.1f}",
            f"{_mean(self.simulated, 'turnaround_ns') / 1e6:.1f}",
            f"{self.error:+.1%}",
            f"{share(self.kernel):.1%}",
            f"{share(self.simulated):.1%}",
            f"{100 * self.points:+.1f}",
            f"{_mean(self.kernel, 'switches'):.0f}",
            f"{self.switches:.2f}",
            f"{_mean(self.kernel, 'moves'):.1f}",
            f"{self.moves:.2f}",
        ]


def _sum(runs: Sequence[Ended], name: str) -> int:
    return sum(getattr(run, name) for run in runs)


def _mean(runs: Sequence[Ended], name: str) -> float:
    return _sum(runs, name) / len(runs)


def share(runs: Sequence[Ended]) -> float:
    """Of the time on big cores in the time on all."""
    big_ns = _sum(runs, "big_ns")
    return big_ns / max(1, big_ns + _sum(runs, "little_ns"))


def is_near(factor: float) -> bool:
    """Whether a multiple is within the aim."""
    return 1 / FACTOR_AIM <= factor <= FACTOR_AIM


def details(rows: Sequence[Row]) -> str:
    """One row per workload and program."""
    return table(HEADER, [row.cells() for row in rows])


def summary(found: Sequence[tuple[str, str, Sequence[Row]]]) -> str:
    """One row per system: its name, what is compared with its scheduler, its programs."""
    return table(SUMMARY, [[f"`{name}`", beside, *figures(rows)] for name, beside, rows in found])


def figures(rows: Sequence[Row]) -> list[str]:
    """How near the programs of a system are."""
    worst = max(rows, key=lambda row: abs(row.error))
    farthest = max(rows, key=lambda row: abs(row.points))
    return [
        f"{mean(abs(row.error) for row in rows):.1%}",
        f"{worst.error:+.1%} (`{worst.workload}`)",
        f"{sum(abs(row.error) <= WORST_AIM for row in rows)} of {len(rows)}",
        f"{100 * mean(abs(row.points) for row in rows):.1f}",
        f"{100 * farthest.points:+.1f} (`{farthest.workload}`)",
        f"{sum(abs(row.points) <= SHARE_AIM for row in rows)} of {len(rows)}",
        f"{sum(is_near(row.switches) for row in rows)} of {len(rows)}",
        f"{sum(is_near(row.moves) for row in rows)} of {len(rows)}",
    ]


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows for a terminal: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) if index else cell.ljust(width) for index, (cell, width) in cells)
        for cells in (enumerate(zip(row, widths, strict=True)) for row in rows)
    )
