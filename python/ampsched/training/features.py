"""Features: counts divided by instructions or by cycles."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ampsched.training.rows import Array, TrainingSet

Per = Literal["instructions", "cycles"]


@dataclass(frozen=True, slots=True, order=True)
class Feature:
    """A count divided by another one."""

    count: str
    per: str

    def __str__(self) -> str:
        return "IPC" if (self.count, self.per) == ("instructions", "cycles") else f"{self.count}/{self.per}"


def candidates(counters: Sequence[str], per: Per) -> list[Feature]:
    """All features of some counters: each one per instruction (the papers' way) or per cycle, and IPC.

    Per cycle, the speed-up of a big core is linear in the features if the little core's cycles are linear in the
    events: it is (little cycles / instructions) / (big cycles / instructions).
    """
    features = [Feature(name, per) for name in counters if name not in ("instructions", per)]
    return [*features, Feature("instructions", "cycles")]


def matrix(rows: TrainingSet, features: Sequence[Feature]) -> Array:
    """Values of features (rows x features)."""
    columns = [rows.column(feature.count) / rows.column(feature.per) for feature in features]
    return np.column_stack(columns) if columns else np.empty((len(rows), 0))


def events(features: Sequence[Feature]) -> set[str]:
    """Counters that some features need."""
    return {name for feature in features for name in (feature.count, feature.per)}
