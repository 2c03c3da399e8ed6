"""Commands in pages of the documentation: read, executed, compared with what the page shows.

A block of type `console` holds commands: lines that begin with `$ `. The others are output, of which each line must
appear in this order; `...` stands for lines that are left out or, inside a line, for anything. A block with a title is
for a file of that name; that of a `console` block says where its commands run, if not in an empty folder with the
installed package. A comment in the line before a block may say

* `executed by FILE`: the test or tool that runs the block, and names the page;
* `numbers vary`: those that the page shows are of one run, so text is compared with every number as 0;
* `parsed: WHY`: not every computer can run it, so only its words are checked, and why.
"""

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*) -->\n)?^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)
_NUMBER = re.compile(r"[-+±]?\d[\d,.]*")
_MEASURED = re.compile(r"[█-▏*]+")
"""Bars, and the mark of the best value."""
IN_A_CHECKOUT, IN_A_VM = "in a checkout", "in a checkout, on Debian"
"""Titles of blocks that `make check-howto` executes."""


@dataclass(frozen=True)
class Block:
    """A code block of a page."""

    kind: str
    title: str
    """Empty if it has none."""
    body: str
    note: str = ""
    """The comment before it; empty if there is none."""

    def said(self, what: str) -> str:
        """What the comment says behind these words; empty if it does not begin with them."""
        return self.note.removeprefix(what).strip() if self.note.startswith(what) else ""

    @property
    def varies(self) -> bool:
        """Whether its output has other numbers in every run."""
        return self.note.startswith("numbers vary")

    @property
    def has_commands(self) -> bool:
        """Whether it shows commands for a shell."""
        return self.kind in ("console", "sh")

    @property
    def is_executed_here(self) -> bool:
        """Whether tests/python/test_tutorial.py runs it: in an empty folder with the installed package."""
        return (
            self.kind == "console"
            and not self.title
            and not self.said("executed by")
            and not self.said("parsed:")
        )


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
        yield Block(kind, title[1] if title else "", found["body"], found["note"] or "")


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


def lines(block: Block) -> list[str]:
    """The commands of a block, each in one line without comments."""
    if block.kind == "console":
        found = [command.line for command in parse_console(block.body)]
    else:
        found = re.sub(r"\\\n\s*", " ", block.body).splitlines()
    return [line for each in found if (line := re.sub(r"\s+#.*|\\\n\s*", " ", each).strip())]


def squeeze(line: str) -> str:
    """The line with every run of blanks as one: the width of columns depends on the terminal."""
    return " ".join(line.split())


def matches(shown: str, printed: str) -> bool:
    """Whether a printed line is the shown one."""
    pattern = ".*".join(re.escape(squeeze(part)) for part in shown.split("..."))
    return re.fullmatch(pattern, squeeze(printed)) is not None


def without_numbers(line: str) -> str:
    """The line as every run prints it: numbers as 0, no bars."""
    return _NUMBER.sub("0", _MEASURED.sub("", line))


def first_missing(shown: list[str], printed: list[str]) -> str | None:
    """The first shown line that is not printed, in this order."""
    rest = iter(printed)
    for line in shown:
        if line.strip() != "..." and not any(matches(line, other) for other in rest):
            return line
    return None


def run(command: Command, folder: Path, environment: Mapping[str, str], *, vary: bool = False) -> None:
    """Executes a command and compares.

    Args:
        command: With the output that the page shows.
        folder: Where it runs.
        environment: Of the command.
        vary: Whether numbers differ from run to run.

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
    shown, printed = command.output, everything.splitlines()
    if vary:
        shown, printed = list(map(without_numbers, shown)), list(map(without_numbers, printed))
    missing = first_missing(shown, printed)
    assert missing is None, f"{command.line} does not print\n  {missing}\nbut\n{everything}"


def terminal(columns: int = 110) -> dict[str, str]:
    """What makes output the same everywhere: a terminal of fixed width without colours."""
    return {"COLUMNS": str(columns), "NO_COLOR": "1", "TERM": "dumb"}
