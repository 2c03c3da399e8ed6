"""Wrappers: scripts that run a program as was advised, and leave to the caller whatever the caller decides."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ampsched._core import InputError
from ampsched.files import shown
from ampsched.recording.setting import PLACE, Setting

_RUNNERS = re.compile(
    r"(python|pypy|perl|ruby|node|java|php|lua|Rscript|julia|bash|dash|sh|zsh|fish|ksh|busybox|make|env|sudo|doas|nice"
    r"|ionice|chrt|numactl|taskset|time|timeout|stdbuf|setsid|nohup|xargs|parallel|strace|ltrace|perf|gdb|valgrind"
    r"|docker|podman|srun|systemd-run|dotnet|deno|bun|mpirun|mpiexec|ampsched)[0-9.]*"
)
"""Programs that run others: a wrapper in the place of one would change all of these."""
_JOINED = re.compile(rf"(-[A-Za-z]|--?[A-Za-z][\w-]*=){re.escape(PLACE)}")
"""An option with the number of threads in the same word: ``-j{threads}``, ``--threads={threads}``."""
_SEPARATE = re.compile(r"--?[A-Za-z][\w-]*")
"""An option whose number of threads is the next word."""
_WHOLE = "for a script of the whole command: --to FILE"
_FORGET = "hash -r"
"""What makes a shell look for programs again that it has run: hash(1p)."""


def home() -> Path:
    """The user's folder.

    Raises:
        InputError: There is none.
    """
    try:
        found = Path.home()
    except RuntimeError as error:
        raise InputError(f"HOME: {error} (set it)") from None
    if os.environ.get("HOME") == "" or not (found.is_absolute() and found.is_dir()):
        raise InputError(f"HOME={shown(os.environ.get('HOME', ''))}: is no folder (set it)")
    return found


def in_place_of(program: Path, words: Sequence[str]) -> tuple[Path, tuple[str, ...]]:
    """Where a wrapper takes a program's place, and which options it adds.

    It gets other arguments than the command that advice was for, and passes them on as they are. It adds options of
    threads only where these stand directly behind the program: elsewhere a subcommand or an operand may come before.

    Args:
        program: The program.
        words: Its arguments; `PLACE` stands for the number of threads.

    Raises:
        InputError: A wrapper would change more than this program, or nobody knows where its options belong.
    """
    name = shown(program.name)
    if _RUNNERS.fullmatch(program.name):
        raise InputError(f"a wrapper called {name} would change all that it runs ({_WHOLE})")
    count = _leading(words)
    if any(PLACE in word for word in words[count:]):
        after = "".join(f" {shown(word)}" for word in words[:2]) if not count else ""
        raise InputError(
            f"--apply: a wrapper called {name} can add {PLACE} only as an option directly behind {name}, such as -j "
            f"{PLACE}; in {name}{after or ' ' + shown(shlex.join(words))} ... it would change its place ({_WHOLE})"
        )
    return home() / ".local/bin" / program.name, tuple(words[:count])


def _leading(words: Sequence[str]) -> int:
    """How many words at the begin are options of threads."""
    count = 0
    while count < len(words):
        if _JOINED.fullmatch(words[count]):
            count += 1
        elif _SEPARATE.fullmatch(words[count]) and list(words[count + 1 : count + 2]) == [PLACE]:
            count += 2
        else:
            break
    return count


def script(setting: Setting, words: Sequence[str], *, is_in_place: bool) -> list[str]:
    """The lines of a wrapper behind its comment; none if nothing of the setting can be kept by one.

    In the place of a program it leaves variables alone that are set, cores if the caller may use others than today (as
    under another ``taskset``, or in a container), and the number of threads if an argument says one.

    Args:
        setting: What is kept.
        words: The program, and the arguments that come first.
        is_in_place: Whether it takes the program's place.

    Raises:
        InputError: There is no ``taskset``.
    """
    if not (setting.environment or setting.cores or any(PLACE in word for word in words)):
        return []
    taskset = shutil.which("taskset")
    if setting.cores and taskset is None:
        raise InputError("taskset is missing, which a wrapper needs (install util-linux)")
    variables = [(name, shlex.quote(value)) for name, value in setting.environment]
    if not is_in_place:
        run = shlex.join(replace(setting, environment=()).argv(words))
        return [*(f"export {name}={value}" for name, value in variables), f'exec {run} "$@"']
    return [
        *(f'[ "${{{name}+set}}" ] || export {name}={value}' for name, value in variables),
        *(_pinned(shlex.quote(str(taskset)), setting.cores.list) if setting.cores else []),
        *_told(words),
        f'exec {shlex.join([words[0], *setting.with_threads(words[1:])])} "$@"',
    ]


def _pinned(taskset: str, cores: str) -> list[str]:
    """Gives this shell, and so the program, its cores; if it may use those that it may today."""
    today = sum(1 << cpu for cpu in os.sched_getaffinity(0))
    return [
        f'case $({taskset} --pid $$) in *" {today:x}") {taskset} --cpu-list --pid {cores} $$ >/dev/null ;; esac'
    ]


def _told(words: Sequence[str]) -> Iterator[str]:
    """Runs the program as it is called if the caller says how many threads."""
    options = [word.partition(PLACE)[0].removesuffix("=") for word in words[1:] if word.startswith("-")]
    if not options:
        return
    one = [f"{shlex.quote(name)}*" for name in options if len(name) == 2]
    long = [f"{shlex.quote(name)}|{shlex.quote(name)}=*" for name in options if len(name) > 2]
    yield "for ampsched_word; do"
    yield f'  case $ampsched_word in --) break ;; {"|".join(one + long)}) exec {shlex.quote(words[0])} "$@" ;; esac'
    yield "done"


def called(path: Path, program: Path) -> tuple[str, str]:
    """What to know when a wrapper is written, and when it is gone.

    Args:
        path: The wrapper.
        program: What it runs.
    """
    if path.name != program.name:
        return f"run it as: {shlex.quote(_shortest(path))}", ""
    folders = os.get_exec_path()
    if str(path.parent) not in folders:
        return f"run it as: {shlex.quote(str(path))} ({path.parent} is not in PATH)", ""
    first = next(each for each in folders if each == str(path.parent) or shutil.which(path.name, path=each))
    if first != str(path.parent):
        return f"run it as: {shlex.quote(str(path))} (PATH has {first} before {path.parent})", ""
    beside = f"{shlex.quote(str(program))}, aliases and functions of a shell go past it"
    open_ = f"shells that have run {path.name} already need: {_FORGET}"
    return f"run it as: {shlex.quote(path.name)} ({beside}; {open_})", open_


def _shortest(path: Path) -> str:
    return path.name if str(path.parent) in os.get_exec_path() else str(path)
