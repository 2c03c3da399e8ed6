"""How good a model is on programs that it has never seen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ampsched.training.features import Feature, matrix
from ampsched.training.model import Method, fit
from ampsched.training.pmu import Pmu
from ampsched.training.rows import Array, TrainingSet

# A predictor: trained on some rows, it predicts others.
Predict = Callable[[TrainingSet, TrainingSet], Array]
# Labels begin half a standard deviation from the mean, as this project's COLAB has it (the paper gives no threshold).
LABEL_SIGMA = 0.5
RESAMPLES = 1000
CURVE_DRAWS = 10
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors over rows of programs that were left out; errors are shares of the true speed-up."""

    rows: int
    r2: float
    """Coefficient of determination; below 0: worse than the rows' own mean."""
    mean: float
    """Mean absolute error."""
    mean_interval: tuple[float, float]
    """95 % interval of it, by drawing programs anew."""
    worst: float
    """Greatest absolute error."""
    rank: float
    """Spearman's rank correlation; 0 if the prediction is constant."""
    labels: float
    """Share of rows that COLAB would label as with the true speed-ups."""
    labels_interval: tuple[float, float]
    loss: float
    """Share of the mean speed-up on big cores that is lost if they go to as many rows of the highest prediction as are
    truly labelled high, instead of to those; 0 if none is."""

    def to_json(self) -> dict[str, float | list[float]]:
        """Rounded numbers for a model file."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {
            name: [round(item, 4) for item in value] if isinstance(value, tuple) else round(value, 4)
            for name, value in values.items()
        }


def trained(method: Method, pmu: Pmu) -> Predict:
    """The method under test: selection and regression see the training rows only."""
    return lambda train, test: fit(train, method, pmu).predict(test)


def constant(train: TrainingSet, test: TrainingSet) -> Array:
    """Baseline: the mean speed-up of the training rows."""
    return np.full(len(test), train.speedup.mean())


def ipc_only(train: TrainingSet, test: TrainingSet) -> Array:
    """Baseline: a straight line through IPC; the mean speed-up if all have the same IPC."""
    ipc = [Feature("instructions", "cycles")]
    if np.ptp(matrix(train, ipc)) <= 1e-12:
        return constant(train, test)
    slope, intercept = np.polyfit(matrix(train, ipc)[:, 0], train.speedup, 1)
    line: Array = np.clip(
        intercept + slope * matrix(test, ipc)[:, 0], train.speedup.min(), train.speedup.max()
    )
    return line


def pie(train: TrainingSet, test: TrainingSet) -> Array:
    """Baseline: PIE's formula, which is not trained; the training rows' mean where its inputs are missing."""
    return np.where(np.isfinite(test.pie), test.pie, train.speedup.mean())


BASELINES: dict[str, Predict] = {"constant": constant, "IPC only": ipc_only, "PIE": pie}


def leave_one_out(rows: TrainingSet, predict: Predict) -> Array:
    """Predictions of every group by a model that was trained on all others."""
    predicted = np.empty(len(rows))
    groups = np.array(rows.groups)
    for group in sorted(set(rows.groups)):
        out = groups == group
        predicted[out] = predict(rows.rows(~out), rows.rows(out))
    return predicted


def labels(speedups: Array) -> Array:
    """COLAB's labels: 1 high, -1 low, 0 neither."""
    mean, sigma = speedups.mean(), speedups.std()
    high, low = speedups >= mean + LABEL_SIGMA * sigma, speedups <= mean - LABEL_SIGMA * sigma
    return np.where(high & ~low, 1.0, np.where(low & ~high, -1.0, 0.0))


def errors(rows: TrainingSet, predicted: Array, seed: int = 1) -> Errors:
    """Compares predictions with the truth; intervals by drawing groups with replacement."""
    from scipy.stats import spearmanr

    relative = np.abs(predicted - rows.speedup) / rows.speedup
    right = (labels(predicted) == labels(rows.speedup)).astype(np.float64)
    residual = np.sum((predicted - rows.speedup) ** 2)
    total = np.sum((rows.speedup - rows.speedup.mean()) ** 2)
    flat = np.ptp(predicted) <= 1e-12
    return Errors(
        rows=len(rows),
        r2=float(1 - residual / total) if total > 0 else 0.0,
        mean=float(relative.mean()),
        mean_interval=_interval(rows.groups, relative, seed),
        worst=float(relative.max()),
        rank=0.0 if flat else float(spearmanr(predicted, rows.speedup).statistic),
        labels=float(right.mean()),
        labels_interval=_interval(rows.groups, right, seed),
        loss=loss(rows.speedup, predicted),
    )


def loss(speedup: Array, predicted: Array) -> float:
    """Share of the mean speed-up that is lost by choosing the highest predictions instead of the truly high ones."""
    high = labels(speedup) == 1
    if not high.any():
        return 0.0
    chosen = np.argsort(-predicted, kind="stable")[: int(high.sum())]
    return max(0.0, float(1 - speedup[chosen].mean() / speedup[high].mean()))


def _interval(groups: Sequence[str], values: Array, seed: int) -> tuple[float, float]:
    """95 % percentile interval of the mean over groups drawn with replacement."""
    random = np.random.default_rng(seed)
    names = np.array(groups)
    sums = np.array([[values[names == name].sum(), (names == name).sum()] for name in sorted(set(groups))])
    drawn = sums[random.integers(0, len(sums), (RESAMPLES, len(sums)))].sum(axis=1)
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def learning_curve(
    rows: TrainingSet, predict: Predict, sizes: Sequence[int], seed: int = 1
) -> list[tuple[int, float]]:
    """Mean absolute error on unseen groups by the number of groups that a model was trained on."""
    random = np.random.default_rng(seed)
    names = np.array(sorted(set(rows.groups)))
    groups = np.array(rows.groups)
    curve = []
    for size in sizes:
        found = []
        for _ in range(CURVE_DRAWS):
            known = np.isin(groups, random.choice(names, size, replace=False))
            test = rows.rows(~known)
            predicted = predict(rows.rows(known), test)
            found.append(float(np.mean(np.abs(predicted - test.speedup) / test.speedup)))
        curve.append((size, float(np.mean(found))))
    return curve
