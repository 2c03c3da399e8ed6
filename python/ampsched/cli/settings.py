"""The settings of simulations as options."""

import inspect
from collections.abc import Callable, Collection
from types import NoneType
from typing import Any, get_args

import typer

from ampsched.cli import injection, options
from ampsched.cli.completing import listed
from ampsched.factors import Factors
from ampsched.noise import AUTO, NONE, noise_names
from ampsched.settings import Declared, complete, declared

SIMULATION = "How it is simulated"
"""Panel of a command's help."""
COMPLETE: dict[str, Callable[[str], list[str]]] = {
    "governor": options.complete_governor,
    "noise": lambda incomplete: listed(incomplete, [AUTO, NONE, *noise_names()]),
    "factors": lambda incomplete: listed(incomplete, get_args(Factors.__annotations__["kind"])),
}
"""How the values of settings are completed that are names."""
PARSERS: dict[object, Callable[[str], object]] = {int: options.whole, float: options.number}


def with_settings(
    settings: type,
    panel: str | None = None,
    *,
    varied: Collection[str] = (),
    without: Collection[str] = (),
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command an option for each setting of a class.

    It gets them, complete and checked, in its parameter ``settings``.

    Args:
        settings: The class.
        panel: Title under which the command's help shows them by themselves.
        varied: Those that may be given several times; the command gets a list of texts of each, as they are.
        without: Those that the command has not.
    """
    rows = {name: row for name, row in declared(settings).items() if name not in without}

    def read(values: dict[str, Any]) -> object:
        single = {name: _read(row, values[name]) for name, row in rows.items() if name not in varied}
        made: dict[str, object] = {**complete(settings, single)}
        made = {name: value for name, value in made.items() if name in rows}
        return {**made, **{name: values[name] for name in varied}}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        made = [_option(row, panel, several=row.name in varied) for row in rows.values()]
        return injection.with_options(command, "settings", made, read)

    return decorate


def _read(row: Declared, value: object) -> object:
    return row.setting.option.read(value) if row.setting.option else value


def _option(row: Declared, panel: str | None, *, several: bool = False) -> inspect.Parameter:
    setting = row.setting
    own = setting.option
    help_ = own.help if own else setting.help
    made = typer.Option(
        own.flag if own else f"--{row.name.replace('_', '-')}",
        *([setting.short] if setting.short else []),
        metavar=setting.metavar,
        parser=PARSERS.get(_given(row)),
        help=f"{help_} Repeatable: each is tried." if several else help_,
        rich_help_panel=panel,
        autocompletion=COMPLETE.get(row.name),
    )
    if several:
        return injection.option(row.name, list[str], [setting.default], made)
    return injection.option(row.name, own.type if own else _kind(row), setting.default, made)


def _kind(row: Declared) -> object:
    """The type of an option as Typer knows it: what is made of a text is one."""
    if row.setting.read:
        return str | None if row.setting.default is None else str
    return row.type


def _given(row: Declared) -> object:
    """The type of a value that is given: a setting may be None if it is not."""
    others = [each for each in get_args(row.type) if each is not NoneType]
    return others[0] if len(others) == 1 else row.type
