"""Training rows from a counter table of two kinds of core."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from ampsched._core import InputError, suggest
from ampsched.training.pie import Pair, pie_from_big, pie_from_little
from ampsched.training.rows import TrainingSet

# Cores about which nothing is known but their kind, for PIE: a wide out-of-order core with gem5's default reorder
# buffer (DerivO3CPU: 8-wide, 192 entries) and a two-wide in-order one (MinorCPU).
UNKNOWN_PAIR = Pair(big_width=8, big_window=192, little_width=2, big_per_little_clock=1)
WINDOW = ("program", "file", "window", "core", "thread")


def measured_rows(table: pl.DataFrame, big: str, little: str, pair: Pair = UNKNOWN_PAIR) -> list[TrainingSet]:
    """Rows of every window of the programs that were measured on both kinds of core.

    The speed-up of a program is (time per instruction on `little`) / (time per instruction on `big`), over all of its
    windows: by the windows' length if the table has it, else by CPU time (``task_clock_ns``), else by cycles, as if the
        clocks
    were equal.

    Args:
        table: A counter table (see `ampsched.counters`).
        big: Type of the faster cores, as in the column ``core_type``.
        little: Type of the slower cores.
        pair: What PIE's formula knows of the cores.

    Raises:
        InputError: If a type of core is not in the table, or too few programs were measured on both.
    """
    types = sorted(set(table["core_type"].drop_nulls().to_list()))
    for wanted in (big, little):
        if wanted not in types:
            hint = suggest(wanted, types) if types else "import with --core-type"
            raise InputError(f'counter table: no core_type "{wanted}" ({hint})')
    wide = {core: _windows(table.filter(pl.col("core_type") == core), core) for core in (big, little)}
    seconds = {core: _seconds_per_instruction(frame) for core, frame in wide.items()}
    if {unit for unit, _ in seconds.values()} != {seconds[big][0]}:
        raise InputError(
            f"counter table: {big} was measured in {seconds[big][0]}, {little} in {seconds[little][0]}"
        )
    big_s, little_s = seconds[big][1], seconds[little][1]
    speedups = {program: little_s[program] / big_s[program] for program in big_s if program in little_s}
    return [_rows(wide[core], core, speedups, pair, is_big=core == big) for core in (big, little)]


def _windows(table: pl.DataFrame, core: str) -> pl.DataFrame:
    """One row per window, one column per counter."""
    wide = table.pivot("counter", index=[*WINDOW, "duration_s"], values="value", aggregate_function="sum")
    for needed in ("instructions", "cycles"):
        if needed not in wide.columns:
            raise InputError(f"counter table: {core} has no counter {needed}, which every model needs")
    return wide


def _seconds_per_instruction(wide: pl.DataFrame) -> tuple[str, dict[str, float]]:
    """What time is measured by, and time per instruction of each program."""
    if wide["duration_s"].null_count() == 0:
        unit, time = "seconds", pl.col("duration_s")
    elif "task_clock_ns" in wide.columns and wide["task_clock_ns"].null_count() == 0:
        unit, time = "CPU time", pl.col("task_clock_ns") / 1e9
    else:
        unit, time = "cycles", pl.col("cycles")
    rows = wide.filter((pl.col("instructions") > 0) & time.is_not_null()).group_by(
        "program", maintain_order=True
    )
    sums = rows.agg(time.sum().alias("time"), pl.col("instructions").sum().alias("instructions"))
    return unit, {
        program: time / count
        for program, time, count in sums.select("program", "time", "instructions").rows()
    }


def _rows(
    wide: pl.DataFrame, core: str, speedups: dict[str, float], pair: Pair, *, is_big: bool
) -> TrainingSet:
    wide = wide.filter(pl.col("program").is_in(list(speedups)))
    names: Sequence[str] = [name for name in wide.columns if name not in (*WINDOW, "duration_s")]
    counts = wide.select(pl.col(names).cast(pl.Float64).fill_null(np.nan)).to_numpy()
    programs = wide["program"].to_list()
    rows = TrainingSet(
        name=f"{core} of the counter table",
        core_type=core,
        mhz=None,
        is_big=is_big,
        counters=tuple(names),
        counts=counts,
        programs=tuple(programs),
        groups=tuple(programs),
        speedup=np.array([speedups[program] for program in programs]),
        pie=np.full(len(programs), np.nan),
    )
    return _with_pie(rows, pair)


def _with_pie(rows: TrainingSet, pair: Pair) -> TrainingSet:
    if "stall_memory_cycles" not in rows.counters or "l2_misses" not in rows.counters:
        return rows
    per = rows.column("instructions")
    arguments = (
        rows.column("cycles") / per,
        rows.column("stall_memory_cycles") / per,
        rows.column("l2_misses") / per,
    )
    formula = pie_from_big if rows.is_big else pie_from_little
    return replace(rows, pie=formula(pair, *arguments))
