"""What a regression yields, and how it becomes a speed-up."""

from typing import Literal

import numpy as np

from ampsched.training.rows import Array

# As in a model file's `predicts`.
Quantity = Literal["speedup", "slowdown", "log_speedup"]


def from_speedup(quantity: Quantity, speedup: Array) -> Array:
    """The quantity of speed-ups >0."""
    match quantity:
        case "speedup":
            return speedup
        case "slowdown":
            return np.asarray(1.0 / speedup)
        case "log_speedup":
            return np.asarray(np.log(speedup))


def to_speedup(quantity: Quantity, values: Array, speedup_range: tuple[float, float]) -> Array:
    """Speed-ups of a quantity, kept within a range."""
    low, high = speedup_range
    match quantity:
        case "speedup":
            result = values
        case "slowdown":
            # A slow-down of 0 or less cannot be: as fast as was ever seen.
            result = np.where(values > 0, 1.0 / np.maximum(values, 1e-9), high)
        case "log_speedup":
            result = np.exp(np.clip(values, np.log(low), np.log(high)))
    return np.clip(result, low, high)


def relative_weights(quantity: Quantity, speedup: Array) -> Array:
    """Weights, of mean 1, that make squared errors of the quantity squared shares of the speed-up, to first order."""
    if quantity == "log_speedup":
        return np.ones(len(speedup))
    weights = from_speedup(quantity, speedup) ** -2.0
    return np.asarray(weights / weights.mean())
