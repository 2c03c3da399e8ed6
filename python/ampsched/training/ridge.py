"""Ridge regression, tested on groups that are left out, for many choices of features at once.

A fit needs no more than weighted sums of products; the sums without a group are those of all rows less the group's. So
thousands of choices are tested in the time of some fits.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ampsched.training.rows import Array

# Strengths that are tried, as shares of the rows' weight (our choice: from none to a third; features are standardised).
STRENGTHS = (1e-4, 1e-3, 1e-2, 3e-2, 0.1, 0.3)


@dataclass(frozen=True, slots=True)
class Line:
    """Intercept + sum of coefficient x feature; names as scikit-learn has them."""

    intercept_: float
    coef_: Array

    def predict(self, values: Array) -> Array:
        """Its value for each row."""
        result: Array = self.intercept_ + values @ self.coef_
        return result


@dataclass(frozen=True, slots=True)
class Folds:
    """Rows with what is needed to fit them without any one group."""

    values: Array
    """Rows x (1 + features): a leading 1, standardised features."""
    gram: Array
    """Weighted sums of products of all rows."""
    moment: Array
    grams: Array
    """The same without each group: groups x (1 + features) x (1 + features)."""
    moments: Array
    fold: NDArray[np.intp]
    """Group of each row."""

    @staticmethod
    def of(values: Array, target: Array, weights: Array, groups: Sequence[str]) -> "Folds":
        """Sums of standardised features.

        Args:
            values: Rows x features, standardised.
            target: What is regressed, by row.
            weights: Weights of the squared errors, >0.
            groups: Group of each row; at least two of them.
        """
        ones = np.column_stack([np.ones(len(values)), values])
        names, fold = np.unique(np.array(groups), return_inverse=True)
        weighted = ones * weights[:, None]
        gram, moment = weighted.T @ ones, weighted.T @ target
        mine = [fold == number for number in range(len(names))]
        parts = [(weighted[rows].T @ ones[rows], weighted[rows].T @ target[rows]) for rows in mine]
        return Folds(
            values=ones,
            gram=gram,
            moment=moment,
            grams=gram - np.array([part for part, _ in parts]),
            moments=moment - np.array([part for _, part in parts]),
            fold=fold,
        )

    def left_out(self, choices: Sequence[Sequence[int]], strength: float) -> Array:
        """What fits without a row's group say of the row: rows x choices.

        Args:
            choices: Places of features, equally many in each choice.
            strength: Strength of the penalty.
        """
        # Place 0 is the intercept's.
        places = np.array([[0, *(place + 1 for place in choice)] for choice in choices])
        grams = self.grams[:, places[:, :, None], places[:, None, :]]
        lines = _solved(grams, self.moments[:, places], strength)
        result: Array = np.einsum("rcf,rcf->rc", self.values[:, places], lines[self.fold])
        return result

    def line(self, choice: Sequence[int], strength: float) -> Line:
        """The fit to all rows."""
        places = np.array([0, *(place + 1 for place in choice)])
        found = _solved(self.gram[np.ix_(places, places)], self.moment[places], strength)
        return Line(float(found[0]), found[1:])


def _solved(grams: Array, moments: Array, strength: float) -> Array:
    """Coefficients; the intercept, which is first, is not penalised."""
    penalty = strength * np.eye(grams.shape[-1])
    penalty[0, 0] = 0.0
    weight = grams[..., :1, :1]
    found = np.linalg.solve(grams + weight * penalty, moments[..., None])
    return np.asarray(found[..., 0], dtype=np.float64)
