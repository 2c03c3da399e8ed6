"""Cycle accounting: what cycles and events of one core cost on the other, never less than nothing.

    other core's cycles = cost x busy cycles + sum of cost x stalled cycles + sum of cost x events

Divided by this core's cycles that is a ratio of times, linear in counts per cycle, whose costs cannot be negative.
Cycles that are stalled for a counted cause have a cost of their own; a cycle that is not has that of a busy one. The
bounds do what a penalty does elsewhere, and no strength has to be chosen.
"""

from collections.abc import Sequence

import numpy as np

from ampsched.training.features import Feature
from ampsched.training.ridge import Line
from ampsched.training.rows import Array

# Stalls by cause: no cycle is in two of them (`ampsched counters list`).
STALLS = ("stall_branch_cycles", "stall_fetch_cycles", "stall_l2_cycles", "stall_memory_cycles")


def fit(features: Sequence[Feature], values: Array, target: Array) -> Line:
    """Costs of the least squared relative errors, as a line through counts per cycle.

    Args:
        features: Counts per cycle.
        values: Rows x features.
        target: Ratio of times, other core / this core, by row, >0.
    """
    from scipy.optimize import nnls

    stalled = np.array([feature.count in STALLS for feature in features], dtype=bool)
    busy = 1.0 - values[:, stalled].sum(axis=1)
    columns = np.column_stack([busy, values])
    scale = np.maximum(np.abs(columns).max(axis=0), np.finfo(np.float64).tiny)
    costs, _ = nnls(columns / scale / target[:, None], np.ones(len(target)))
    costs = costs / scale
    # A stalled cycle is a busy one less.
    return Line(float(costs[0]), costs[1:] - np.where(stalled, costs[0], 0.0))
