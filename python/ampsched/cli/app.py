"""The commands put together, and what every one of them does with an error."""

import atexit
import contextlib
import errno
import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer
from typer.main import get_command

import ampsched
from ampsched._core import BUILD
from ampsched.children import SIGNALLED
from ampsched.cli import (
    advising,
    analysing,
    calibrating,
    checking,
    comparing,
    completing,
    counting,
    creating,
    explaining,
    importing,
    lifting,
    limiting,
    listing,
    living,
    machines,
    recording,
    render,
    reporting,
    reproducing,
    simulating,
    sweeping,
    tasks,
    training,
    virtual,
    virtual_recording,
)
from ampsched.cli.helping import fold_help
from ampsched.cli.signals import exit_code
from ampsched.files import panics_told

BAD_INPUT = 2
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

fold_help()
app = typer.Typer(
    name="ampsched",
    help="Which scheduling policy is best for these programs on this processor with unequal cores?",
    epilog=render.examples("ampsched compare --machine 2B2S --workload sync-2 --policy linux,wash,colab"),
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
app.command("advise", epilog=advising.EXAMPLES)(advising.advise)
app.command("compare", epilog=comparing.EXAMPLES)(comparing.compare)
app.command("sweep", epilog=sweeping.EXAMPLES)(sweeping.sweep)
app.command("simulate", epilog=simulating.EXAMPLES)(simulating.simulate)
app.command("explain", epilog=explaining.EXAMPLES)(explaining.explain)
app.command("limit", epilog=limiting.EXAMPLES)(limiting.limit)
app.command("list", epilog=listing.LIST_EXAMPLES)(listing.list_names)
app.command("describe", epilog=listing.DESCRIBE_EXAMPLES)(listing.describe)
app.command("import", epilog=importing.IMPORT_EXAMPLES)(importing.import_trace)
app.command("check", epilog=checking.EXAMPLES)(checking.check)
app.command("import-rtapp", epilog=importing.EXAMPLES)(importing.import_rtapp)
app.command("record", epilog=recording.EXAMPLES, context_settings=recording.COMMAND_LAST)(recording.record)
app.command("lift", epilog=lifting.EXAMPLES)(lifting.lift)
app.command("analytic", epilog=analysing.EXAMPLES)(analysing.analytic)
app.add_typer(counting.app, name="counters")
app.command("machine", epilog=machines.EXAMPLES)(machines.machine)
app.command("calibrate", epilog=calibrating.EXAMPLES)(calibrating.calibrate)
app.command("train", epilog=training.EXAMPLES)(training.train)
app.command("reproduce", epilog=reproducing.EXAMPLES, context_settings=reproducing.PASSED_ON)(
    reproducing.reproduce
)
app.command("report", epilog=reporting.EXAMPLES)(reporting.report)
app.add_typer(creating.app)
app.add_typer(tasks.app)
app.add_typer(living.app)
virtual.app.command("record", epilog=virtual_recording.EXAMPLES)(virtual_recording.record)
app.add_typer(virtual.app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ampsched {ampsched.__version__} ({BUILD})")
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
    """Runs the command line and exits: 0, 2 after one line that begins with ``error:``, or 128 and a signal's number.

    Ctrl-C (SIGINT), SIGTERM and SIGHUP end any command in an orderly way, and soon.

    Args:
        arguments: Arguments without the program's name; those of the process by default.
    """
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
        _end_after(error)
    except (ampsched.InputError, typer.TyperException, UnicodeEncodeError, ImportError) as error:
        text = _told(error)
        if not text:  # a group of commands without one of them has shown its help
            sys.exit(BAD_INPUT)
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
    if not hasattr(error, "option_name") or context is None:
        return text
    if any("-- COMMAND" in (getattr(each, "metavar", "") or "") for each in context.command.params):
        return f"{text} (those of a command to execute stand behind --: {context.command_path} -- COMMAND...)"
    return text


def _command(given: list[str]) -> object:
    """What a command returns."""
    command = get_command(app)
    if completing.VARIABLE in os.environ:
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


def _end_after(error: OSError) -> NoReturn:
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
    print(f"error: {render.visible(' '.join(text.split()))}", file=sys.stderr)
    sys.exit(BAD_INPUT)
