"""Training rows from the gem5 pairs in lab/calibration/gem5."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np

from ampsched.counters import vocabulary
from ampsched.training.pie import Pair, pie_from_big, pie_from_little
from ampsched.training.rows import TrainingSet

FOLDER = Path(__file__).resolve().parents[1] / "gem5"
# gem5's defaults where a run has no config.ini: DerivO3CPU and MinorCPU.
BIG_WIDTH, BIG_WINDOW, LITTLE_WIDTH = 8.0, 192.0, 2.0
# Latencies in ticks depend on the clock, which differs between the pairs, and no PMU counts them.
NOT_FEATURES = ("l1d_miss_latency_ticks", "l2_miss_latency_ticks")


def read(name: str) -> list[dict[str, str]]:
    with (FOLDER / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def group_of(program: str) -> str:
    """Variants of one kernel, and one program under two names, belong together."""
    if program.endswith(("-init", "-kernel")):
        return "axpy"
    return "mcf" if program.endswith("mcf") else program


def number(text: str) -> float:
    return float(text) if text else np.nan


def gem5_rows() -> tuple[list[TrainingSet], tuple[str, ...]]:
    """Rows of the big and of the little cores, and the family (pair of core models) of each row."""
    pairs = read("pairs")
    families = tuple(f"{pair['isa']} {pair['little_model']}/{pair['big_model']}" for pair in pairs)
    sets = []
    for side in ("big", "little"):
        runs = read(side)
        assert [run["pair"] for run in runs] == [pair["pair"] for pair in pairs]
        known = [counter.name for counter in vocabulary() if counter.name in runs[0]]
        counts = np.array([[number(run[name]) for name in known] for run in runs])
        rows = TrainingSet(
            name="gem5",
            core_type=f"gem5 {side}",
            mhz=None,
            is_big=side == "big",
            counters=tuple(known),
            counts=counts,
            programs=tuple(pair["program"] for pair in pairs),
            groups=tuple(group_of(pair["program"]) for pair in pairs),
            speedup=np.array([float(pair["speedup_cycles"]) for pair in pairs]),
            pie=np.full(len(pairs), np.nan),
        )
        sets.append(without_latencies(with_pie(rows, runs)))
    return sets, families


def with_pie(rows: TrainingSet, runs: list[dict[str, str]]) -> TrainingSet:
    """PIE's formula; the memory part is the sum of L2 miss latencies over the misses that overlap."""
    instructions = rows.column("instructions")
    cpi, misses = rows.column("cycles") / instructions, rows.column("l2_misses") / instructions
    ticks_per_cycle = np.array([1000 / number(run["clock_ghz"]) for run in runs])
    latency_cpi = rows.column("l2_miss_latency_ticks") / ticks_per_cycle / instructions
    predicted = []
    for row, run in enumerate(runs):
        pair = Pair(BIG_WIDTH, BIG_WINDOW, LITTLE_WIDTH, 1.0)
        if rows.is_big:
            window, width = number(run["rob_entries"]), number(run["issue_width"])
            pair = replace(
                pair,
                big_window=BIG_WINDOW if np.isnan(window) else window,
                big_width=BIG_WIDTH if np.isnan(width) else width,
            )
        overlap = max(1.0, misses[row] * pair.big_window) if rows.is_big else 1.0
        memory = np.minimum(latency_cpi[row : row + 1] / overlap, cpi[row])
        formula = pie_from_big if rows.is_big else pie_from_little
        predicted.append(formula(pair, cpi[row : row + 1], memory, misses[row : row + 1])[0])
    return replace(rows, pie=np.array(predicted))


def without_latencies(rows: TrainingSet) -> TrainingSet:
    keep = [name not in NOT_FEATURES for name in rows.counters]
    names = tuple(name for name, kept in zip(rows.counters, keep, strict=True) if kept)
    return replace(rows, counters=names, counts=rows.counts[:, keep])
