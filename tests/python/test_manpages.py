"""The man pages say what the command line says, and are what man expects."""

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT
from typer.core import TyperGroup
from typer.main import get_command

from ampsched import manpages
from ampsched.cli.app import app
from ampsched.docs import commands

FOLDER = ROOT / "packaging/wheel/data/share/man/man1"


def test_every_command_has_a_page_with_all_its_options() -> None:
    pages = manpages.pages()
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    found = dict(commands(root))
    assert len(pages) == len(found) + 1
    for name, command in found.items():
        page = pages[f"ampsched-{name.replace(' ', '-')}.1"].replace("\\-", "-")
        for parameter in command.params:
            for option in (*parameter.opts, *parameter.secondary_opts):
                assert not option.startswith("-") or option in page, f"{name} {option}"
        assert '.SH "SYNOPSIS"\n.B ampsched' in page
        assert f".BR ampsched-{name.replace(' ', '-')} (1)" in pages["ampsched.1"].replace("\\-", "-")


def test_the_pages_are_those_of_these_commands() -> None:
    """Else write them anew: make bless ONLY=man."""
    kept = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert kept == manpages.pages()


def test_texts_of_programs_are_no_requests(tmp_path: Path) -> None:
    assert (
        manpages._text(".toml or 'x' with a\\b and `--all`")
        == "\\&.toml or 'x' with a\\eb and \\fB\\-\\-all\\fR"
    )


@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed")
def test_mandoc_finds_no_errors() -> None:
    paths = sorted(FOLDER.glob("*.1"))
    told = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning", *paths], capture_output=True, text=True, check=False
    ).stdout
    # A date would make a page differ without a change.
    assert [line for line in told.splitlines() if "missing date" not in line] == []
