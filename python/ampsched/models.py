"""Model files that predict speed-ups: the shipped ones by name, others by path."""

import functools
from importlib.resources import files
from pathlib import Path

from ampsched._core import DATA_BYTES_MAX, InputError, Machine, Models
from ampsched.files import read_text, shown
from ampsched.naming import unknown

FOLDER = files("ampsched") / "data" / "models"
SUFFIX = ".json"


def model_names() -> list[str]:
    """Names of the shipped models, in alphabetical order."""
    return sorted(
        entry.name.removesuffix(SUFFIX) for entry in FOLDER.iterdir() if entry.name.endswith(SUFFIX)
    )


def load_models(name: str) -> Models:
    """The shipped models of a name, or those of a file (``.json``).

    Raises:
        InputError: If there is no such name or file, or the file is wrong.
    """
    if name.endswith(SUFFIX):
        return Models.parse(shown(name), read_text(Path(name), DATA_BYTES_MAX))
    return _shipped(name)


def models_for(machine: Machine) -> Models:
    """The shipped models of a machine's kinds of core.

    Raises:
        InputError: If none knows its fastest and slowest cores.
    """
    classes = [cluster[4] for cluster in machine.clusters]
    for name in model_names():
        models = _shipped(name)
        known = models.known(machine)
        if models.is_specific and all(
            known[place] for place, found in enumerate(classes) if found in (min(classes), max(classes))
        ):
            return models
    cores = sorted({f"{core_type} at {mhz} MHz" for _, core_type, _, mhz, _ in machine.clusters})
    hint = "train one: ampsched train --machine MACHINE -o model.json; then --factors predicted:model.json"
    raise InputError(f"machine {machine.name}: no shipped model knows {' and '.join(cores)} ({hint})")


@functools.cache
def _shipped(name: str) -> Models:
    if name not in model_names():
        raise unknown("model", name, model_names())
    return Models.parse(f"models/{name}{SUFFIX}", (FOLDER / f"{name}{SUFFIX}").read_text(encoding="utf-8"))
