"""A model of one kind of core: fit, predict, write."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ampsched.training import regression
from ampsched.training.features import Feature, Per, candidates, events, matrix
from ampsched.training.pmu import Pmu
from ampsched.training.rows import Array, TrainingSet
from ampsched.training.selection import select

# COLAB reads six counters (CGO 2020, table 2).
DEFAULT_COUNTERS = 6
# Digits of a number in a model file: more than any counter is exact to.
DIGITS = 9


@dataclass(frozen=True, slots=True)
class Method:
    """How a model is made.

    `counters` None reads all. Per cycle, a little core's model predicts the slow-down (1 / speed-up), which is then the linear
    quantity.
    """

    per: Per = "cycles"
    kind: regression.Kind = "linear"
    counters: int | None = DEFAULT_COUNTERS

    def __str__(self) -> str:
        count = "all counters" if self.counters is None else f"{self.counters} counters"
        return f"{self.kind}, {count} per {self.per.removesuffix('s')}"


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fitted model."""

    method: Method
    features: tuple[Feature, ...]
    mean: Array
    scale: Array
    low: Array
    high: Array
    regression: Any
    predicts_slowdown: bool
    speedup_range: tuple[float, float]
    capacity_ratio: float

    def predict(self, rows: TrainingSet) -> Array:
        """Speed-up of each row, kept within the training range."""
        values = (matrix(rows, self.features) - self.mean) / self.scale
        result: Array = np.asarray(self.regression.predict(values), dtype=np.float64)
        low, high = self.speedup_range
        if self.predicts_slowdown:
            result = np.where(result > 0, 1.0 / np.maximum(result, 1e-9), high)
        return np.clip(result, low, high)

    def to_json(self, rows: TrainingSet, pmu: Pmu, errors: dict[str, Any]) -> dict[str, Any]:
        """One entry of a model file's `models`."""
        features = [
            {
                "count": feature.count,
                "per": feature.per,
                "mean": _rounded(self.mean[place]),
                "scale": _rounded(self.scale[place]),
                "range": [_rounded(self.low[place]), _rounded(self.high[place])],
            }
            for place, feature in enumerate(self.features)
        ]
        return {
            "core_type": rows.core_type,
            **({"mhz": rows.mhz} if rows.mhz is not None else {}),
            "predicts": "slowdown" if self.predicts_slowdown else "speedup",
            "features": features,
            "regression": _rounded_all(regression.to_json(self.method.kind, self.regression)),
            "speedup_range": [_rounded(value) for value in self.speedup_range],
            "capacity_ratio": _rounded(self.capacity_ratio),
            "running_share": _rounded(pmu.running_share(events(self.features))),
            "errors": errors,
        }


def fit(rows: TrainingSet, method: Method, pmu: Pmu) -> Fitted:
    """Selects features and fits the regression on all rows."""
    features = candidates(rows.counters, method.per)
    values = matrix(rows, features)
    slowdown = method.per == "cycles" and not rows.is_big
    target = 1.0 / rows.speedup if slowdown else rows.speedup
    if method.counters is None:
        chosen = [place for place in range(len(features)) if np.ptp(values[:, place]) > 0]
    else:
        chosen = select(features, values, target, method.counters, pmu)
    values = values[:, chosen]
    mean, scale = values.mean(axis=0), values.std(axis=0)
    return Fitted(
        method=method,
        features=tuple(features[place] for place in chosen),
        mean=mean,
        scale=scale,
        low=values.min(axis=0),
        high=values.max(axis=0),
        regression=regression.fit(method.kind, (values - mean) / scale, target),
        predicts_slowdown=slowdown,
        speedup_range=(float(rows.speedup.min()), float(rows.speedup.max())),
        capacity_ratio=float(np.exp(np.log(rows.speedup).mean())),
    )


def _rounded(value: float) -> float:
    return float(f"{float(value):.{DIGITS}g}")


def _rounded_all(value: Any) -> Any:  # noqa: ANN401  # a JSON value
    match value:
        case float():
            return _rounded(value)
        case list():
            return [_rounded_all(item) for item in value]
        case dict():
            return {key: _rounded_all(item) for key, item in value.items()}
        case _:
            return value
