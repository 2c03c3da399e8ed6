"""COLAB's printed model on the counters of real gem5 runs: why it cannot separate threads."""

import json
from dataclasses import dataclass

import numpy as np
from gem5_rows import number, read

from ampsched.models import FOLDER

# Lines of a 32 KiB L1 data cache of 64-byte lines: the most that tags in use can be. The collected files leave the
# statistic out.
TAGS_MAX = 512


@dataclass(frozen=True)
class Table2:
    """What the printed model predicts for the big cores' runs."""

    runs: int
    constant: float
    low: float
    high: float
    deviation: float
    true_low: float
    true_high: float
    true_deviation: float
    correlation: float
    terms: tuple[tuple[str, float, float, float], ...]
    """Counter, coefficient, greatest count per instruction, greatest term."""


def evaluate() -> Table2:
    model = json.loads((FOLDER / "colab-table2.json").read_text())["models"][0]
    runs, pairs = read("big"), read("pairs")
    instructions = np.array([number(run["instructions"]) for run in runs])
    truth = np.array([float(pair["speedup_cycles"]) for pair in pairs])
    predicted = np.full(len(runs), model["regression"]["intercept"])
    terms = []
    for feature, coefficient in zip(model["features"], model["regression"]["coefficients"], strict=True):
        name = feature["count"]
        counts = np.array([number(run.get(name, "")) for run in runs])
        if name == "l1d_tags_in_use":
            counts = np.full(len(runs), float(TAGS_MAX))
        rates = np.nan_to_num(counts) / instructions
        predicted = predicted + coefficient * rates
        terms.append((name, coefficient, float(rates.max()), float(np.abs(coefficient * rates).max())))
    return Table2(
        len(runs), float(model["regression"]["intercept"]),
        float(predicted.min()), float(predicted.max()), float(predicted.std()),
        float(truth.min()), float(truth.max()), float(truth.std()),
        float(np.corrcoef(predicted, truth)[0, 1]), tuple(terms),
    )  # fmt: skip
