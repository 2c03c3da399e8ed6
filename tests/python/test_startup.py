"""The command line starts with what it needs: which modules are imported, and that the first page tells the truth."""

import ast
import inspect
import subprocess
import sys

import pytest
from conftest import ROOT, Ampsched
from typer.core import TyperGroup
from typer.main import get_command

import ampsched
from ampsched.cli import commands, helping
from ampsched.cli.app import app
from ampsched.docs import commands as all_commands

LIBRARIES = {"typer", "rich", "polars", "numpy", "asyncio", "ampsched.api", "ampsched.cli.app"}
LINES_MAX, COLUMNS = 60, 80


def imported(*arguments: str) -> set[str]:
    """The modules of a process that has run the command line."""
    program = f"import sys\nfrom ampsched.cli import main\ntry:\n    main({list(arguments)!r})\nexcept SystemExit:\n    pass\n"
    program += "print('MODULES', *sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    return set(told.split("MODULES ")[1].split())


@pytest.mark.parametrize("option", ["--version", "--help", "-h"])
def test_what_takes_no_command_imports_no_library(option: str) -> None:
    assert not imported(option) & LIBRARIES


@pytest.mark.parametrize("name", ["simulate", "list", "record", "machine", "new"])
def test_a_command_imports_no_other_command(name: str) -> None:
    modules = {f"ampsched.cli.{place.partition(':')[0]}" for place, _ in commands.COMMANDS.values()}
    own = f"ampsched.cli.{commands.COMMANDS[name][0].partition(':')[0]}"
    # A simulation can write a report, which that module does.
    assert imported(name, "--help") & modules - {"ampsched.cli.reporting"} == {own}


def test_the_first_page_is_that_of_the_commands(ampsched_here: Ampsched) -> None:
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    page = ampsched_here("--help").out
    assert page.rstrip("\n") == helping.root_page()
    for name, command in root.commands.items():
        summary = commands.COMMANDS[name][1]
        assert inspect.cleandoc(command.help or "").replace("\n", " ").startswith(summary), name
        assert f"  {name} " in page
    options = [option for param in root.params for option in param.opts]
    assert {*options, "--help", "-h"} == set(" ".join(commands.OPTIONS).replace(",", "").split())


def test_the_first_page_is_short(ampsched_here: Ampsched) -> None:
    lines = ampsched_here("--help").out.splitlines()
    assert len(lines) <= LINES_MAX
    assert max(map(len, lines)) <= COLUMNS
    for group in commands.GROUPS.values():
        for name, (_, summary) in group.items():
            assert any(line.split() == [name, *summary.split()] for line in lines), f"{name}: one line"


@pytest.mark.parametrize("columns", ["20", "40", "80"])
def test_no_word_of_a_page_is_lost_or_wider_than_the_terminal(
    columns: str, ampsched_here: Ampsched, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = ampsched_here("simulate", "--help").out
    monkeypatch.setenv("COLUMNS", columns)
    page = ampsched_here("simulate", "--help").out
    assert max(map(len, page.splitlines())) <= int(columns)
    assert "".join(page.split()) == "".join(wide.split())


def test_values_are_named_in_one_style() -> None:
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    page = "\n".join(
        helping.command_page(each.make_context(name, [], resilient_parsing=True))
        for name, each in all_commands(root)
    )
    for sign in ("<bool>", "<path>", "<integer>", "<text>", "list[", "{--", "...]...", "......"):
        assert sign not in page


def test_many_options_are_shown_in_groups() -> None:
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    for name, command in all_commands(root):
        groups = {getattr(param, "rich_help_panel", None) for param in command.params}
        assert len(command.params) <= 13 or len(groups) > 1, name


def test_the_package_has_what_its_annotations_say() -> None:
    tree = ast.parse((ROOT / "python/ampsched/__init__.py").read_text(encoding="utf-8"))
    told = {
        name.name: str(node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("ampsched.")
        for name in node.names
    }
    homes = {name: f"ampsched.{home}" for home, names in ampsched._HOMES.items() for name in names.split()}
    assert homes == told
    assert sorted(homes) == sorted(ampsched.__all__)
    for name in ampsched.__all__:
        assert getattr(ampsched, name) is not None
    assert "simulate" in dir(ampsched)
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        ampsched.simulat  # noqa: B018
