"""A model of one kind of core: fit, predict, write."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ampsched.training import costs, regression
from ampsched.training.features import Feature, Per, candidates, events, matrix
from ampsched.training.pmu import Pmu
from ampsched.training.quantity import Quantity, from_speedup, relative_weights, to_speedup
from ampsched.training.ridge import STRENGTHS, Folds, Line
from ampsched.training.rows import Array, TrainingSet
from ampsched.training.selection import SHORTLIST, backward, eliminate, forward, select

# COLAB reads six counters (CGO 2020, table 2).
DEFAULT_COUNTERS = 6
# Digits of a number in a model file: more than any counter is exact to.
DIGITS = 9


# Strength of the penalty while features are selected by errors (our choice: weak); the final one is chosen by the same
# errors.
SELECTING = 1e-2
Target = Literal["ratio", "log"]
Selection = Literal["components", "forward", "backward"]


@dataclass(frozen=True, slots=True)
class Method:
    """How a model is made: a recipe.

    `counters` None reads all. `target` says what is regressed: the logarithm of the speed-up, or a ratio of times; per
    cycle, a little core's ratio is the slow-down (1 / speed-up), which is then the linear quantity. `linear` is plain
    least squares, `ridge` least squares of relative errors with a penalty, `costs` cycle accounting (per cycle, of a
    ratio). `selection` by ``forward`` or ``backward`` steps looks at errors on groups left out of the training rows and
    is for `ridge`; `costs` drop what matters least.
    """

    per: Per = "cycles"
    kind: regression.Kind = "linear"
    counters: int | None = DEFAULT_COUNTERS
    target: Target = "ratio"
    selection: Selection = "components"

    def __str__(self) -> str:
        count = "all counters" if self.counters is None else f"{self.counters} counters"
        way = "" if self.counters is None or self.kind == "costs" else f" by {self.selection}"
        target = " of the logarithm" if self.target == "log" else ""
        return f"{self.kind}{target}, {count}{way} per {self.per.removesuffix('s')}"

    def quantity(self, *, is_big: bool) -> Quantity:
        """What the regression yields from the counters of a big or a little core."""
        if self.target == "log":
            return "log_speedup"
        return "slowdown" if self.per == "cycles" and not is_big else "speedup"


def default_method(counters: int | None = DEFAULT_COUNTERS, *, is_big: bool) -> Method:
    """The recipe that nested cross-validation chose for counters of big or little cores."""
    if is_big:
        return Method("cycles", "costs", counters)
    return Method("cycles", "ridge", counters, "log", "forward")


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
    predicts: Quantity
    speedup_range: tuple[float, float]
    capacity_ratio: float

    def predict(self, rows: TrainingSet) -> Array:
        """Speed-up of each row, kept within the training range."""
        values = (matrix(rows, self.features) - self.mean) / self.scale
        result: Array = np.asarray(self.regression.predict(values), dtype=np.float64)
        return to_speedup(self.predicts, result, self.speedup_range)

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
            "predicts": self.predicts,
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
    predicts = method.quantity(is_big=rows.is_big)
    target = from_speedup(predicts, rows.speedup)
    speedup_range = (float(rows.speedup.min()), float(rows.speedup.max()))
    varying = [place for place in range(len(features)) if np.ptp(values[:, place]) > 0]
    mean, scale = values.mean(axis=0), np.where(np.ptp(values, axis=0) > 0, values.std(axis=0), 1.0)
    standard = (values - mean) / scale
    if method.kind == "costs":
        chosen, made = _costs(features, values, target, method.counters, pmu, varying)
        made = Line(made.intercept_ + float(made.coef_ @ mean[chosen]), made.coef_ * scale[chosen])
    elif method.kind == "ridge":
        folds = Folds.of(standard, target, relative_weights(predicts, rows.speedup), rows.groups)
        judge = _Judge(folds, predicts, rows.speedup, speedup_range)
        chosen = varying
        if method.counters is not None:
            chosen = _chosen(features, values, target, method, method.counters, pmu, judge)
        made = folds.line(chosen, min(STRENGTHS, key=lambda strength: judge.error([chosen], strength)[0]))
    else:
        chosen = varying
        if method.counters is not None:
            chosen = select(features, values, target, method.counters, pmu)
        made = regression.fit(method.kind, standard[:, chosen], target)
    return Fitted(
        method=method,
        features=tuple(features[place] for place in chosen),
        mean=mean[chosen],
        scale=scale[chosen],
        low=values[:, chosen].min(axis=0),
        high=values[:, chosen].max(axis=0),
        regression=made,
        predicts=predicts,
        speedup_range=speedup_range,
        capacity_ratio=float(np.exp(np.log(rows.speedup).mean())),
    )


def _costs(
    features: Sequence[Feature], values: Array, target: Array, k: int | None, pmu: Pmu, varying: list[int]
) -> tuple[list[int], Line]:
    """Features and costs; the feature that moves the result least goes until enough are gone."""

    def line(chosen: Sequence[int]) -> Line:
        return costs.fit([features[place] for place in chosen], values[:, chosen], target)

    chosen = varying
    if k is not None:
        chosen = eliminate(
            features, values, k, pmu, lambda left: line(left).coef_ * values[:, left].std(axis=0)
        )
    return chosen, line(chosen)


@dataclass(frozen=True, slots=True)
class _Judge:
    """Errors of choices of features on groups left out of the training rows."""

    folds: Folds
    predicts: Quantity
    speedup: Array
    speedup_range: tuple[float, float]

    def error(self, choices: Sequence[Sequence[int]], strength: float = SELECTING) -> Array:
        """Mean absolute error of each choice, as a share of the speed-up."""
        values = self.folds.left_out(choices, strength)
        predicted = to_speedup(self.predicts, values, self.speedup_range)
        truth = self.speedup[:, None]
        result: Array = np.mean(np.abs(predicted - truth) / truth, axis=0)
        return result


def _chosen(
    features: Sequence[Feature],
    values: Array,
    target: Array,
    method: Method,
    k: int,
    pmu: Pmu,
    judge: _Judge,
) -> list[int]:
    match method.selection:
        case "components":
            return select(features, values, target, k, pmu)
        case "forward":
            return forward(features, k, pmu, judge.error)
        case "backward":
            unlimited = Pmu(len(features) + 1, pmu.fixed)
            shortlist = select(features, values, target, SHORTLIST * k, unlimited)
            return backward(features, shortlist, k, pmu, judge.error)


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
