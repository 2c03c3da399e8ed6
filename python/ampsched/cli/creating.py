"""``ampsched new``: files to begin with."""

from pathlib import Path
from typing import Annotated

import typer

from ampsched import scaffold
from ampsched._core import InputError
from ampsched.cli import render

app = typer.Typer(
    name="new",
    help="Write a policy to start from.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
)
EXAMPLES = render.examples("ampsched new policy big-first", "ampsched new policy --python big-first")


@app.callback()
def _root() -> None:
    """Write a policy to start from."""


@app.command("policy", epilog=EXAMPLES)
def policy(
    name: Annotated[str, typer.Argument(help="Name of the policy: lower-case words joined by '-'.")],
    python: Annotated[
        bool, typer.Option("--python", help="Write a Python file in this folder, to try out an idea.")
    ] = False,
) -> None:
    """Write a small policy to change: in a checkout a Rust file, its unit test and its row in the registry."""
    try:
        if python:
            file, _ = scaffold.new_python_policy(Path(), name)
            lines = [f"written: {file}", "then:", f"  ampsched compare -m 2B2S -w sync-2 -p cfs,{file}"]
        else:
            lines = scaffold.begin(Path.cwd(), name)
    except scaffold.ScaffoldError as error:
        raise InputError(str(error)) from None
    for line in lines:
        typer.echo(line)
