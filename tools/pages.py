"""Commands in pages of the documentation: read, executed, compared with what the page shows.

A block of type `console` holds commands: lines that begin with `$ `. The others are output, of which each line must
appear in this order; `...` stands for lines that are left out or, inside a line, for anything. A block with a title is
for a file of that name; that of a `console` block says where its commands run, if not in an empty folder with the
installed package.
"""

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A code block of a page."""

    kind: str
    title: str
    """Empty if it has none."""
    body: str


@dataclass
class Command:
    """A command of a page and the output that the page shows."""

    line: str
    output: list[str]


def blocks(page: str) -> Iterator[Block]:
    """The code blocks of a page's text."""
    for found in _BLOCK.finditer(page):
        kind, _, rest = found["info"].partition(" ")
        title = re.search(r'title="([^"]+)"', rest)
        yield Block(kind, title[1] if title else "", found["body"])


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


def run(command: Command, folder: Path, environment: Mapping[str, str]) -> None:
    """Executes a command and compares.

    Raises:
        AssertionError: If it fails, or does not print what the page shows.
    """
    result = subprocess.run(
        ["bash", "-euc", command.line],
        cwd=folder,
        env=environment,
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


def terminal() -> dict[str, str]:
    """What makes output the same everywhere: a terminal of fixed width without colours."""
    return {"COLUMNS": "110", "NO_COLOR": "1", "TERM": "dumb"}
