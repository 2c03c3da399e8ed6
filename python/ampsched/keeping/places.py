"""Where a setting can be kept: a program's wrapper, a systemd service's drop-in, a control group's cpuset."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ampsched._core import InputError
from ampsched.files import shown
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
_RUNNERS = re.compile(
    r"(python|pypy|perl|ruby|node|java|php|lua|Rscript|julia|bash|dash|sh|zsh|make|env|sudo|nice|numactl|taskset|time"
    r"|mpirun|mpiexec)[0-9.]*"
)
"""Programs that run others: a wrapper in the place of one would change all of these."""


@dataclass(frozen=True, slots=True)
class Place:
    """A file that keeps a setting.

    Attributes:
        name: What ``--to`` and ``--undo`` call it.
        path: The file.
        then: What to type, or to know, when it is written or taken back.
        words: Of a wrapper the program, and what comes before the arguments that the wrapper is given.
    """

    name: str
    path: Path
    then: str
    words: tuple[str, ...] = ()

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
            *([] if is_told else [f"{count} thread{'s' * (count != 1)} (tell the program)"]),
            *([f"governor {setting.governor} (see: cpupower frequency-set)"] if setting.governor else []),
        ]

    def _script(self, setting: Setting) -> list[str]:
        if not (setting.environment or setting.cores or any(PLACE in word for word in self.words)):
            return []
        if setting.cores and shutil.which("taskset") is None:
            raise InputError("taskset is missing, which a wrapper needs (install util-linux)")
        variables = (f"export {name}={shlex.quote(value)}" for name, value in setting.environment)
        run = shlex.join(replace(setting, environment=()).argv(self.words))
        return ["#!/bin/sh", _signed(setting), *variables, f'exec {run} "$@"']


def place_of(to: str | None, command: Sequence[str]) -> Place:
    """Where a setting is kept.

    Args:
        to: ``unit:NAME``, ``cgroup:FOLDER`` or a file for a wrapper of the command; none: a wrapper that takes the
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
    if to is None and _RUNNERS.fullmatch(program.name):
        raise InputError(
            f"a wrapper called {program.name} would change all that it runs (name another: --to FILE)"
        )
    path = Path.home() / ".local/bin" / program.name if to is None else Path(os.path.abspath(to))  # noqa: PTH100
    if to == "" or path.is_dir():
        raise InputError(f"--to {shown(path)}: is no file")
    if path.resolve() == program.resolve():
        raise InputError(
            f"{shown(path)}: is the program itself, or its wrapper (take that back first, with --undo)"
        )
    words = _of_threads(command[1:]) if to is None else command[1:]
    run = path.name if str(path.parent) in os.get_exec_path() else str(path)
    return Place(str(path), path, f"run it as: {shlex.quote(run)}", (str(program), *words))


def _of_threads(words: Sequence[str]) -> Iterator[str]:
    """The arguments that say how many threads."""
    for before, word in zip(["", *words], words, strict=False):
        if PLACE in word:
            yield from [before] if before.startswith("-") and PLACE not in before else []
            yield word


def _drop_in(unit: str) -> Place:
    name = unit if unit.endswith(".service") else f"{unit}.service"
    if not _UNIT_NAME.fullmatch(name):
        raise InputError(f"--to {UNIT}{shown(unit)}: is no name of a service (such as nginx.service)")
    base = os.environ.get("XDG_CONFIG_HOME", "")
    folder = (Path(base) if base.startswith("/") else Path.home() / ".config") / "systemd/user"
    control = "systemctl --user"
    if os.geteuid() == 0:
        folder, control = SYSTEM_UNITS, "systemctl"
    then = f"then: {control} daemon-reload && {control} restart {shlex.quote(name)}"
    return Place(f"{UNIT}{name}", folder / f"{name}.d" / "50-ampsched.conf", then)


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
