"""Options that several commands share."""

import os
from pathlib import Path
from typing import Annotated, get_args

import typer

from ampsched._core import InputError
from ampsched.catalog import THIS, Catalog
from ampsched.cli.completing import listed, parametrised
from ampsched.files import PAGE, check_suffix, check_target
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


def complete_machine(incomplete: str) -> list[str]:
    """Completes machines."""
    return listed(incomplete, [*_names("machine"), THIS])


def complete_workload(incomplete: str) -> list[str]:
    """Completes workloads and programs."""
    return listed(incomplete, _names("workload", "program"))


def complete_profile(incomplete: str) -> list[str]:
    """Completes profiles."""
    return listed(incomplete, _names("profile"))


def complete_core_type(incomplete: str) -> list[str]:
    """Completes types of cores."""
    return listed(incomplete, _names("core_type"))


def complete_policy(incomplete: str) -> list[str]:
    """Completes policies and, behind a colon, their parameters."""
    return parametrised(incomplete, policies())


def complete_governor(incomplete: str) -> list[str]:
    """Completes governors and, behind a colon, their parameters."""
    return parametrised(incomplete, governors())


def complete_any(incomplete: str) -> list[str]:
    """Completes the name of anything that can be described."""
    registered = (info.name for info in (*policies(), *governors(), *task_policies()))
    return listed(incomplete, [*_names(*get_args(Kind)), *registered])


MACHINE_HELP = (
    "Machine: a name (see 'ampsched list machines'), 'this' computer, or a .toml file; NAME:big=2@1600:little=0 for a "
    "part of it, NAME:big@600-1600 to bound a clock"
)
WORKLOAD_HELP = (
    "Workload or program: a name, a .toml file (FILE.toml:NAME for one of several), or rt-app .json; "
    "PROGRAM:n=8 sets a parameter"
)
POLICY_HELP = "Policy with parameters, such as colab:literal=1, or a class in a file, FILE.py:CLASS"

_MACHINE = typer.Option(
    "--machine", "-m", metavar="NAME", help=f"{MACHINE_HELP}.", autocompletion=complete_machine
)
Machine = Annotated[str, _MACHINE]
MachineOfTrace = Annotated[str | None, _MACHINE]
Machines = Annotated[
    str,
    typer.Option(
        "--machine",
        "-m",
        metavar="NAMES",
        help=f"{MACHINE_HELP}; or a list a,b.",
        autocompletion=complete_machine,
    ),
]
TracedMachine = Annotated[
    str | None,
    typer.Option(
        "--machine",
        "-m",
        metavar="NAME",
        help="The machine that was traced: a name, 'this' or a .toml file. It weights CPU time by its cores and the trace's clocks.",
        autocompletion=complete_machine,
    ),
]
ProgramsOfTrace = Annotated[
    list[str] | None,
    typer.Option(
        "--command",
        metavar="NAME",
        help="Only threads of this program and of every program it starts. Repeatable.",
    ),
]
PidsOfTrace = Annotated[
    list[int] | None,
    typer.Option(
        "--pid",
        metavar="N",
        help="Only the process or thread with this number, and what it starts. Repeatable.",
    ),
]
CpusOfTrace = Annotated[
    str | None,
    typer.Option(
        "--cpus",
        metavar="CLUSTERS",
        help="Which CPUs of the trace belong to which cluster: 'little=0,3-5 big=1,2'. By default CPU i is core i of the machine.",
    ),
]
_WORKLOAD = typer.Option(
    "--workload", "-w", metavar="NAME", help=f"{WORKLOAD_HELP}.", autocompletion=complete_workload
)
Workload = Annotated[str, _WORKLOAD]
WorkloadOrTrace = Annotated[str | None, _WORKLOAD]
Workloads = Annotated[
    str,
    typer.Option(
        "--workload",
        "-w",
        metavar="NAMES",
        help=f"{WORKLOAD_HELP}; or a list a,b.",
        autocompletion=complete_workload,
    ),
]
Policy = Annotated[
    str,
    typer.Option("--policy", "-p", metavar="NAME", help=f"{POLICY_HELP}.", autocompletion=complete_policy),
]
Policies = Annotated[
    str,
    typer.Option(
        "--policy",
        "-p",
        metavar="NAMES",
        help=f"{POLICY_HELP}; or a list a,b: the others are compared with the first.",
        autocompletion=complete_policy,
    ),
]


def _check_html(html: Path | None) -> Path | None:
    """Refuses what could not be written in the end, before anything long begins.

    Raises:
        InputError: If the name does not say HTML, the file cannot be written, or is something else than a report.
    """
    if html is None:
        return None
    check_suffix("--html", html, ".html", ".htm")
    check_target("--html", html, PAGE)
    if not os.access(html if html.exists() else html.parent, os.W_OK):
        raise InputError(f"--html {html}: cannot be written: Permission denied")
    return html


Html = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        callback=_check_html,
        help="Write a report to this .html file: one page for any browser, which needs no other file. "
        "It takes the place of an earlier report, of nothing else.",
        rich_help_panel="Output",
    ),
]

OverOption = Annotated[
    str | None,
    typer.Option(
        "--over",
        metavar="PARAMETER=VALUES",
        help="Simulate with each value of a parameter and draw curves over it: n=1..16 (whole numbers), n=1..16/5 (step 5), "
        "n=1..64x2 (doubled), n=1,2,4; colab:decay=0.5..1:6 (six values), big=1..4 (cores of a cluster), "
        "big@=600..2000/200 (its highest clock in MHz).",
    ),
]
Margin = Annotated[
    float,
    typer.Option(
        "--margin",
        parser=number,
        metavar="SHARE",
        help="Policies within this share of the best count as no worse: 0.01 is 1 %.",
    ),
]
