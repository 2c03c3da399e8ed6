"""Completion in shells: names and parameters as values, files where a shell knows better, words that bash splits."""

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from typer._click.shell_completion import CompletionItem, ShellComplete, add_completion_class
from typer._completion_classes import BashComplete, FishComplete, ZshComplete

from ampsched.registry import Param

_BREAK = re.compile("[:=]+")


def register() -> None:
    """Has shells asked for completions get them from here; typer must have registered its own before."""
    for name, class_ in {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}.items():
        add_completion_class(class_, name)


def listed(incomplete: str, names: Iterable[str]) -> list[str]:
    """Completes the last item of a comma-separated list."""
    done, comma, last = incomplete.rpartition(",")
    return [f"{done}{comma}{name}" for name in names if name.startswith(last)]


def parametrised(incomplete: str, infos: Sequence["Named"]) -> list[str]:
    """The same for what has parameters: behind a colon come their names, with the default values."""
    last = incomplete.rpartition(",")[2]
    before, colon, _ = last.rpartition(":")
    if not colon:
        return listed(incomplete, (info.name for info in infos))
    name, *given = before.split(":")
    known = [info for info in infos if info.name == name]
    taken = {each.partition("=")[0] for each in given}
    free = [param for info in known for param in info.params if param.name not in taken]
    return listed(incomplete, (f"{before}:{param.name}={param.default:g}" for param in free))


class Named(Protocol):
    """What a registry knows by name, with parameters."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def params(self) -> tuple[Param, ...]:
        """What can be set of it."""


class _Names(ShellComplete):
    """Completes names only: with none, shells complete files, which they do better."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        return [item for item in super().get_completions(args, incomplete) if item.type == "plain"]


class _Bash(_Names, BashComplete):
    """Bash takes ``:`` and ``=`` for words of their own, and replaces what follows them."""

    def get_completion_args(self) -> tuple[list[str], str]:
        args, incomplete = super().get_completion_args()
        *args, incomplete = joined([*args, incomplete])
        return args, incomplete

    def format_completion(self, item: CompletionItem) -> str:
        incomplete = self.get_completion_args()[1]
        typed = incomplete.partition("=")[2] if incomplete.startswith("--") else incomplete
        breaks = list(_BREAK.finditer(typed))
        return str(item.value).removeprefix(typed[: breaks[-1].end()] if breaks else "")


class _Zsh(_Names, ZshComplete):
    """Zsh splits at blanks only."""


class _Fish(_Names, FishComplete):
    """Fish splits at blanks only."""


def joined(words: Sequence[str]) -> list[str]:
    """Words as they were before bash has split them at ``:`` and ``=``."""
    found: list[str] = []
    is_open = False
    for word in words:
        is_break = bool(_BREAK.fullmatch(word))
        if found and (is_break or is_open):
            found[-1] += word
        else:
            found.append(word)
        is_open = is_break
    return found
