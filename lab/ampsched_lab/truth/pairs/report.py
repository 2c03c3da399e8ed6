"""The tables of docs/reports/truth/kernel.md."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from ampsched_lab.truth.pairs.machine import FIELDS, Costs

SLACK = 0.02
"""Of a run that lies within a range."""
MEAN_AIM, WORST_AIM, SWITCHES_AIM = 0.02, 0.05, 1.2
INTRODUCTION = f"""\
Written by `make -C lab truth`. The same programs under the same policies: in a real kernel on two big and two little cores,
and in the simulator. [How simulations are checked](../../explanation/truth.md) tells how, and why some differ.

* *Error*: of the mean turnaround over all start offsets. *Single runs*: each offset by itself.
* *Range*: the shortest and the longest simulated turnaround if programs start up to 50 us earlier or later. *In the
  range*: how many of the kernel's runs lie within it, give or take {SLACK:.0%}. A range wider than {WORST_AIM:.0%} is a
  tie.
* *Switches*: how often a core went on to another thread of the workload; the kernel's own threads do not count.
* `eevdf` is the kernel's own scheduler on one side and our description of it on the other."""


@dataclass(frozen=True)
class Cell:
    """A program of a workload under a scheduler: pairs of kernel and simulator, one per start offset.

    Attributes:
        workload: Its name.
        program: Of the workload.
        scheduler: The policy.
        kernel_ns: Turnarounds in the kernel.
        simulated_ns: Turnarounds in the simulator.
        least_ns: The least that is simulated if programs begin a few us earlier or later.
        most_ns: The most.
        kernel_switches: Switches of its threads in the kernel.
        simulated_switches: The same in the simulator.
    """

    workload: str
    program: str
    scheduler: str
    kernel_ns: tuple[int, ...]
    simulated_ns: tuple[int, ...]
    least_ns: tuple[int, ...]
    most_ns: tuple[int, ...]
    kernel_switches: tuple[int, ...]
    simulated_switches: tuple[int, ...]

    @property
    def error(self) -> float:
        """Of the mean over all offsets."""
        return sum(self.simulated_ns) / sum(self.kernel_ns) - 1

    @property
    def errors(self) -> list[float]:
        """Of each offset by itself."""
        return [ours / real - 1 for ours, real in zip(self.simulated_ns, self.kernel_ns, strict=True)]

    @property
    def hits(self) -> int:
        """How many runs in the kernel lie within what is simulated for starts that differ by a few us."""
        ranges = zip(self.kernel_ns, self.least_ns, self.most_ns, strict=True)
        return sum(least * (1 - SLACK) <= real <= most * (1 + SLACK) for real, least, most in ranges)

    @property
    def is_tied(self) -> bool:
        """Whether a few us decide by more than what is asked of the simulator."""
        return sum(self.most_ns) > (1 + WORST_AIM) * sum(self.least_ns)

    @property
    def factor(self) -> float:
        """Simulated switches as a multiple of the kernel's."""
        return (1 + sum(self.simulated_switches)) / (1 + sum(self.kernel_switches))

    @property
    def is_good(self) -> bool:
        """Within the aims."""
        return abs(self.error) <= WORST_AIM and 1 / SWITCHES_AIM <= self.factor <= SWITCHES_AIM


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, rule, *rows])


def costs_table(found: Mapping[str, Costs], names: Sequence[str]) -> str:
    """What was measured, as fields of machines.

    Args:
        found: Costs by scheduler.
        names: Classes of cores, the fastest first.
    """
    header = ["field (ns)", *(f"{scheduler}, {name}" for scheduler in found for name in names)]
    columns = [costs.fields(class_) for costs in found.values() for class_ in range(len(names))]
    return table(header, [[f"`{field}`", *(f"{column[field]:,}" for column in columns)] for field in FIELDS])


def summary(cells: Sequence[Cell]) -> str:
    """One row per scheduler."""
    rows = []
    for scheduler in dict.fromkeys(cell.scheduler for cell in cells):
        own = [cell for cell in cells if cell.scheduler == scheduler]
        single = [error for cell in own for error in cell.errors]
        worst = max(own, key=lambda cell: abs(cell.error))
        rows.append(
            [
                f"`{scheduler}`",
                f"{mean(abs(cell.error) for cell in own):.1%}",
                f"{worst.error:+.1%} (`{worst.workload}`)",
                f"{mean(abs(error) for error in single):.1%}",
                f"{max(single, key=abs):+.1%}",
                f"{sum(cell.hits for cell in own)} of {sum(len(cell.kernel_ns) for cell in own)}",
                f"{mean(cell.factor for cell in own):.2f}",
                f"{sum(1 / SWITCHES_AIM <= cell.factor <= SWITCHES_AIM for cell in own)} of {len(own)}",
            ]
        )
    header = [
        "scheduler",
        "error, mean",
        "worst",
        "single runs, mean",
        "worst",
        "within the range",
        "switches, factor",
        f"within {SWITCHES_AIM:g}",
    ]
    return table(header, rows)


def errors_of(cells: Sequence[Cell]) -> list[str]:
    """Mean and worst error of some programs, and the mean over single runs."""
    errors = [abs(cell.error) for cell in cells]
    single = mean(abs(error) for cell in cells for error in cell.errors)
    return [f"{mean(errors):.1%}", f"{max(errors):.1%}", f"{single:.1%}"]


def aims(what: str, cells: Sequence[Cell]) -> str:
    """Whether some programs are as near as they should be."""
    if not cells:
        return f"{what}: none."
    errors = [abs(cell.error) for cell in cells]
    near = sum(1 / SWITCHES_AIM <= cell.factor <= SWITCHES_AIM for cell in cells)
    return (
        f"{what}: {mean(errors):.1%} off on average (aim: {MEAN_AIM:.0%}), {max(errors):.1%} at worst (aim: "
        f"{WORST_AIM:.0%}), {sum(error <= WORST_AIM for error in errors)} of {len(cells)} programs within "
        f"{WORST_AIM:.0%}; switches within a factor of {SWITCHES_AIM:g}: {near} of {len(cells)}."
    )


def details(cells: Sequence[Cell]) -> str:
    """One row per workload, program and scheduler."""
    header = [
        "workload, program",
        "scheduler",
        "kernel (ms)",
        "simulated",
        "error",
        "range",
        "in the range",
        "switches",
        "factor",
    ]
    rows = [
        [
            f"`{cell.workload}`, {cell.program}",
            f"`{cell.scheduler}`",
            f"{mean(cell.kernel_ns) / 1e6:.1f}",
            f"{mean(cell.simulated_ns) / 1e6:.1f}",
            f"{cell.error:+.1%}",
            f"{mean(cell.least_ns) / 1e6:.1f} to {mean(cell.most_ns) / 1e6:.1f}",
            f"{cell.hits} of {len(cell.kernel_ns)}",
            f"{mean(cell.kernel_switches):.0f}",
            f"{cell.factor:.2f}",
        ]
        for cell in cells
    ]
    return table(header, rows)
