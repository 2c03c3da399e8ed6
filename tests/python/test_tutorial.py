"""The commands of the tutorial, the how-to pages and the README work, and print what the pages show.

A code block with a title is written to a file of that name. A block of type `console` is executed:
lines that begin with `$ ` are commands, the others are output, of which each line must appear in this
order; `...` stands for lines that are left out or, inside a line, for anything.
"""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass
class Command:
    """A command of a page and the output that the page shows."""

    line: str
    output: list[str]


def pages() -> list[Path]:
    """All pages with commands."""
    found = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [page for page in found if "```console" in page.read_text()]


def parse_console(body: str) -> list[Command]:
    """The commands of a console block."""
    commands: list[Command] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            commands.append(Command(line[2:], []))
        elif line.startswith("> "):
            commands[-1].line += "\n" + line[2:]
        elif line.strip():
            commands[-1].output.append(line)
    return commands


def squeeze(line: str) -> str:
    """The line with every run of blanks as one: the width of columns depends on the terminal."""
    return " ".join(line.split())


def matches(shown: str, printed: str) -> bool:
    """Whether a printed line is the shown one."""
    pattern = ".*".join(re.escape(squeeze(part)) for part in shown.split("..."))
    return re.fullmatch(pattern, squeeze(printed)) is not None


def first_missing(shown: list[str], printed: list[str]) -> str | None:
    """The first shown line that is not printed, in this order."""
    rest = iter(printed)
    for line in shown:
        if line.strip() != "..." and not any(matches(line, other) for other in rest):
            return line
    return None


def environment(folder: Path) -> dict[str, str]:
    """A terminal of fixed width without colours, with the installed commands in the path."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    fixed = {"COLUMNS": "110", "NO_COLOR": "1", "TERM": "dumb", "XDG_CACHE_HOME": str(folder / ".cache")}
    return {**os.environ, "PATH": path, **fixed}


def run(command: Command, folder: Path) -> None:
    """Executes a command and compares."""
    result = subprocess.run(
        ["bash", "-euc", command.line],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    everything = result.stdout + result.stderr
    refused = "error:" in "\n".join(command.output)
    assert result.returncode == (2 if refused else 0), (
        f"{command.line} returned {result.returncode}\n{everything}"
    )
    missing = first_missing(command.output, everything.splitlines())
    assert missing is None, f"{command.line} does not print\n  {missing}\nbut\n{everything}"


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    executed = 0
    for block in BLOCK.finditer(page.read_text()):
        kind, *rest = block["info"].split(maxsplit=1)
        title = re.search(r'title="([^"]+)"', rest[0]) if rest else None
        if title and "/" not in title[1]:
            (tmp_path / title[1]).write_text(block["body"])
        if kind == "console":
            for command in parse_console(block["body"]):
                assert shlex.split(command.line), f"{page}: empty command"
                run(command, tmp_path)
                executed += 1
    assert executed > 0


def test_the_tutorial_shows_output() -> None:
    """A tutorial whose blocks lost their output would pass the other test without checking anything."""
    text = (DOCS / "tutorial/first-comparison.md").read_text()
    commands = [
        command
        for block in BLOCK.finditer(text)
        if block["info"] == "console"
        for command in parse_console(block["body"])
    ]
    assert len(commands) >= 5
    assert sum(len([line for line in command.output if line != "..."]) for command in commands) >= 15


def test_comparing_lines() -> None:
    printed = ["", "  cfs   1.25  +3 %", "colab 1.00"]
    assert first_missing(["cfs 1.25 +3 %", "colab 1.00"], printed) is None
    assert first_missing(["cfs 1... %", "...", "colab 1.00"], printed) is None
    assert first_missing(["colab 1.00", "cfs 1.25 +3 %"], printed) == "cfs 1.25 +3 %"
    assert first_missing(["cfs 1.26 +3 %"], printed) == "cfs 1.26 +3 %"
