"""``ampsched list`` and ``ampsched describe``."""

import inspect
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console

from ampsched import policy_file
from ampsched._core import InputError
from ampsched.catalog import KINDS, Catalog, Entry, is_path
from ampsched.cli import options, render
from ampsched.cli.output import Output, with_format
from ampsched.cli.settings import with_settings
from ampsched.governor import governors
from ampsched.kinds import Kind
from ampsched.naming import unknown
from ampsched.policy import Policy, PolicySpec, numbers_of, policies
from ampsched.registry import Registered
from ampsched.settings import CatalogSettings, catalog_of
from ampsched.tasks import task_policies, task_programs

LIST_EXAMPLES = render.examples("ampsched list machines", "ampsched list workloads --json")
DESCRIBE_EXAMPLES = render.examples(
    "ampsched describe 2B2S",
    "ampsched describe colab",
    "ampsched describe ondemand",
    "ampsched describe my_program.toml",
    "ampsched describe my_policy.py:FastestFirst",
)


class What(StrEnum):
    """What can be listed."""

    MACHINES = "machines"
    WORKLOADS = "workloads"
    PROGRAMS = "programs"
    POLICIES = "policies"
    GOVERNORS = "governors"
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


@with_format
@with_settings(CatalogSettings)
def list_names(
    what: Annotated[What, typer.Argument(help="What to list.")],
    *,
    settings: CatalogSettings,
    output: Output,
) -> None:
    """List machines, workloads, policies and other names."""
    entries = _entries(what, catalog_of(settings))
    rows = [{"name": entry.name, "description": entry.description} for entry in entries]
    table = render.table(what.value, render.prose("description"))
    for entry in entries:
        table.add_row(entry.name, entry.description)
    output.show(value=lambda: rows, rows=lambda: rows, text=lambda console: console.print(table))


def _entries(what: What, catalog: Catalog) -> list[Entry]:
    if what is What.POLICIES:
        return [Entry(info.name, info.summary) for info in policies()]
    if what is What.GOVERNORS:
        return [Entry(info.name, info.summary) for info in governors()]
    if what is What.TASK_POLICIES:
        return [Entry(info.name, info.summary) for info in task_policies()]
    if what is What.TASK_PROGRAMS:
        return [Entry(info.name, info.summary) for info in task_programs()]
    return catalog.entries(KIND_OF[what])


@with_format
@with_settings(CatalogSettings)
def describe(
    name: Annotated[
        str,
        typer.Argument(
            help="A machine, workload, program, policy, governor, task policy, profile or core type, or a file.",
            autocompletion=options.complete_any,
        ),
    ],
    *,
    settings: CatalogSettings,
    output: Output,
) -> None:
    """Describe what a name stands for, or check a file.

    It can name a machine, workload, program, policy, task policy, governor, profile or core type.
    """
    if policy_file.is_file(name):
        _describe_class(name, output)
        return
    infos = [(kind, info) for kind, info in _registered() if info.name == name]
    texts = _texts(name, catalog_of(settings), known=bool(infos))
    rows = [{"kind": kind, "text": info.documentation} for kind, info in infos]
    rows += [{"kind": kind, "text": text} for kind, text in texts]

    def text(console: Console) -> None:
        for kind, info in infos:
            _print_row(console, kind, info)
        for kind, words in texts:
            render.print_head(console, kind.replace("_", " "), words)

    output.show(value=lambda: rows, rows=lambda: rows, text=text)


def _describe_class(name: str, output: Output) -> None:
    """A policy in a Python file: what it says of itself, and how its numbers are set."""
    PolicySpec.of(name)
    found, path, _ = policy_file.load(name, Policy)
    words = inspect.cleandoc(vars(found).get("__doc__") or "No docstring.")
    numbers = numbers_of(found)
    rows = [{"kind": "policy", "text": words, "base": found.base, "params": numbers}]

    def text(console: Console) -> None:
        render.print_head(console, "policy", f"{path}:{found.__name__}, with the rules of {found.base}")
        render.print_markdown(console, words)
        for key, value in numbers.items():
            console.print(f"\nparameter {key} = {value:g}", soft_wrap=True)

    output.show(value=lambda: rows, rows=lambda: rows, text=text)


def _registered() -> list[tuple[str, Registered]]:
    """What the registries know, with its kind; `static` is both a policy and a task policy."""
    rows = {"policy": policies(), "governor": governors(), "task policy": task_policies()}
    return [(kind, info) for kind, infos in rows.items() for info in infos]


def _texts(name: str, catalog: Catalog, *, known: bool) -> list[tuple[Kind, str]]:
    """What the catalogue says of a name; it may know nothing if a registry knows the name."""
    try:
        return catalog.describe(name)
    except InputError:
        if known:
            return []
        if is_path(name.partition(":")[0]):
            raise
        names = [each.name for kind in KINDS for each in catalog.entries(kind)]
        names += [info.name for _, info in _registered()]
        raise unknown("name", name, names, "see: ampsched list --help") from None


def _print_row(console: Console, kind: str, info: Registered) -> None:
    render.print_head(console, kind, f"{info.name}: {info.summary}")
    render.print_markdown(console, info.documentation)
    console.print(f"\nSource: {info.source}", soft_wrap=True)
    if not info.params:
        return
    console.print(f"\nParameters, as in {info.name}:{info.params[0].name}=1", soft_wrap=True)
    table = render.table("parameter", "default", render.prose("range"), render.prose(""))
    for param in info.params:
        table.add_row(param.name, f"{param.default:g}", param.values(), param.help)
    console.print(table)
