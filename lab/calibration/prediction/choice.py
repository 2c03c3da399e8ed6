"""Which recipe is the default for the counters of big cores, and of little ones: nested cross-validation.

One recipe for all core types of a side: with some dozens of programs the choice for one of them alone is decided by
chance.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ampsched.training.model import Method, fit
from ampsched.training.pmu import pmu_of
from ampsched.training.rows import TrainingSet

# The first is the papers' (CGO 2020, section 4.1: principal components, a linear model of counts per instruction), the
# second the same per cycle, the third trees.
TARGETS: tuple[Literal["ratio", "log"], ...] = ("ratio", "log")
SELECTIONS: tuple[Literal["components", "forward", "backward"], ...] = ("components", "forward", "backward")
RECIPES = (
    Method("instructions", "linear", target="ratio", selection="components"),
    Method("cycles", "linear", target="ratio", selection="components"),
    Method("cycles", "trees", target="ratio", selection="components"),
    Method("cycles", "costs"),
    *(Method("cycles", "ridge", target=target, selection=way) for target in TARGETS for way in SELECTIONS),
)
# Parts into which the programs that are not left out are divided (our choice; five or ten are usual).
PARTS = 5


@dataclass(frozen=True)
class Nested:
    """What comes out if the choice of the recipe, too, sees the training programs only."""

    predicted: list[NDArray[np.float64]]
    """Predictions by set of rows."""
    chosen: Counter[str]
    """How often each recipe was chosen."""


def nested(sets: Sequence[TrainingSet]) -> Nested:
    """Leaves out one program at a time from all sets; the others choose the recipe and train it."""
    predicted = [np.empty(len(rows)) for rows in sets]
    chosen: Counter[str] = Counter()
    for group in sorted({group for rows in sets for group in rows.groups}):
        out = [np.array(rows.groups) == group for rows in sets]
        kept = [rows.rows(~left) for rows, left in zip(sets, out, strict=True)]
        recipe = best(kept)
        chosen[str(recipe)] += 1
        for values, rows, left, training in zip(predicted, sets, out, kept, strict=True):
            values[left] = fit(training, recipe, pmu_of(rows.core_type)).predict(rows.rows(left))
    return Nested(predicted, chosen)


def best(sets: Sequence[TrainingSet]) -> Method:
    """The recipe of the least mean error over all sets, each part of the programs being left out once."""
    return min(RECIPES, key=lambda recipe: np.mean([error_in_parts(rows, recipe) for rows in sets]))


def error_in_parts(rows: TrainingSet, recipe: Method) -> float:
    """Mean absolute error, as a share of the speed-up."""
    names = sorted(set(rows.groups))
    part = np.array([names.index(name) % PARTS for name in rows.groups])
    errors = []
    for number in sorted(set(part)):
        out = part == number
        truth = rows.speedup[out]
        predicted = fit(rows.rows(~out), recipe, pmu_of(rows.core_type)).predict(rows.rows(out))
        errors.append(np.abs(predicted - truth) / truth)
    return float(np.concatenate(errors).mean())
