"""Every command that a page shows is run by some test, or at least understood by the program that it calls."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest
import typer
from conftest import ROOT
from tools.pages import IN_A_CHECKOUT, IN_A_VM, Block, blocks, lines

from ampsched.cli.app import app
from ampsched.cli.forwarding import PassedOn
from ampsched.live.commands import subcommands

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
HOWTO_TOOL = "tools/check_howto.py"
ENDS = {"|", ">", ">>", "&&", "||", ";", "<"}
"""Words behind which another command or a file stands."""
TOOLS = {
    "adb",
    "apt",
    "cargo",
    "cc",
    "curl",
    "git",
    "perf",
    "perfetto",
    "pip",
    "pipx",
    "rustup",
    "trace-cmd",
    "valgrind",
}
"""Programs of others, whose words are not looked at."""


def with_commands() -> Iterator[tuple[Path, Block]]:
    """All blocks of commands on all pages."""
    for page in PAGES:
        yield from ((page, block) for block in blocks(page.read_text("utf-8")) if block.has_commands)


def runner(block: Block) -> str:
    """The file that runs a block's commands; empty if nobody does."""
    if block.is_executed_here:
        return "tests/python/test_tutorial.py"
    if block.kind == "console" and block.title in (IN_A_CHECKOUT, IN_A_VM):
        return HOWTO_TOOL
    return block.said("executed by")


def test_every_command_is_run_or_parsed() -> None:
    found = list(with_commands())
    assert len(found) > 40
    for page, block in found:
        where = f"{page.relative_to(ROOT)}: {block.body.splitlines()[0]}"
        by = runner(block)
        assert by or block.said("parsed:"), f"{where}: nobody runs this; see tools/pages.py"
        if by:
            assert (ROOT / by).is_file(), f"{where}: {by} does not exist"
        if by and not block.is_executed_here:
            assert page.name in (ROOT / by).read_text("utf-8"), f"{where}: {by} does not read {page.name}"


def commands() -> list[tuple[str, str]]:
    """Commands that are only parsed, with their pages."""
    parsed = [(page, block) for page, block in with_commands() if block.said("parsed:")]
    return [(str(page.relative_to(ROOT)), line) for page, block in parsed for line in lines(block)]


@pytest.mark.parametrize(("page", "line"), commands())
def test_what_cannot_be_run_everywhere_is_understood(page: str, line: str) -> None:
    words = shlex.split(line)
    words = words[1:] if words[0] == "sudo" else words
    words = list(takewhile(lambda word: word not in ENDS and not word.startswith(">"), words))
    understand(words)


def understand(words: list[str]) -> None:
    """Checks what can be checked of a command without running it."""
    program, *rest = words
    if program == "ampsched":
        parse(rest)
    elif program in ("ampsched-live", "ampsched-live-scx"):
        live(rest, or_in=ROOT / "crates/live/scx/src" if program.endswith("scx") else None)
    elif program == "make":
        for target in (word for word in rest if "=" not in word):
            assert f"\n{target}:" in (ROOT / "Makefile").read_text("utf-8"), target
    elif program in ("python", "sh", "."):
        script = next(word for word in rest if not word.startswith("-"))
        assert (ROOT / script).is_file() or script.startswith((".venv/", "~/")), script
    elif "=" not in program:
        assert program in TOOLS, f"{program}: add it to TOOLS if it is a program of others"


def parse(words: list[str]) -> None:
    """Parses a command of ``ampsched`` as the program does."""
    command = typer.main.get_command(app)
    context = command.make_context("ampsched", [], resilient_parsing=True)
    while words and hasattr(command, "get_command"):
        name, *words = words
        found = command.get_command(context, name)
        assert found is not None, f"no such command: {name}"
        command = found
    if isinstance(command, PassedOn):
        live([str(command.name), *words])
    else:
        command.make_context(str(command.name), words, parent=context)


def live(words: list[str], or_in: Path | None = None) -> None:
    """Checks subcommand and options of ``ampsched-live``.

    Args:
        words: Its arguments.
        or_in: Sources of a program that has more.
    """
    name, *rest = words
    more = "".join(path.read_text("utf-8") for path in or_in.rglob("*.rs")) if or_in else ""
    known = (
        {flag for option in subcommands()[name].options for flag in option.flags}
        if name in subcommands()
        else set()
    )
    assert known or re.search(rf"\b{name}\b", more, re.IGNORECASE), name
    for word in takewhile(lambda word: word != "--", rest):
        if word.startswith("--"):
            flag = word.partition("=")[0]
            assert flag in known or flag.removeprefix("--").replace("-", "_") in more, (
                f"no such option: {flag}"
            )


def test_commands_that_are_wrong_are_found() -> None:
    understand(shlex.split("ampsched compare -m 2B2S -w sync-2 -p cfs,colab"))
    understand(shlex.split("ampsched live run --policy hsp -- make -j8"))
    for wrong in (
        "ampsched compare --machin 2B2S",
        "ampsched comprae",
        "ampsched live run --polcy hsp -- true",
    ):
        with pytest.raises(Exception, match=r"machin|comprae|polcy"):
            understand(shlex.split(wrong))
    with pytest.raises(AssertionError, match="nonsense"):
        understand(["make", "nonsense"])


def test_help_of_make_fits_a_screen() -> None:
    command = ["make", "--no-print-directory", "help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    told = done.stdout.splitlines()
    assert 10 < len(told) <= 20
    assert max(map(len, told)) <= 80
