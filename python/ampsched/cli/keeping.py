"""``advise --apply`` and ``--undo``: keeps the setting that was advised, and takes it back."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ampsched._core import InputError
from ampsched.catalog import is_this
from ampsched.cli import injection, render
from ampsched.kinds import RECORDING

if TYPE_CHECKING:
    from ampsched.keeping.applied import Applied
    from ampsched.keeping.places import Place
    from ampsched.recording.setting import Setting


def with_keeping(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command ``--apply``, ``--to``, ``--undo``, ``--yes``; its parameter ``keeping`` gets a `Keeping`."""
    told = {
        "apply": "Keep the best setting that needs no scheduler of ours; shows it first, and asks.",
        "to": "Where: unit:NAME.service, cgroup:FOLDER, or FILE for a wrapper; by default one in ~/.local/bin.",
        "undo": "Take back what was applied: everything, or the places that are named.",
        "yes": "Do not ask.",
    }
    how: dict[str, Any] = {"rich_help_panel": "Keep it"}
    options = [
        injection.option(name, bool, False, typer.Option(f"--{name}", help=text, **how))
        if name != "to"
        else injection.option(name, str | None, None, typer.Option("--to", help=text, metavar="WHERE", **how))
        for name, text in told.items()
    ]
    return injection.with_options(command, "keeping", options, lambda given: Keeping(**given))


@dataclass(frozen=True, slots=True)
class Keeping:
    """What the options ask for.

    Attributes:
        apply: Whether the setting is kept.
        to: Where.
        undo: Whether what was applied is taken back.
        yes: Whether nobody is asked.
    """

    apply: bool
    to: str | None
    undo: bool
    yes: bool

    def __post_init__(self) -> None:
        """Refuses options that exclude each other."""
        if self.apply and self.undo:
            raise InputError("--apply and --undo exclude each other")
        if self.to is not None and not self.apply:
            raise InputError("--to goes with --apply (places to --undo stand without it)")
        if self.yes and not (self.apply or self.undo):
            raise InputError("--yes goes with --apply or --undo")

    def place(self, target: Sequence[str], machine: str | None) -> Place | None:
        """Where a setting will be kept, to be known before anything long begins; None if nobody wants that.

        Args:
            target: A recording, or a command.
            machine: The machine that the question is about.

        Raises:
            InputError: It cannot be kept there.
        """
        if not self.apply:
            return None
        from ampsched.keeping.applied import check_free
        from ampsched.keeping.places import place_of

        if machine is not None and not is_this(machine):
            raise InputError(
                f"--apply: what is best on {machine} is not kept on this computer (without --machine)"
            )
        found = place_of(self.to, _command(target))
        check_free(found)
        return found

    def keep(self, place: Place | None, settings: Sequence[Setting]) -> None:
        """Writes what keeps a setting, having shown it and asked.

        Args:
            place: Where; none: nowhere.
            settings: What is advised, the best first; those that need a scheduler of ours are passed over.

        Raises:
            InputError: Nothing of it can be kept, or there is no terminal to ask on.
        """
        if place is None:
            return
        from ampsched.keeping.applied import apply, check_free
        from ampsched.keeping.places import kept

        setting, why = kept(settings)
        text, lost = place.text(setting), "; ".join(place.lost(setting))
        _say(why)
        if not text and lost:
            raise InputError(f"{place.name}: cannot keep {lost}")
        if not text or check_free(place) == text:
            _say(f"{place.path}: holds this already" if text else "nothing is written: it is best as it is")
            return
        lines = "".join(f"\n  {line}" for line in text.splitlines())
        _say(f"{place.path}:{lines}")
        _say(f"not kept: {lost}" if lost else "")
        if self._is_agreed("write this?"):
            apply(place, text)
            _say(f"written (ampsched advise --undo takes it back); {place.then}")

    def take_back(self, names: Sequence[str]) -> None:
        """Takes back what is applied, the last first, having listed it and asked.

        Args:
            names: Places; all if there are none.

        Raises:
            InputError: Nothing is applied there, a file was changed since, or there is no terminal to ask on.
        """
        from ampsched.keeping.applied import all_applied

        found = all_applied()
        for name in names:
            if not any(_is_called(name, each) for each in found):
                known = ", ".join(dict.fromkeys(each.name for each in found)) or "nothing"
                raise InputError(f"{name}: nothing is applied there by this user (applied: {known})")
        wanted = [each for each in found if not names or any(_is_called(name, each) for name in names)]
        for each in wanted:
            before = each.before and (" ".join(each.before.split()) or "nothing")
            _say(f"{each.name}: {each.path} {f'holds again: {before}' if before else 'is removed'}")
        if not wanted:
            _say("nothing is applied by this user")
        elif self._is_agreed("take this back?"):
            _take_back(wanted)

    def _is_agreed(self, question: str) -> bool:
        """Whether the user agrees.

        Raises:
            InputError: There is no terminal to ask on.
        """
        if not self.yes and not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise InputError("nothing is changed: there is no terminal to ask on (--yes agrees)")
        is_agreed = self.yes or typer.confirm(question, err=True)
        _say("" if is_agreed else "nothing is changed")
        return is_agreed


def _take_back(wanted: Sequence[Applied]) -> None:
    """Takes all back that is as it was written.

    Raises:
        InputError: Some is not.
    """
    from ampsched.keeping.applied import take_back

    changed: dict[str, InputError] = {}
    for each in wanted:
        if each.path in changed:  # what it held before a change stays, too
            continue
        _say(each.difference)
        try:
            take_back(each)
        except InputError as error:
            changed[each.path] = error
        else:
            _say(f"taken back: {each.name}; {each.then}")
    for first in changed.values():
        raise first


def _command(target: Sequence[str]) -> Sequence[str]:
    """The command to wrap; none if a recording does not say it letter by letter, or is of what ran already."""
    if not target[0].endswith(RECORDING):
        return target
    from ampsched.recording import load

    info = json.loads(load(Path(target[0])).info)
    words: list[str] = info.get("command", [])
    is_known = info.get("window_ns") is None and not any("\\" in word or "%" in word for word in words)
    return words if is_known else []


def _is_called(name: str, made: Applied) -> bool:
    """Whether a place is meant; of a service ``.service`` may be left out, and a file may be relative."""
    return made.name in (name, f"{name}.service", os.path.abspath(name))  # noqa: PTH100


def _say(text: str) -> None:
    if text:
        print(render.visible(text), file=sys.stderr)
