"""Options and commands of ``ampsched-live`` that ``ampsched live`` passes on without knowing them."""

import inspect
import os
from collections.abc import Callable
from typing import Any

import typer
from typer._click.core import Context
from typer._click.shell_completion import CompletionItem
from typer.core import TyperCommand

from ampsched._core import InputError
from ampsched.cli import injection
from ampsched.cli.options import complete_policy
from ampsched.live import machine
from ampsched.live.commands import Option, subcommands
from ampsched.live.program import live_program

OWN_GROUPS = ("scope", "record")
"""Settings that a comparison makes for each of its sessions itself: whom it schedules, and what it writes."""

SESSIONS = "Each session"
"""Group of options in the help: those of ``ampsched live run``."""

_MACHINE = injection.option(
    "machine",
    str | None,
    None,
    typer.Option(
        *machine.FLAGS,
        metavar="NAME|FILE|this",
        help="Classes, speeds and power of cores by a machine file.",
        rich_help_panel=SESSIONS,
    ),
)


class PassedOn(TyperCommand):
    """A command whose arguments, ``--`` and ``--help`` included, are those of ``ampsched-live``."""

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """Its options, and the values of those with choices; a policy's parameters, too."""
        options = subcommands()[str(ctx.info_name)].options
        before = ctx.args[-1] if ctx.args else ""
        if "--" in ctx.args:
            return []
        given = [option for option in options if before in option.flags and option.metavar is not None]
        if given:
            return [CompletionItem(value) for value in _values(given[0], incomplete)]
        if not incomplete.startswith("-"):
            return []
        flags = [flag for option in options for flag in (*option.flags, "--help")]
        flags += machine.FLAGS[:1] * knows_cores(str(ctx.info_name))
        return [CompletionItem(flag) for flag in dict.fromkeys(flags) if flag.startswith(incomplete)]

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Takes the arguments as they are."""
        ctx.args = list(args)
        return []


def _values(option: Option, incomplete: str) -> list[str]:
    """The values of an option that are names."""
    if option.name == "policy":
        return complete_policy(incomplete)
    return [choice for choice in option.choices if choice.startswith(incomplete)]


def _completer(option: Option) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return _values(option, incomplete)

    return complete


def pass_on(context: typer.Context) -> None:
    """Becomes ``ampsched-live`` with the same arguments."""
    name, arguments = str(context.info_name), context.args
    if knows_cores(name):
        arguments = machine.with_machine(arguments)
    program = str(live_program())
    os.execv(program, [program, name, *arguments])  # noqa: S606


def knows_cores(name: str) -> bool:
    """Whether a command can be told which cores are fast, so ``--machine`` can."""
    return any(option.group == "cores" for option in subcommands()[name].options)


def session_options() -> list[Option]:
    """The options of ``ampsched-live run`` that a comparison passes on to its sessions."""
    options = subcommands()["run"].options
    return [option for option in options if option.group not in OWN_GROUPS and option.name != "policy"]


def with_session_options(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command those options; it gets them as arguments in its parameter ``options``."""
    options = session_options()

    def arguments(values: dict[str, Any]) -> list[str]:
        words = [word for option in options for word in _words(option, values[option.name])]
        own = values[_MACHINE.name]
        return machine.with_machine([*words, f"{machine.FLAGS[0]}={own}"]) if own else words

    return injection.with_options(command, "options", [*map(_parameter, options), _MACHINE], arguments)


def _parameter(option: Option) -> inspect.Parameter:
    kind: object = list[str] | None if option.is_repeatable else str | None
    kind, default = (bool, False) if option.metavar is None else (kind, option.default)
    metavar = "|".join(option.choices) or option.metavar
    values = _completer(option) if option.choices else None
    declared = typer.Option(
        *option.flags,
        metavar=metavar,
        help=f"{option.help}.",
        autocompletion=values,
        rich_help_panel=SESSIONS,
    )
    return injection.option(option.name, kind, default, declared)


def _words(option: Option, value: Any) -> list[str]:  # noqa: ANN401
    """An option with a value as arguments."""
    if value == option.default:
        return []
    if option.choices and value not in option.choices:
        *others, last = option.choices
        raise InputError(f'{option.flags[-1]} "{value}" is not {", ".join(others)} or {last}')
    return option.arguments(value)
