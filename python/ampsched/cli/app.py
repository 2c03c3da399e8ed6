"""The commands put together, and what every one of them does with an error."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

import ampsched
from ampsched.cli import (
    analysing,
    calibrating,
    comparing,
    counting,
    creating,
    explaining,
    importing,
    listing,
    living,
    render,
    reproducing,
    simulating,
    tasks,
    training,
    virtual,
)

BAD_INPUT = 2

app = typer.Typer(
    name="ampsched",
    help="Which scheduling policy is best for these programs on this processor with unequal cores?",
    epilog=render.examples("ampsched compare --machine 2B2S --workload sync-2 --policy cfs,wash,colab"),
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
app.command("compare", epilog=comparing.EXAMPLES)(comparing.compare)
app.command("simulate", epilog=simulating.EXAMPLES)(simulating.simulate)
app.command("explain", epilog=explaining.EXAMPLES)(explaining.explain)
app.command("list", epilog=listing.LIST_EXAMPLES)(listing.list_names)
app.command("describe", epilog=listing.DESCRIBE_EXAMPLES)(listing.describe)
app.command("import-rtapp", epilog=importing.EXAMPLES)(importing.import_rtapp)
app.command("analytic", epilog=analysing.EXAMPLES)(analysing.analytic)
app.add_typer(counting.app, name="counters")
app.command("calibrate", epilog=calibrating.EXAMPLES)(calibrating.calibrate)
app.command("train", epilog=training.EXAMPLES)(training.train)
app.command("reproduce", epilog=reproducing.EXAMPLES)(reproducing.reproduce)
app.add_typer(creating.app)
app.add_typer(tasks.app)
app.add_typer(living.app)
app.add_typer(virtual.app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ampsched {ampsched.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and exits: 0, or 2 after one line that begins with ``error:``.

    Args:
        arguments: Arguments without the program's name; those of the process by default.
    """
    try:
        code = app(args=arguments, prog_name="ampsched", standalone_mode=False)
    except (ampsched.InputError, typer.TyperException) as error:
        text = error.format_message() if isinstance(error, typer.TyperException) else str(error)
        if not text:  # a group of commands without one of them has shown its help
            sys.exit(BAD_INPUT)
        _fail(text)
    except BrokenPipeError:
        # Whoever reads the output has seen enough; what is still buffered must not raise once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except typer.Abort:
        _fail("aborted")
    sys.exit(code if isinstance(code, int) else 0)


def _fail(text: str) -> NoReturn:
    print(f"error: {' '.join(text.split())}", file=sys.stderr)
    sys.exit(BAD_INPUT)
