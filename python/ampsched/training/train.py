"""From training rows to a model file with its errors."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ampsched
from ampsched.files import write_text
from ampsched.training import require_sklearn
from ampsched.training.features import events
from ampsched.training.model import DEFAULT_COUNTERS, Fitted, Method, default_method, fit
from ampsched.training.pmu import Pmu, pmu_of
from ampsched.training.rows import TrainingSet, clean
from ampsched.training.validation import BASELINES, Errors, errors, leave_one_out, trained

FORMAT = "ampsched-speedup-1"


@dataclass(frozen=True, slots=True)
class Trained:
    """The model of one kind of core with what cross-validation says of it and of the baselines."""

    rows: TrainingSet
    fitted: Fitted
    pmu: Pmu
    errors: Errors
    baselines: dict[str, Errors]


def train(
    sets: Sequence[TrainingSet],
    method: Method | None = None,
    pmu: Pmu | None = None,
    counters: int | None = DEFAULT_COUNTERS,
) -> list[Trained]:
    """Cleans rows, cross-validates leaving one group out at a time, and fits on all of them.

    Args:
        sets: One set per kind of core.
        method: How models are made; by default as suits the counters of big and of little cores.
        pmu: The PMU of all kinds of core; by default each one's own.
        counters: Most counters of the default methods; None: all.

    Raises:
        InputError: If scikit-learn is missing, or a set has too few programs.
    """
    require_sklearn()
    return [
        _train(
            clean(rows),
            method or default_method(counters, is_big=rows.is_big),
            pmu or pmu_of(rows.core_type),
        )
        for rows in sets
    ]


def _train(rows: TrainingSet, method: Method, pmu: Pmu) -> Trained:
    return Trained(
        rows=rows,
        fitted=fit(rows, method, pmu),
        pmu=pmu,
        errors=errors(rows, leave_one_out(rows, trained(method, pmu))),
        baselines={name: errors(rows, leave_one_out(rows, predict)) for name, predict in BASELINES.items()},
    )


def model_file(name: str, models: Sequence[Trained], provenance: dict[str, Any]) -> dict[str, Any]:
    """A model file as `_core.Models.parse` reads it."""
    entries = []
    for made in models:
        facts = {"leave_one_program_out": made.errors.to_json(), "events_at_once": made.pmu.counters}
        facts |= {"method": str(made.fitted.method)}
        facts |= {f"baseline_{name}": found.to_json() for name, found in made.baselines.items()}
        entries.append(made.fitted.to_json(made.rows, made.pmu, facts))
    first = models[0]
    facts = {
        "made_by": f"ampsched {ampsched.__version__}",
        "rows": first.rows.name,
        "programs": sorted(set(first.rows.programs)),
        "cleaning": sorted({note for made in models for note in made.rows.notes}),
        **provenance,
    }
    return {"format": FORMAT, "name": name, "provenance": facts, "models": entries}


def write_model(path: Path, content: dict[str, Any]) -> None:
    """Writes a model file."""
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")


def needed_events(made: Trained) -> list[str]:
    """Counters that the model reads."""
    return sorted(events(made.fitted.features))
