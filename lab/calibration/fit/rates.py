"""How many instructions a recorded nanosecond stands for.

Recordings count CPU time; the simulator needs instructions. They were counted exactly (cachegrind, one
thread), so where the counted run had the recorded input, or one that an exact law relates to it, the count
is the total and the recording only distributes it over threads and phases. Otherwise the count must be
estimated from the native run: instructions per cycle times the host's clock.
"""

from dataclasses import dataclass
from functools import cache

from recording import load, table

HOST_GHZ = 3.67
"""Clock of the recording host, measured by a chain of dependent multiplications."""

SCALED_INPUTS = {
    "lu_cb": ((2048 / 1536) ** 3, "n^3 law from 1536 to 2048"),
    "lu_ncb": ((2048 / 1536) ** 3, "n^3 law from 1536 to 2048"),
    "swaptions": (50_000 / 20_000, "proportional to trials, 20000 to 50000"),
}
"""Recorded input / counted input, for programs whose work follows a known law."""

OTHER_INPUTS = {"freqmine"}
"""Programs whose counted and recorded inputs no law relates."""


@dataclass(frozen=True)
class Rate:
    """Instructions per recorded ns of CPU time."""

    per_ns: float
    source: str
    by_clock: float
    """The same by instructions per cycle and clock alone, for comparison."""


@cache
def counted(program: str) -> dict[str, str]:
    """The row of profiles.csv of a program."""
    return next(row for row in table("profiles.csv") if row["program"] == program)


@cache
def stage(program: str, name: str) -> int:
    """Counted instructions of a pipeline stage."""
    rows = table("stages.csv")
    return next(int(row["instr"]) for row in rows if (row["program"], row["stage"]) == (program, name))


@cache
def items(program: str, name: str) -> dict[str, str]:
    """The row of stages_items.csv of a pipeline stage."""
    rows = table("stages_items.csv")
    return next(row for row in rows if (row["program"], row["stage"]) == (program, name))


def rate(program: str, recording: str) -> Rate:
    """Instructions per recorded ns of a program."""
    row = counted(program)
    ipc = float(row["native_x86_ipc_est"])
    by_clock = ipc * HOST_GHZ
    if program in OTHER_INPUTS:
        return Rate(by_clock, f"{ipc} instructions/cycle x {HOST_GHZ} GHz (profiles.csv)", by_clock)
    scale, law = SCALED_INPUTS.get(program, (1.0, "the recorded input"))
    instructions = int(row["instr"]) * scale
    total_ns = load(recording).total_cpu()
    source = f"{instructions / 1e9:.3f}e9 counted instructions ({law}) / {total_ns / 1e6:.1f} ms recorded CPU"
    return Rate(instructions / total_ns, source, by_clock)
