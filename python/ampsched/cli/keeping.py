"""``advise --apply`` and ``--undo``: keeps the setting that was advised, and takes it back."""

from __future__ import annotations

import json
import os
import shlex
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
        "to": "Where: unit:NAME.service, cgroup:FOLDER, or FILE for a script of the command; by default a wrapper in ~/.local/bin.",
        "undo": "Take back what this user has applied: everything, or the programs and places that are named.",
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
            if not target[0].endswith(RECORDING):
                tell_of_wrapper(target[0])
            return None
        from ampsched.keeping.applied import check_free, check_writable
        from ampsched.keeping.places import place_of

        if machine is not None and not is_this(machine):
            raise InputError(
                f"--apply: what is best on {machine} is not kept on this computer (without --machine)"
            )
        found = place_of(*_wanted(self.to, target))
        check_free(found)
        check_writable(found)
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
        if not text:
            self._keep_nothing(place, lost)
            return
        if check_free(place) == text:
            _say(f"{place.path}: holds this already")
            return
        lines = "".join(f"\n  {line}" for line in text.splitlines())
        _say(f"{place.path}:{lines}")
        _say(f"not kept: {lost}" if lost else "")
        if self._is_agreed("write this?"):
            apply(place, text)
            _say(f"written (ampsched advise --undo takes it back); {place.then}")

    def _keep_nothing(self, place: Place, lost: str) -> None:
        """Says why nothing is written, and of what an earlier advice has written there that it is still in force.

        Raises:
            InputError: There is something that should be kept, and cannot be.
        """
        from ampsched.keeping.applied import in_force

        old = in_force(place.path)
        how = (
            f"{place.path}: what an earlier --apply wrote is in force ({_undo(old.name)} takes it back)"
            if old
            else ""
        )
        if lost:
            raise InputError(f"{place.name}: cannot keep {lost}{f'; {how}' if how else ''}")
        _say("nothing is written: it is best as it is")
        _say(how)
        if old and (self.yes or _has_terminal()):
            self.take_back([old.name])

    def take_back(self, names: Sequence[str]) -> None:
        """Takes back what is applied, the last first, having listed it and asked.

        Args:
            names: Places; all if there are none.

        Raises:
            InputError: Nothing is applied there, a file was changed since, or there is no terminal to ask on.
        """
        from ampsched.keeping.applied import all_applied, state_folder

        found = all_applied()
        wanted = _called(names, found) if names else found
        for each in wanted:
            before = each.before and (" ".join(each.before.split()) or "nothing")
            where = each.path if each.path == each.name else f"{each.name}: {each.path}"
            _say(f"{where} {f'will hold again: {before}' if before else 'will be removed'}")
        if not wanted:
            _say(f"nothing is applied by this user ({state_folder()} holds no record)")
        elif self._is_agreed("take this back?"):
            _take_back(wanted)

    def _is_agreed(self, question: str) -> bool:
        """Whether the user agrees.

        Raises:
            InputError: There is no terminal to ask on.
        """
        if not self.yes and not _has_terminal():
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
            _say(f"taken back: {each.name}{f'; {each.then}' if each.then else ''}")
    for first in changed.values():
        raise first


def tell_of_wrapper(program: str) -> None:
    """Says so if a program's name stands for a wrapper that was applied: then its setting is recorded, too."""
    from ampsched.keeping.applied import wrapper_of

    try:
        found = wrapper_of(program)
    except InputError:  # told when something is applied or taken back
        return
    if found:
        _say(
            f"note: {program} is the wrapper {found.path} of ampsched advise --apply, so what it sets is recorded, too "
            f"(name the program itself, or first: {_undo(found.name)})"
        )


def _wanted(to: str | None, target: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """Where a setting is kept, and the command to wrap; none if a recording does not say it letter by letter.

    Of a recording of a service that ran already, this service is the place if no other is named.

    Raises:
        InputError: The recording cannot be read, the program is a wrapper already, or no place is known.
    """
    from ampsched.keeping.applied import wrapper_of
    from ampsched.keeping.places import unit_of

    words, name = target, None
    if target[0].endswith(RECORDING):
        from ampsched.recording import load

        info = json.loads(load(Path(target[0])).info)
        words, name = info.get("command", []), info["name"]
        is_running = info.get("window_ns") is not None
        if is_running and to is None and unit_of(name) is None:
            raise InputError(
                f"--apply: {target[0]} is of processes that ran already ({name}): where? "
                "(--to unit:NAME.service or --to cgroup:FOLDER)"
            )
        if is_running or any("\\" in word or "%" in word for word in words):
            return to or (unit_of(name) if is_running else None), []
    old = wrapper_of(words[0]) if words and not (to or "").startswith(("unit:", "cgroup:")) else None
    if old:
        raise InputError(
            f"{words[0]}: is the wrapper {old.path} of --apply (take that back first: {_undo(old.name)})"
        )
    return to, words


def _called(names: Sequence[str], found: Sequence[Applied]) -> list[Applied]:
    """What is applied under some names, the last first.

    Raises:
        InputError: Nothing is called so, or several places are.
    """
    wanted: set[str] = set()
    for name in names:
        places = {each.name for each in found if _is_place(name, each)}
        places = places or {each.name for each in found if _is_short(name, each)}
        if len(places) != 1:
            known = ", ".join(dict.fromkeys(each.name for each in found)) or "nothing"
            what = "several places are called so" if places else "nothing is applied there by this user"
            raise InputError(f"{name}: {what} (applied: {known})")
        wanted |= places
    return [each for each in found if each.name in wanted]


def _is_place(name: str, made: Applied) -> bool:
    """Whether a name is a place; of a service ``.service`` may be left out, and a file or a folder may be relative."""
    kind = "cgroup:" if name.startswith("cgroup:") else ""
    path = os.path.abspath(name.removeprefix(kind))  # noqa: PTH100 (a link stays one)
    return made.name in (name, f"{name}.service", f"{kind}{path}")


def _is_short(name: str, made: Applied) -> bool:
    """Whether a name is that of the program, the service or the control group."""
    if name.startswith("cgroup:"):
        return made.name.startswith("cgroup:") and made.name.endswith(f"/{name[7:].strip('/')}")
    last = made.name.rpartition("/")[2].removeprefix("unit:")
    return name in (last, last.removesuffix(".service"))


def _undo(name: str) -> str:
    return f"ampsched advise --undo {shlex.quote(name)}"


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _say(text: str) -> None:
    if text:
        print(render.visible(text), file=sys.stderr)
