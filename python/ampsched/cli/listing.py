"""``ampsched list`` and ``ampsched describe``."""

from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown

from ampsched._core import InputError, suggest
from ampsched.catalog import Catalog, Entry
from ampsched.cli import options, render
from ampsched.kinds import Kind
from ampsched.policy import PolicyInfo, policies
from ampsched.tasks import TaskPolicyInfo, task_policies, task_programs

LIST_EXAMPLES = render.examples("ampsched list machines", "ampsched list workloads --json")
DESCRIBE_EXAMPLES = render.examples(
    "ampsched describe 2B2S", "ampsched describe colab", "ampsched describe my_program.toml"
)


class What(StrEnum):
    """What can be listed."""

    MACHINES = "machines"
    WORKLOADS = "workloads"
    PROGRAMS = "programs"
    POLICIES = "policies"
    TASK_POLICIES = "task-policies"
    TASK_PROGRAMS = "task-programs"
    PROFILES = "profiles"
    CORE_TYPES = "core-types"


KIND_OF: dict[What, Kind] = {
    What.MACHINES: "machine",
    What.WORKLOADS: "workload",
    What.PROGRAMS: "program",
    What.PROFILES: "profile",
    What.CORE_TYPES: "core_type",
}


def list_names(
    what: Annotated[What, typer.Argument(help="What to list.")],
    file: options.Files = None,
    json: options.Json = False,
) -> None:
    """List what comes with ampsched: machines, workloads, programs, policies, task policies, task programs, profiles or core types."""
    entries = _entries(what, options.catalog_with(file))
    if json:
        render.print_json([{"name": entry.name, "description": entry.description} for entry in entries])
        return
    table = render.table(what.value, "description")
    table.columns[1].justify = "left"
    table.columns[1].no_wrap = False
    table.columns[0].no_wrap = True
    for entry in entries:
        table.add_row(entry.name, entry.description, style=None)
    render.console().print(table)


def _entries(what: What, catalog: Catalog) -> list[Entry]:
    if what is What.POLICIES:
        return [Entry(info.name, info.summary) for info in policies()]
    if what is What.TASK_POLICIES:
        return [Entry(info.name, info.summary) for info in task_policies()]
    if what is What.TASK_PROGRAMS:
        return [Entry(info.name, info.summary) for info in task_programs()]
    return catalog.entries(KIND_OF[what])


def describe(
    name: Annotated[
        str,
        typer.Argument(
            help="A machine, workload, program, policy, task policy, profile or core type, or a file.",
            autocompletion=options.complete_any,
        ),
    ],
    file: options.Files = None,
    json: options.Json = False,
) -> None:
    """Describe a machine, workload, program, (task) policy, profile or core type; a file is checked by this, too."""
    console = render.console()
    infos = _policies_called(name)
    texts = _texts(name, options.catalog_with(file), known=bool(infos))
    if json:
        found = [{"kind": kind, "text": text} for kind, text in texts]
        render.print_json([{"kind": kind, "text": info.documentation} for kind, info in infos] + found)
        return
    for kind, info in infos:
        _print_policy(console, kind, info)
    for kind, text in texts:
        console.print(f"[bold]{kind.replace('_', ' ')}[/bold] ", end="")
        console.print(text, markup=False, soft_wrap=True)


def _policies_called(name: str) -> list[tuple[str, PolicyInfo | TaskPolicyInfo]]:
    """Policies and task policies of a name, with what they are; `static` is both."""
    every: list[tuple[str, PolicyInfo | TaskPolicyInfo]] = [
        *(("policy", info) for info in policies()),
        *(("task policy", info) for info in task_policies()),
    ]
    return [(kind, info) for kind, info in every if info.name == name]


def _texts(name: str, catalog: Catalog, *, known: bool) -> list[tuple[Kind, str]]:
    """What the catalogue says of a name; it may know nothing if the name is that of a policy."""
    try:
        return catalog.describe(name)
    except InputError:
        if known:
            return []
        hint = suggest(name, [*(info.name for info in policies()), *(info.name for info in task_policies())])
        if hint.startswith("did you mean"):
            raise InputError(f'nothing is called "{name}" ({hint})') from None
        raise


def _print_policy(console: Console, kind: str, info: PolicyInfo | TaskPolicyInfo) -> None:
    console.print(f"[bold]{kind}[/bold] {info.name}: {info.summary}", soft_wrap=True)
    console.print(Markdown(info.documentation))
    console.print(f"\nSource: {info.source}", soft_wrap=True, markup=False)
    if not info.params:
        return
    console.print(f"\nParameters, as in {info.name}:{info.params[0].name}=1", soft_wrap=True)
    table = render.table("parameter", "default", "range", "")
    table.columns[3].justify = "left"
    # Names stay whole; choices and help may take several lines.
    for column, no_wrap in zip(table.columns, (True, True, False, False), strict=True):
        column.no_wrap = no_wrap
    for param in info.params:
        table.add_row(param.name, f"{param.default:g}", param.values(), param.help)
    console.print(table)
