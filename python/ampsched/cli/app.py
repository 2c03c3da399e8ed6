"""The commands put together, and what every one of them does with an error."""

import atexit
import contextlib
import errno
import importlib
import io
import os
import re
import signal
import sys
from collections import UserDict
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer._click.core import Command, Context
from typer._click.exceptions import NoArgsIsHelpError, NoSuchOption
from typer._click.formatting import HelpFormatter
from typer._click.shell_completion import CompletionItem
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command, get_command_from_info, get_group
from typer.models import CommandInfo

import ampsched
from ampsched.children import SIGNALLED
from ampsched.cli import COMPLETION, commands, helping, texts, version
from ampsched.cli.signals import exit_code
from ampsched.files import panics_told
from ampsched.naming import unknown

BAD_INPUT = 2
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

_NO_COMMAND = re.compile("No such command '(.*?)'\\.")
_NO_CHOICE = re.compile("Invalid value for '(.*)': '(.*)' is not one of (.*)\\.$")

for _class in (TyperCommand, TyperGroup):
    _class.format_help = helping.write_page  # type: ignore[assignment, method-assign]


_parse_args = TyperCommand.parse_args


def _parse_once(command: TyperCommand, context: Context, args: list[str]) -> list[str]:
    """Reads arguments, and refuses an option that is given twice: else the first value would be dropped.

    Raises:
        InputError: That.
    """
    if not context.resilient_parsing:
        given = command.make_parser(context).parse_args(list(args))[2]
        for param in given:
            if isinstance(param, TyperOption) and not (param.multiple or param.is_flag or param.count):
                _refuse_several(param, given.count(param))
    return _parse_args(command, context, args)


def _refuse_several(option: TyperOption, count: int) -> None:
    if count > 1:
        flag = max(option.opts, key=len)
        hint = f" (give one list: {flag} a,b)" if option.metavar == "NAMES" else ""
        raise ampsched.InputError(f"{flag} is given {'twice' if count == 2 else f'{count} times'}{hint}")


TyperCommand.parse_args = _parse_once  # type: ignore[assignment, method-assign]


class _Commands(UserDict[str, Command]):
    """The commands, each imported when it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.data = dict.fromkeys(commands.COMMANDS)  # type: ignore[assignment]

    def __getitem__(self, name: str) -> Command:
        self.data[name] = self.data[name] or _load(name)
        return self.data[name]


def _load(name: str) -> Command:
    place, _, attribute = commands.COMMANDS[name][0].partition(":")
    module = importlib.import_module(f"ampsched.cli.{place}")
    found = getattr(module, attribute)
    if isinstance(found, typer.Typer):
        group = get_group(found)
        group.name = name
        return group
    info = CommandInfo(
        name=name,
        callback=found,
        epilog=getattr(module, f"{name.upper()}_EXAMPLES", None) or module.EXAMPLES,
        context_settings=getattr(module, "CONTEXT", None),
    )
    return get_command_from_info(info, pretty_exceptions_short=False, rich_markup_mode=None)


class _Root(TyperGroup):
    """``ampsched``: only the command that is called is imported."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 (typer's own)
        super().__init__(**settings)
        self.commands = _Commands()

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Writes the page that is shown without any command, too."""
        formatter.write(helping.root_page())

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """Completes commands without a look into them."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        found = ((name, summary) for name, (_, summary) in commands.COMMANDS.items())
        return [CompletionItem(name, help=text) for name, text in found if name.startswith(incomplete)]


app = typer.Typer(
    name="ampsched",
    cls=_Root,
    help=commands.ABOUT,
    epilog=texts.examples(commands.EXAMPLE),
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(version())
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print version and build, and exit."
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line as `ampsched.cli.main` does, which answers at once what takes no command."""
    code = exit_code(lambda: _run(arguments))
    if arguments is None and isinstance(code, int) and code > SIGNALLED:
        _leave_at_once(code)
    sys.exit(code)


def _leave_at_once(code: int) -> NoReturn:
    """Ends this process without freeing what it holds, which takes an interpreter some tenths of a second.

    Nor does it wait for whoever reads the output: nobody has promised to.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    atexit._run_exitfuncs()
    os._exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    """Exit code of a command.

    Raises:
        SystemExit: It has failed, or a signal ends it.
        KeyboardInterrupt: SIGINT ends it.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character shows a question mark
    try:
        with panics_told():
            code = _command(list(sys.argv[1:] if arguments is None else arguments))
    except OSError as error:
        end_after(error)
    except NoArgsIsHelpError as asked:  # a group of commands without one of them
        typer.echo(asked.format_message())
        sys.exit(BAD_INPUT)
    except (ampsched.InputError, typer.TyperException, UnicodeEncodeError, ImportError) as error:
        text = _told(error)
        notes = getattr(error, "__notes__", [])
        _fail(f"{text} ({', '.join(notes)})" if notes else text)
    except typer.Abort:
        _fail("aborted")
    return code if isinstance(code, int) else 0


def _told(error: Exception) -> str:
    """An error in words."""
    match error:
        case UnicodeEncodeError():
            return f'"{error.object}" is not UTF-8 (give it a name that is)'
        case ImportError():
            return f"{error.name or 'a library'} cannot be loaded: {error} (install ampsched again)"
        case typer.TyperException():
            return _words(error)
        case _:
            return str(error)


def _words(error: typer.TyperException) -> str:
    """What is wrong with the arguments; of options of a command to execute, where they belong."""
    text = error.format_message().replace("Value error, ", "")  # Typer's own words for what is no choice
    context = getattr(error, "ctx", None)
    if context is not None:
        text = _unknown(text, error, context) or text
    if not hasattr(error, "option_name") or context is None:
        return text
    if any("-- COMMAND" in (getattr(each, "metavar", "") or "") for each in context.command.params):
        return f"{text} (those of a command to execute stand behind --: {context.command_path} -- COMMAND...)"
    return text


def _unknown(text: str, error: typer.TyperException, context: Context) -> str:
    """What is wrong with a name in the words of `unknown`, of which Typer has others; empty if it is something else."""
    command, otherwise = context.command, f"see: {context.command_path} --help"
    if isinstance(error, NoSuchOption):
        options = [option for param in command.get_params(context) for option in param.opts]
        return str(unknown("option", error.option_name, options, otherwise))
    if found := _NO_COMMAND.match(text):
        return str(unknown("command", found[1], getattr(command, "commands", ()), otherwise))
    if found := _NO_CHOICE.match(text):
        return str(unknown(f"value of {found[1]}", found[2], found[3].replace("'", "").split(", ")))
    return ""


def _command(given: list[str]) -> object:
    """What a command returns."""
    command = get_command(app)
    if COMPLETION in os.environ:
        from ampsched.cli import completing

        completing.register()
        command.main(args=given, prog_name="ampsched", obj=given)  # completes, and exits
    try:
        # Not by `main`, which takes every broken pipe for that of the output and says nothing.
        with command.make_context("ampsched", list(given), obj=given) as context:
            code: object = command.invoke(context)
    except typer.Exit as ended:
        code = ended.exit_code
    sys.stdout.flush()
    return code


def end_after(error: OSError) -> NoReturn:
    """Exits after an error of the operating system: whoever writes files names them, else it is of the output."""
    if isinstance(error, BrokenPipeError) and error.filename is None:
        # Whoever reads the output has seen enough; what is still buffered must not raise once more.
        _discard_output()
        sys.exit(1)
    if error.filename is None and error.errno in _FULL:
        _discard_output()
        _fail(f"standard output: {error.strerror}")
    why = error.strerror or str(error)
    _fail(f"{error.filename}: {why}" if error.filename else why)


def _discard_output() -> None:
    """What is still buffered goes nowhere."""
    with contextlib.suppress(io.UnsupportedOperation):  # a stream that is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(text: str) -> NoReturn:
    print(f"error: {texts.visible(' '.join(text.split()))}", file=sys.stderr)
    sys.exit(BAD_INPUT)
