"""Why simulated programs end at other times than a kernel's: a cause for each miss, by what was tested.

The rule is here and nowhere else: :data:`MISS` says what is a miss, :func:`cause` what is its cause.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

from ampsched.statistics import estimate
from ampsched_lab.truth.pairs.linux_report import Row
from ampsched_lab.truth.pairs.report import table

MISS = 0.05
"""A program whose mean turnaround differs by more has a row."""
PART = 0.5
"""Something explains a miss if it is as large as this part of it, or leaves no more than this part."""

RULE = f"""\
Each program with an error above {MISS:.0%} has a row. Its cause is the first of these that holds:

* *tie*: in reverse order, the kernel differs from itself by at least {PART:.0%} of the error (*kernel again*);
* *one offset*: without the offset that adds most, at most {PART:.0%} of the error is left (*one less*);
* *noise*: with an idle system's background work, at most {PART:.0%} of it is left (*noise*);
* *clocks*: at fixed frequencies, the error is at most {PART:.0%} as large (*fixed clocks*; systems named *energy*);
* *chance*: the error is within its 95% interval over the offsets (*interval*), so more offsets might show none;
* *open*: none of these. A rule of the simulated kernel is wrong or missing, or the simulator differs elsewhere."""

HEADER = (
    "system",
    "workload, program",
    "error",
    "kernel again",
    "one less",
    "noise",
    "fixed clocks",
    "interval",
    "cause",
)


@dataclass(frozen=True)
class Tested:
    """A miss with what was tested of it; all numbers are shares of the kernel's mean turnaround.

    Attributes:
        system: Its name.
        row: The program on both sides.
        again: How much the kernel differs from itself.
        one_less: The error without the offset that adds most to it.
        noise: The error with the noise of an idle system.
        fixed: The error of the same program at fixed frequencies; None: there are none but fixed ones.
        interval: Half of the error's 95% interval over the offsets.
    """

    system: str
    row: Row
    again: float
    one_less: float
    noise: float
    fixed: float | None
    interval: float


def is_miss(row: Row) -> bool:
    """Whether a program has a row."""
    return abs(row.error) > MISS


def cause(tested: Tested) -> str:
    """The first that holds of what :data:`RULE` lists."""
    least = PART * abs(tested.row.error)
    if abs(tested.again) >= least:
        return "tie"
    if abs(tested.one_less) <= least:
        return "one offset"
    if abs(tested.noise) <= least:
        return "noise"
    if tested.fixed is not None and abs(tested.fixed) <= least:
        return "clocks"
    if abs(tested.row.error) <= tested.interval:
        return "chance"
    return "open"


def one_less(row: Row, offsets: int) -> float:
    """The least error that leaving out one offset leaves."""
    parts = row.by_offset(offsets)
    left = [_joined(row, [part for part in parts if part is not out]).error for out in parts]
    return min(left, key=abs)


def interval(row: Row, offsets: int) -> float:
    """Half of the 95% interval of the error over the offsets."""
    ours = [_mean_ns(part.simulated) - _mean_ns(part.kernel) for part in row.by_offset(offsets)]
    return estimate(ours).half_width / _mean_ns(row.kernel)


def _joined(row: Row, parts: Sequence[Row]) -> Row:
    return replace(
        row,
        kernel=tuple(run for part in parts for run in part.kernel),
        simulated=tuple(run for part in parts for run in part.simulated),
    )


def _mean_ns(runs: Sequence[Any]) -> float:
    return float(mean(run.turnaround_ns for run in runs))


def misses(
    system: str,
    rows: Sequence[Row],
    again: Sequence[Row],
    noisy: Sequence[Row],
    fixed: Sequence[Row] | None,
    offsets: int,
) -> list[Tested]:
    """The misses of a system; all sequences have the same programs in the same order.

    Args:
        system: Its name.
        rows: Kernel and simulator.
        again: Kernel and kernel in reverse order.
        noisy: Kernel and simulator with noise.
        fixed: The same as rows where frequencies are fixed; None: they are here.
        offsets: Start offsets.
    """
    return [
        Tested(
            system,
            row,
            again[number].error,
            one_less(row, offsets),
            noisy[number].error,
            None if fixed is None else fixed[number].error,
            interval(row, offsets),
        )
        for number, row in enumerate(rows)
        if is_miss(row)
    ]


def causes_table(found: Sequence[Tested]) -> str:
    """A row for each miss."""
    return table(
        HEADER,
        [
            [
                f"`{each.system}`",
                f"`{each.row.workload}`, {each.row.program}",
                f"{each.row.error:+.1%}",
                f"{each.again:+.1%}",
                f"{each.one_less:+.1%}",
                f"{each.noise:+.1%}",
                "" if each.fixed is None else f"{each.fixed:+.1%}",
                f"{each.interval:.1%}",
                cause(each),
            ]
            for each in found
        ],
    )
