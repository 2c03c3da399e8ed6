"""Mixes of real programs, from TOML files."""

import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ampsched._core import InputError
from ampsched.files import read_text

DELAY_S_MAX = 3600.0


@dataclass(frozen=True, slots=True)
class MixProgram:
    """A program of a mix."""

    name: str
    command: tuple[str, ...]
    delay_s: float = 0.0
    """When it starts, in s after the first one."""


@dataclass(frozen=True, slots=True)
class Mix:
    """Programs that run at the same time."""

    name: str
    programs: tuple[MixProgram, ...]


def read_mix(path: Path) -> Mix:
    """Reads a mix: tables ``[[programs]]`` with ``name``, ``command`` (a list, or text as for a shell) and ``delay_s``.

    Raises:
        InputError: If the file cannot be read, or a key or value is wrong.
    """
    try:
        table = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: {error}") from None
    _refuse_unknown(path, "", table, {"programs"})
    rows = table.get("programs")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path}: programs: at least one table [[programs]] is needed")
    programs = tuple(_program(path, f"programs[{number}]", row) for number, row in enumerate(rows))
    names = [program.name for program in programs]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f'{path}: programs: the name "{name}" is given twice')
    return Mix(path.stem, programs)


def _refuse_unknown(path: Path, where: str, table: dict[str, Any], known: set[str]) -> None:
    for key in table:
        if key not in known:
            raise InputError(f"{path}: {where}{key}: unknown key (known: {', '.join(sorted(known))})")


def _program(path: Path, where: str, row: dict[str, Any]) -> MixProgram:
    _refuse_unknown(path, f"{where}.", row, {"name", "command", "delay_s"})
    command = _command(path, where, row.get("command"))
    name = row.get("name", Path(command[0]).name)
    if not isinstance(name, str) or not name:
        raise InputError(f"{path}: {where}.name: {name!r} is not a name")
    delay_s = row.get("delay_s", 0.0)
    if isinstance(delay_s, bool) or not isinstance(delay_s, int | float) or not 0 <= delay_s <= DELAY_S_MAX:
        raise InputError(f"{path}: {where}.delay_s: {delay_s!r} is not within 0 to {DELAY_S_MAX:g}")
    return MixProgram(name, command, float(delay_s))


def _command(path: Path, where: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        try:
            words = shlex.split(value)
        except ValueError as error:
            raise InputError(f"{path}: {where}.command: {error}") from None
    elif isinstance(value, list) and all(isinstance(word, str) for word in value):
        words = value
    else:
        raise InputError(f"{path}: {where}.command: a text or a list of texts is needed")
    if not words:
        raise InputError(f"{path}: {where}.command: is empty")
    return tuple(words)
