"""``ampsched reproduce``: the laboratory's command, if there is a laboratory."""

from typing import Annotated

import typer

from ampsched import laboratory
from ampsched.cli import render

EXAMPLES = render.examples(
    "ampsched reproduce all --out results",
    "ampsched reproduce --help   (which papers, and all options)",
)
CONTEXT = {"ignore_unknown_options": True, "help_option_names": []}
"""Settings of the command: the laboratory reads its arguments."""


def reproduce(
    context: typer.Context,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PAPER [OPTION]...", help="The laboratory's arguments: see `ampsched reproduce --help`."
        ),
    ] = None,
) -> None:
    """Repeat a paper's experiment and check its claims in a report.

    The laboratory is the folder lab of a checkout: run this in a checkout, or install that folder.
    """
    app = laboratory.module("papers.command").app
    command = typer.main.get_command(app)
    with command.make_context(context.command_path, list(arguments or ()), obj=context.obj) as inner:
        command.invoke(inner)
