"""Options that several commands share."""

import os
from pathlib import Path
from typing import Annotated, get_args

import typer

from ampsched._core import InputError
from ampsched.catalog import Catalog
from ampsched.files import check_suffix
from ampsched.governor import governors
from ampsched.kinds import Kind
from ampsched.policy import policies
from ampsched.tasks import task_policies


def whole(text: str) -> int:
    """Reads a whole number."""
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f'"{text}" is not a whole number') from None


def number(text: str) -> float:
    """Reads a number."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f'"{text}" is not a number') from None


def split(text: str, what: str) -> list[str]:
    """The items of a comma-separated list.

    Raises:
        InputError: If an item is empty.
    """
    items = [item.strip() for item in text.split(",")]
    if not all(items):
        raise InputError(f'--{what} "{text}" has an empty item')
    return items


def _names(*kinds: Kind) -> list[str]:
    return [entry.name for kind in kinds for entry in Catalog.shipped().entries(kind)]


def complete(incomplete: str, names: list[str]) -> list[str]:
    """Completes the last item of a comma-separated list."""
    done, comma, last = incomplete.rpartition(",")
    return [f"{done}{comma}{name}" for name in names if name.startswith(last)]


def _complete_machine(incomplete: str) -> list[str]:
    return complete(incomplete, _names("machine"))


def _complete_workload(incomplete: str) -> list[str]:
    return complete(incomplete, _names("workload", "program"))


def _complete_policy(incomplete: str) -> list[str]:
    return complete(incomplete, [info.name for info in policies()])


def complete_any(incomplete: str) -> list[str]:
    """Completes the name of anything that can be described."""
    registered = (info.name for info in (*policies(), *governors(), *task_policies()))
    return complete(incomplete, [*_names(*get_args(Kind)), *registered])


MACHINE_HELP = "Machine: a name (see 'ampsched list machines') or a .toml file; NAME:big=2@1600:little=0 for a part of it"
WORKLOAD_HELP = (
    "Workload or program: a name, a .toml file (FILE.toml:NAME for one of several), or rt-app .json; "
    "PROGRAM:n=8 sets a parameter"
)
POLICY_HELP = "Policy with parameters, such as colab:literal=1, or a class in a file, FILE.py:CLASS"

Machine = Annotated[
    str,
    typer.Option(
        "--machine", "-m", metavar="NAME", help=f"{MACHINE_HELP}.", autocompletion=_complete_machine
    ),
]
Machines = Annotated[
    str,
    typer.Option(
        "--machine",
        "-m",
        metavar="NAMES",
        help=f"{MACHINE_HELP}; or a list a,b.",
        autocompletion=_complete_machine,
    ),
]
Workload = Annotated[
    str,
    typer.Option(
        "--workload", "-w", metavar="NAME", help=f"{WORKLOAD_HELP}.", autocompletion=_complete_workload
    ),
]
Workloads = Annotated[
    str,
    typer.Option(
        "--workload",
        "-w",
        metavar="NAMES",
        help=f"{WORKLOAD_HELP}; or a list a,b.",
        autocompletion=_complete_workload,
    ),
]
Policy = Annotated[
    str,
    typer.Option("--policy", "-p", metavar="NAME", help=f"{POLICY_HELP}.", autocompletion=_complete_policy),
]
Policies = Annotated[
    str,
    typer.Option(
        "--policy",
        "-p",
        metavar="NAMES",
        help=f"{POLICY_HELP}; or a list a,b: others are measured against the first.",
        autocompletion=_complete_policy,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def _check_html(html: Path | None) -> Path | None:
    """Refuses what could not be written in the end, before anything long begins.

    Raises:
        InputError: If the name does not say HTML, or the file cannot be written.
    """
    if html is None:
        return None
    check_suffix("--html", html, ".html", ".htm")
    if html.is_dir():
        raise InputError(f"--html {html}: is a folder")
    if not html.parent.is_dir():
        raise InputError(f"--html {html}: there is no folder {html.parent}")
    if not os.access(html if html.exists() else html.parent, os.W_OK):
        raise InputError(f"--html {html}: cannot be written: Permission denied")
    return html


Html = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        callback=_check_html,
        help="Write a report to this .html file: one page for any browser, complete in itself.",
    ),
]
