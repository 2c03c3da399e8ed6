"""Where a setting can be kept: a program's wrapper, a systemd service's drop-in, a control group's cpuset."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ampsched._core import InputError
from ampsched.files import shown
from ampsched.keeping import clocks, wrappers
from ampsched.naming import in_number
from ampsched.recording.check import LINUX
from ampsched.recording.running import cgroup_mounts
from ampsched.recording.setting import PLACE, Setting

UNIT, CGROUP = "unit:", "cgroup:"
"""How places are called that are no wrappers."""
SYSTEM_UNITS = Path("/etc/systemd/system")
_CPUS = "cpuset.cpus"
_UNIT_NAME = re.compile(r"[A-Za-z0-9:_.\\@][A-Za-z0-9:_.\\@-]{0,246}\.service")
"""systemd.unit(5): at most 255 characters."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED = str.maketrans({"\\": r"\\", '"': r"\"", "%": "%%", "\n": r"\n", "\r": r"\r"})
"""Within quotes: systemd.syntax(7); % begins a specifier: systemd.unit(5)."""


@dataclass(frozen=True, slots=True)
class Place:
    """A file that keeps a setting.

    Attributes:
        name: What ``--to`` and ``--undo`` call it.
        path: The file.
        then: What to type, or to know, when it is written.
        undone: The same when it is taken back; empty if there is nothing.
        words: Of a wrapper the program, and what comes before the arguments that the wrapper is given.
        is_in_place: Whether it is a wrapper that takes the program's place.
    """

    name: str
    path: Path
    then: str
    undone: str = ""
    words: tuple[str, ...] = ()
    is_in_place: bool = False

    def text(self, setting: Setting) -> str:
        """The content of the file; empty if nothing of the setting can be kept here.

        Raises:
            InputError: A variable cannot be written so, or there is no ``taskset``.
        """
        _check_variables(setting)
        if self.name.startswith(CGROUP):
            lines = [setting.cores.list] if setting.cores else []
        else:
            lines = _service(setting) if self.name.startswith(UNIT) else self._script(setting)
        return "".join(f"{line}\n" for line in lines)

    def lost(self, setting: Setting) -> list[str]:
        """What of a setting is not kept here."""
        variables = setting.environment if self.name.startswith(CGROUP) else ()
        count, kept = setting.threads, [value for _, value in setting.environment[len(variables) :]]
        is_told = count is None or str(count) in kept or any(PLACE in word for word in self.words)
        return [
            *(f"{name}={value}" for name, value in variables),
            *([f"{count} {in_number(count, 'thread')} (tell the program)"] if count and not is_told else []),
            *([_clocks(setting.governor)] if setting.governor else []),
        ]

    def _script(self, setting: Setting) -> list[str]:
        lines = wrappers.script(setting, self.words, is_in_place=self.is_in_place)
        return ["#!/bin/sh", _signed(setting), *lines] if lines else []


def unit_of(name: str) -> str | None:
    """The place of a service that a recording of what ran already is called after; None if it is no service's name."""
    return f"{UNIT}{name}" if _UNIT_NAME.fullmatch(name) else None


def place_of(to: str | None, command: Sequence[str]) -> Place:
    """Where a setting is kept.

    Args:
        to: ``unit:NAME``, ``cgroup:FOLDER`` or a file for a script of the whole command; none: a wrapper that takes the
            program's place, in ``~/.local/bin``.
        command: The program and its arguments; `PLACE` stands for the number of threads.

    Raises:
        InputError: There is no such place, or no such program.
    """
    if to is not None and to.startswith(UNIT):
        return _drop_in(to.removeprefix(UNIT))
    if to is not None and to.startswith(CGROUP):
        return _cpuset(to.removeprefix(CGROUP))
    if not command:
        raise InputError(
            f"--apply: where? (--to {UNIT}NAME.service, --to {CGROUP}FOLDER, or give the command)"
        )
    found = shutil.which(command[0])
    if found is None:
        raise InputError(f"{shown(command[0])}: is no program that can be executed")
    program = Path(os.path.abspath(found))  # noqa: PTH100 (a link stays one)
    return _in_place(program, command[1:]) if to is None else _wrapper(to, program, command[1:])


def _in_place(program: Path, arguments: Sequence[str]) -> Place:
    path, options = wrappers.in_place_of(program, arguments)
    _check_other(path, program)
    return Place(str(path), path, *wrappers.called(path, program), (str(program), *options), is_in_place=True)


def _wrapper(to: str, program: Path, arguments: Sequence[str]) -> Place:
    path = Path(os.path.abspath(to))  # noqa: PTH100 (a link stays one)
    if not to or path.is_dir():
        raise InputError(f"--to {shown(path)}: is no file")
    if not path.parent.is_dir():
        raise InputError(
            f"--to {shown(path)}: there is no folder {shown(path.parent)} (make it first, or name another)"
        )
    _check_other(path, program)
    return Place(str(path), path, *wrappers.called(path, program), (str(program), *arguments))


def _check_other(path: Path, program: Path) -> None:
    if path.resolve() == program.resolve() or (path.exists() and path.samefile(program)):
        raise InputError(
            f"{shown(path)}: is the program itself, or its wrapper (take that back first: ampsched advise --undo "
            f"{shlex.quote(shown(path.name))})"
        )


def _drop_in(unit: str) -> Place:
    name = unit if unit.endswith(".service") else f"{unit}.service"
    if not _UNIT_NAME.fullmatch(name):
        raise InputError(f"--to {UNIT}{shown(unit)}: is no name of a service (such as nginx.service)")
    folder, control = (_user_units(), "systemctl --user") if os.geteuid() else (SYSTEM_UNITS, "systemctl")
    is_there = is_unit(control.split(), name)
    if is_there is False:
        raise InputError(f"--to {UNIT}{name}: there is no such unit (see: {control} list-unit-files)")
    then = f"then: {control} daemon-reload && {control} restart {shlex.quote(name)}"
    unasked = "; whether there is such a unit is not known, as systemd does not answer here"
    path = folder / f"{name}.d" / "50-ampsched.conf"
    return Place(f"{UNIT}{name}", path, then + unasked * (is_there is None), then)


def _user_units() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base.startswith("/") else wrappers.home() / ".config") / "systemd/user"


def is_unit(control: Sequence[str], name: str) -> bool | None:
    """Whether systemd knows a unit; None if it cannot be asked.

    Args:
        control: ``systemctl``, and which systemd is meant.
        name: The unit.
    """
    program = shutil.which(control[0])
    if program is None:
        return None
    command = [program, *control[1:], "cat", "--no-pager", "--", name]
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=30, check=False)  # noqa: S603 (its own program)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode == 0:
        return True
    return False if b"No files found for" in done.stderr else None


def _service(setting: Setting) -> list[str]:
    """A drop-in. Lists of several files add up; an empty one takes back those before.

    A user's systemd has no cpusets (user@.service: ``Delegate=``).
    """
    keys = ["CPUAffinity"] if os.geteuid() else ["CPUAffinity", "AllowedCPUs"]
    cores = [f"{key}={value}" for key in keys for value in ("", setting.cores.list)] if setting.cores else []
    variables = [f'Environment="{name}={value.translate(_QUOTED)}"' for name, value in setting.environment]
    return [_signed(setting), "[Service]", *cores, *variables] if cores or variables else []


def _cpuset(group: str) -> Place:
    what = f"--to {CGROUP}{shown(group)}"
    if not group.strip("/"):
        raise InputError(f"{what}: is no control group below the first one")
    below = [mount / group.lstrip("/") for mount in cgroup_mounts()]
    folders = [Path(os.path.abspath(group)), *below]  # noqa: PTH100
    found = next((folder for folder in folders if (folder / _CPUS).is_file()), None)
    if found is None:
        raise InputError(
            f"{what}: no control group so called has a {_CPUS} (echo +cpuset >> cgroup.subtree_control)"
        )
    then = "it lasts until the group is removed or the computer restarts"
    return Place(f"{CGROUP}{found}", found / _CPUS, then)


def kept(settings: Sequence[Setting]) -> tuple[Setting, str]:
    """The first setting that needs no scheduler of ours, and why it is not the first of all.

    Args:
        settings: The best first.

    Raises:
        InputError: All need one.
    """
    best = settings[0]
    found = next((setting for setting in settings if setting.policy == LINUX), None)
    why = f"{best.policy} lasts only as long as ampsched live run"
    if found is None:
        raise InputError(f"{why}: nothing is applied (see packaging/ampsched-live.service)")
    return found, "" if found is best else f"{why}; the best without it: {found.name}"


def _clocks(governor: str) -> str:
    return f"governor {governor} ({clocks.command(governor)}; {clocks.condition(is_here=True)})"


def _check_variables(setting: Setting) -> None:
    for name, value in setting.environment:
        if not _VARIABLE.fullmatch(name) or "\0" in value or shown(value) != value:
            raise InputError(
                f"{shown(name)}={shown(value)}: is no variable that a file can set (or no UTF-8)"
            )


def _signed(setting: Setting) -> str:
    """The comment that says who has written a file."""
    name = " ".join(setting.name.split())
    return f"# {name}: written by ampsched advise --apply; ampsched advise --undo takes it back"
