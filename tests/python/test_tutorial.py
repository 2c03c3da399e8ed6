"""The commands of the tutorial, the how-to pages and the README work, and print what the pages show (tools/pages.py).

Commands that run in a checkout are executed by `make check-howto`.
"""

import os
import shlex
import sys
from pathlib import Path

import pytest
from tools.pages import (
    Command,
    blocks,
    first_missing,
    parse_console,
    run,
    squeeze,
    terminal,
    without_numbers,
)

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
NARROW = 80
"""Columns of the first listings that somebody reads."""


def pages() -> list[Path]:
    """All pages with commands."""
    found = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [page for page in found if any(block.is_executed_here for block in blocks(page.read_text()))]


def is_for_beginners(page: Path) -> bool:
    """Whether a page is read before the others; its listings fit any screen."""
    return page.parent in (ROOT, DOCS / "tutorial")


def environment(folder: Path, columns: int) -> dict[str, str]:
    """The installed commands are in the path."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "XDG_CACHE_HOME": str(folder / ".cache"), **terminal(columns)}


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    executed = 0
    columns = NARROW if is_for_beginners(page) else 110
    (tmp_path / "docs").symlink_to(DOCS)
    for block in blocks(page.read_text()):
        if block.title and block.kind != "console" and "/" not in block.title:
            (tmp_path / block.title).write_text(block.body)
        if block.is_executed_here:
            for command in parse_console(block.body):
                assert shlex.split(command.line), f"{page}: empty command"
                run(command, tmp_path, environment(tmp_path, columns), vary=block.varies)
                executed += 1
    assert executed > 0


def test_the_tutorial_shows_output() -> None:
    """A tutorial whose blocks lost their output would pass the other test without checking anything."""
    text = (DOCS / "tutorial/first-comparison.md").read_text()
    commands: list[Command] = [
        command for block in blocks(text) if block.is_executed_here for command in parse_console(block.body)
    ]
    assert len(commands) >= 5
    assert sum(len([line for line in command.output if line != "..."]) for command in commands) >= 15


@pytest.mark.parametrize("page", list(filter(is_for_beginners, pages())), ids=lambda page: page.name)
def test_listings_for_beginners_are_narrow(page: Path) -> None:
    for block in blocks(page.read_text()):
        assert max(map(len, block.body.splitlines())) <= NARROW, f"{page.name}: {block.body}"


def test_comparing_lines() -> None:
    printed = ["", "  cfs   1.25  +3 %", "colab 1.00"]
    assert first_missing(["cfs 1.25 +3 %", "colab 1.00"], printed) is None
    assert first_missing(["cfs 1... %", "...", "colab 1.00"], printed) is None
    assert first_missing(["colab 1.00", "cfs 1.25 +3 %"], printed) == "cfs 1.25 +3 %"
    assert first_missing(["cfs 1.26 +3 %"], printed) == "cfs 1.26 +3 %"


def test_numbers_that_vary_are_compared_as_text() -> None:
    shown = "acfs    1.172*  -5.4 ±2.1  ███████▋  0.853"
    assert squeeze(without_numbers(shown)) == squeeze(without_numbers("acfs 1,300 +6.0 ±0.3 █ 1 "))
    assert squeeze(without_numbers(shown)) != squeeze(without_numbers("cfs 1,300 +6.0 ±0.3 █ 1"))
    command = Command("echo a 12 b; echo c", ["a 7.5 b", "c"])
    run(command, ROOT, os.environ, vary=True)
    with pytest.raises(AssertionError, match="does not print"):
        run(command, ROOT, os.environ)
    with pytest.raises(AssertionError, match="does not print"):
        run(Command("echo a 12 b", ["a 7.5 b", "c"]), ROOT, os.environ, vary=True)
