"""Finds the laboratory, which repeats papers' experiments with ampsched: a package of its own beside this one."""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from ampsched._core import InputError

PACKAGE = "ampsched_lab"
FOLDER = "lab"
"""Where it is in a checkout."""


def module(name: str) -> ModuleType:
    """A module of the laboratory: of the installed one, or of the checkout in or above the present folder.

    Args:
        name: Below the package, such as ``papers.command``.

    Raises:
        InputError: If there is no laboratory, or something that it needs is not installed.
    """
    if find_spec(PACKAGE) is None:
        here = Path.cwd()
        found = [each / FOLDER for each in (here, *here.parents) if (each / FOLDER / PACKAGE).is_dir()]
        if not found:
            raise InputError(
                "this needs the laboratory of ampsched, which is not part of the package: run it in a checkout of "
                "https://github.com/ampsched/ampsched, or install the checkout's folder lab (pip install ./lab)"
            )
        sys.path.append(str(found[0]))
    try:
        return import_module(f"{PACKAGE}.{name}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith(("ampsched.", f"{PACKAGE}.")):
            raise
        raise InputError(
            f"the laboratory needs the package {error.name}: pip install the checkout's folder lab (pip install ./lab)"
        ) from None
