"""Texts of the form ``name:key=value:key=value``."""

import functools
import math
from collections.abc import Callable, Sequence

from ampsched import _core
from ampsched._core import InputError, named_value
from ampsched._rows import RegistryRow, TaskProgramRow
from ampsched.files import shown
from ampsched.naming import check_known

_ROWS: dict[str, Callable[[], Sequence[RegistryRow | TaskProgramRow]]] = {
    "policy": _core.policies,
    "governor": _core.governors,
    "task policy": _core.task_policies,
    "task program": _core.task_programs,
}
"""What is registered."""


def registered_spec(text: str, what: str) -> tuple[str, tuple[tuple[str, float], ...]]:
    """The same as `parse_spec` for the name of something registered.

    Args:
        text: The text.
        what: ``policy``, ``governor``, ``task policy`` or ``task program``.

    Raises:
        InputError: As there, or nothing of that kind has that name.
    """
    name, params = parse_spec(text, what)
    check_known(what, name, _names(what))
    return name, params


@functools.cache
def _names(what: str) -> tuple[str, ...]:
    return tuple(row["name"] for row in _ROWS[what]())


def parse_spec(text: str, what: str) -> tuple[str, tuple[tuple[str, float], ...]]:
    """Splits ``colab:literal=1:decay=0.8`` into its name and its parameters.

    Args:
        text: The text.
        what: What it is, for messages.

    Raises:
        InputError: If a part is not of the form ``key=number``, or a key comes twice. Some values of policies have
            names, such as ``kernel=android-4.14``.
    """
    name, *parts = shown(text).strip().split(":")
    if not name:
        raise InputError(f'{what}: "{text}" has no name')
    params: dict[str, float] = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if not key or not equals:
            raise InputError(f'{what} {name}: "{part}" is not of the form parameter=number')
        if key in params:
            raise InputError(f"{what} {name}: parameter {key} is given twice")
        named = named_value(name, key, value) if what == "policy" else None
        params[key] = parse_number(value, f"{what} {name}: parameter {key}") if named is None else named
    return name, tuple(params.items())


def parse_number(text: str, what: str) -> float:
    """Reads a finite number; raises `InputError` that begins with `what`."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f'{what} = "{text}" is not a number')
    return number
