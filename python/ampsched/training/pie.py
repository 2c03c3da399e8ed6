"""PIE's formula (Van Craeynest et al., ISCA 2012), a baseline.

CPI = CPI_base + CPI_mem. Memory-level parallelism is misses per instruction times the reorder buffer on the big core.
PIE profiles dependence distances in hardware; counters do not have them, so the little core waits at each miss (MLP 1,
"stall on miss") and keeps the big core's base CPI, but for its width.
"""

from dataclasses import dataclass

import numpy as np

from ampsched.training.rows import Array


@dataclass(frozen=True, slots=True)
class Pair:
    """What PIE knows of a pair of cores."""

    big_width: float
    big_window: float
    """Reorder buffer in operations."""
    little_width: float
    big_per_little_clock: float
    """Frequency of the big core / frequency of the little one."""


def pie_from_little(pair: Pair, cpi: Array, memory_cpi: Array, misses: Array) -> Array:
    """Speed-up from the little core's CPI, its part by memory, and last-level misses per instruction."""
    mlp = np.maximum(misses * pair.big_window, 1.0)
    # Memory takes the same time, so its cycles grow with the clock.
    big_memory_cpi = memory_cpi / mlp * pair.big_per_little_clock
    big_cpi: Array = 1.0 / pair.big_width + big_memory_cpi
    return cpi / big_cpi * pair.big_per_little_clock


def pie_from_big(pair: Pair, cpi: Array, memory_cpi: Array, misses: Array) -> Array:
    """Speed-up from the big core's CPI, its part by memory, and last-level misses per instruction."""
    mlp = np.maximum(misses * pair.big_window, 1.0)
    base_cpi = np.maximum(cpi - memory_cpi, 1.0 / pair.little_width)
    little_cpi: Array = base_cpi + memory_cpi * mlp / pair.big_per_little_clock
    return little_cpi / cpi * pair.big_per_little_clock
