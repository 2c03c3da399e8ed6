"""Completion in bash, zsh and fish: what shells ask and what they are told."""

import pytest
from conftest import Ampsched
from typer.core import TyperGroup
from typer.main import get_command

from ampsched.cli import COMPLETION, completing
from ampsched.cli.app import app
from ampsched.docs import commands

CASES = {
    "comp": ["compare"],
    "compare --policy cfs,eev": ["cfs,eevdf"],
    "compare --policy cfs,colab:lit": ["cfs,colab:literal=0"],
    "compare --policy colab:literal=1:min_g": ["colab:literal=1:min_gain=1.05"],
    "compare --policy nothing:": [],
    "compare --governor onde": ["ondemand"],
    "compare --noise bu": ["busy"],
    "compare --factors orac": ["oracle"],
    "compare --format mark": ["markdown"],
    "describe exynos5422-": ["exynos5422-2B2S"],
    "compare -w nsync-3": ["nsync-3"],
    "analytic -p opt-u": ["opt-unfairness"],
    "tasks run fluid": ["fluidanimate"],
    "tasks run g.csv -p cats:st": ["cats:steal=0"],
    "live run --pol": ["--policy"],
    "live run --policy ilr,hs": ["ilr,hsp"],
    "live run --backend s": ["scx"],
    "live run -- compa": [],
    "live compare --backend s": ["scx"],
    "lift --like fluid": ["fluidanimate"],
    # Files are for the shell.
    "compare --trace x": [],
    "calibrate --out x": [],
    "record -o x": [],
}


def split_by_bash(line: str) -> list[str]:
    """The words as bash counts them."""
    spaced = line.replace(":", " : ").replace("=", " = ")
    words = spaced.split()
    return [*words, ""] if line.endswith(" ") else words


def asked(run: Ampsched, monkeypatch: pytest.MonkeyPatch, shell: str, line: str) -> str:
    """What a shell is told that completes a line."""
    monkeypatch.setenv(COMPLETION, f"complete_{shell}")
    words = split_by_bash(line)
    monkeypatch.setenv("COMP_WORDS", "\n".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    return run().out


@pytest.mark.parametrize(("typed", "wanted"), CASES.items(), ids=list(CASES))
def test_values_are_completed_in_each_shell(
    typed: str, wanted: list[str], ampsched_here: Ampsched, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"ampsched {typed}"
    fish = [row.split("\t")[0] for row in asked(ampsched_here, monkeypatch, "fish", line).split("\n") if row]
    assert fish[: len(wanted)] == wanted
    assert bool(fish) == bool(wanted)
    zsh = asked(ampsched_here, monkeypatch, "zsh", line)
    assert all(f'"{each}"'.replace(":", r"\\:") in zsh for each in wanted)
    assert (zsh.strip() == "_files") == (not wanted)
    bash = asked(ampsched_here, monkeypatch, "bash", line).split()
    last = typed.rsplit(" ", 1)[-1]
    typed_before = last[: max(last.rfind(":"), last.rfind("=")) + 1]
    assert bash[: len(wanted)] == [each.removeprefix(typed_before) for each in wanted]


def test_bash_replaces_what_stands_behind_an_equals_sign(
    ampsched_here: Ampsched, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = asked(ampsched_here, monkeypatch, "bash", "ampsched compare --policy=colab:literal")
    assert told.split() == ["literal=0"]
    told = asked(ampsched_here, monkeypatch, "bash", "ampsched compare --machine=exynos5422-2B")
    assert told.split() == ["exynos5422-2B2S"]


def test_words_that_bash_has_split_are_joined() -> None:
    line = ["ampsched", "-p", "a", ":", "b", "=", "1", ":", "c"]
    assert completing.joined(line) == ["ampsched", "-p", "a:b=1:c"]
    assert completing.joined(["--policy", "=", ""]) == ["--policy="]


NAMES = ("NAME", "NAMES", "TYPE")
"""What stands for values that are names."""
FREE = {
    "vm run --governor",
    "check --command",
    "import --command",
    "vm record --command",
    "counters import --program",
}
"""Names of the user's own things, and those that a guest's kernel knows."""


def test_every_option_for_names_completes_them() -> None:
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    lacking = [
        option
        for name, command in commands(root)
        for parameter in command.params
        if parameter.metavar in NAMES
        and (option := f"{name} {parameter.opts[0]}") not in FREE
        and parameter._custom_shell_complete is None
    ]
    assert lacking == []
