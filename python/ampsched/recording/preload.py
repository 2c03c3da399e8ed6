"""Recording a program without root: it loads a library first, which sees what its threads do.

What they do is written into a working folder beside the recording, and survives any end of the program. Then the
recording is made of it.
"""

import contextlib
import json
import os
import platform
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from ampsched._core import InputError, Recording, recording_from_raw, wakeup_ns
from ampsched.children import SIGNALLED, cpu_s_of_children, why_not_run
from ampsched.files import check_writable, shown
from ampsched.recording import both, room
from ampsched.recording.core_speeds import core_speeds
from ampsched.recording.counting import counted
from ampsched.recording.disturbance import Disturbance
from ampsched.recording.files import LIMIT_MB, keeping, save

FOLDER_SUFFIX = ".parts"
_HEAD_BYTES = 20
_ELF_CLASS, _ELF_MACHINE, _INTERPRETER = 4, 18, 3
_PASSED = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_ASAN_MAY_BE_SECOND = "verify_asan_link_order=0"
_WHOLE = "whole"
"""Time and CPU time of the whole in ns, among what a working folder knows."""


@dataclass(frozen=True)
class Outcome:
    """A program that has been recorded."""

    recording: Recording
    exit_code: int
    """Of the program, or 128 and the number of the signal that has ended it."""


def find_program(name: str) -> Path:
    """The file of a program that can be recorded.

    Raises:
        InputError: There is none, or it does not load libraries.
    """
    found = shutil.which(name)
    if found is None:
        raise InputError(f"{name}: {why_not_run(name)}")
    reason = why_not_loaded(name)
    if reason:
        raise InputError(f"{name}: {reason}, so it loads nothing of ours (try --system)")
    return Path(found).absolute()


def why_not_loaded(name: str) -> str | None:
    """Why a program does not load libraries: it is static, of another C library or architecture, or setuid.

    Args:
        name: The program.

    Returns:
        None if it does, or there is no such program.
    """
    found = shutil.which(name)
    if found is None:
        return None
    if Path(found).stat().st_mode & (stat.S_ISUID | stat.S_ISGID) and os.geteuid() != 0:
        return "has the rights of its owner"
    return _refuses(Path(found))


def _refuses(path: Path) -> str | None:
    """Why a program does not load the library; None if it may. What cannot be read is left to the kernel."""
    try:
        head, own = _begin(path, 1 << 20), _begin(Path("/proc/self/exe"), _HEAD_BYTES)
    except OSError:
        return None
    if head[:4] != b"\x7fELF":
        return None  # a script: its interpreter is what loads it
    machine = slice(_ELF_MACHINE, _ELF_MACHINE + 2)
    if head[_ELF_CLASS] != own[_ELF_CLASS] or head[machine] != own[machine]:
        return "is of another architecture"
    interpreter = _interpreter(head)
    if interpreter is None:
        return "is static"
    if b"ld-musl" in interpreter:
        return "uses another C library (musl)"
    return None


def _begin(path: Path, most_bytes: int) -> bytes:
    with path.open("rb") as file:
        return file.read(most_bytes)


def _interpreter(elf: bytes) -> bytes | None:
    """The dynamic linker that a 64-bit ELF file names."""
    at, size, count = (int.from_bytes(elf[a:b], "little") for a, b in ((32, 40), (54, 56), (56, 58)))
    for index in range(count):
        head = elf[at + index * size :][:size]
        if int.from_bytes(head[:4], "little") == _INTERPRETER:
            offset, length = (int.from_bytes(head[a : a + 8], "little") for a in (8, 32))
            return elf[offset : offset + length]
    return None


def record(
    command: Sequence[str], out: Path, limit_mb: int = LIMIT_MB, *, with_kernel: bool = False
) -> Outcome:
    """Runs a program, records what its threads do, and writes the recording.

    Standard streams are the caller's; signals are passed on.

    Args:
        command: Program and arguments.
        out: File of the recording. The working folder beside it, which must not be there, is removed only when the
            recording is written; `recover` makes a recording of it.
        limit_mb: Most that events may take, in MiB; the kernel's as much again.
        with_kernel: Merge the recording with what the kernel tells meanwhile, which needs root.

    Raises:
        InputError: The program cannot be recorded, nothing was, or the folder or the recording cannot be written.
        OSError: `out` cannot be written, which is tried before the program runs.
    """
    program = find_program(command[0])
    folder = out.with_name(out.name + FOLDER_SUFFIX)
    check_writable(out)
    info = _info(program, command)
    room.prepare(folder, info, limit_mb)
    children: list[subprocess.Popen[bytes]] = []

    def has_events() -> bool:
        # One that could not be waited for goes on.
        return room.taken_bytes(folder) > 0 or any(child.returncode is None for child in children)

    with keeping(folder, has_events):
        listening = both.listening(folder, limit_mb) if with_kernel else contextlib.nullcontext()
        with listening as kernel:
            code, known = _watched(command, program, folder, children)
            if kernel is not None:
                kernel.options["pids"] = [children[0].pid]
        with contextlib.suppress(OSError):  # it is only needed if the recording cannot be made now
            room.write_info(folder, info | known)
        recording = recover(folder, known)
        save(recording, out)
    return Outcome(recording, code)


def _watched(
    command: Sequence[str], program: Path, folder: Path, children: "list[subprocess.Popen[bytes]]"
) -> tuple[int, dict[str, Any]]:
    """Runs a program, and adds it to `children`; its exit code, and what is known of the run besides."""
    with room.reachable(folder) as place, room.making_room(folder):
        disturbance, before_s = Disturbance(), cpu_s_of_children()
        with counted() as counters:
            code, took_ns = _run(command, program, {**os.environ, **variables(place)}, children)
    cpu_ns = round((cpu_s_of_children() - before_s) * 1e9)
    known = {"exit_code": code, "foreign": disturbance.share(), "counters": counters}
    return code, {**known, _WHOLE: [took_ns, cpu_ns]}


def recover(folder: Path, known: Mapping[str, Any] | None = None) -> Recording:
    """Makes a recording of a working folder, such as a recorder that was killed leaves; the folder stays.

    Args:
        folder: The working folder.
        known: What else is known of the recording as a whole, by the names of `Recording.info`.

    Raises:
        InputError: It is none, or nothing was recorded.
    """
    name = shown(folder)
    try:
        info: dict[str, Any] = json.loads((folder / room.INFO).read_text(encoding="utf-8"))
        control, events = room.read(folder)
        told = both.told(folder)
    except FileNotFoundError as error:
        raise InputError(f"{name}: is no folder of a recorder: {error.strerror}") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{name}: is no folder of a recorder: {room.INFO} is no JSON") from None
    info |= known or {}
    took_ns, cpu_ns = info.pop(_WHOLE, (0, 0))
    if told:
        info["recorder"] = "both"
    return recording_from_raw(name, json.dumps(info), control, events, (took_ns, cpu_ns), told)


def _info(program: Path, command: Sequence[str]) -> dict[str, object]:
    return {
        "name": shown(program.name),
        "command": [shown(word) for word in command],
        "recorder": "preload",
        "kernel": platform.release(),
        "cores": [{"speed": speed} for speed in core_speeds()],
        "wakeup_ns": wakeup_ns(),
    }


def variables(folder: Path) -> dict[str, str]:
    """What the program's environment needs to have it recorded into a working folder.

    Threads of OpenMP that wait leave their cores, so that waiting is no work; LLVM's runtime takes a policy of waiting
    for barriers only, and of its locks only some let threads leave. The runtime of AddressSanitizer would end a program
    that loads another library before it.

    Args:
        folder: The working folder, an absolute path that the dynamic linker takes (`room.reachable`).
    """
    library = str(folder / room.LIBRARY)
    others = os.environ.get("LD_PRELOAD")
    return {
        "LD_PRELOAD": f"{library}:{others}" if others else library,
        "AMPSCHED_RECORD": str(folder),
        "ASAN_OPTIONS": ":".join(filter(None, (_ASAN_MAY_BE_SECOND, os.environ.get("ASAN_OPTIONS")))),
        "OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "passive"),
        "KMP_LOCK_KIND": os.environ.get("KMP_LOCK_KIND", "futex"),
    }


def _run(
    command: Sequence[str],
    program: Path,
    environment: dict[str, str],
    children: "list[subprocess.Popen[bytes]]",
) -> tuple[int, int]:
    """Runs a program; its exit code, and how long it took from when it was executed, in ns."""
    with _passing_signals(children):
        try:
            process = subprocess.Popen(command, executable=program, env=environment)  # noqa: S603 (the user's own)
        except OSError as error:
            raise InputError(f"{command[0]}: cannot be executed: {error.strerror}") from None
        # By now it is executed; what came before is no time of its own, nor of its end.
        begin_ns = time.monotonic_ns()
        children.append(process)
        code = process.wait()
        took_ns = time.monotonic_ns() - begin_ns
    return (code if code >= 0 else SIGNALLED - code), took_ns


@contextmanager
def _passing_signals(children: "list[subprocess.Popen[bytes]]") -> Iterator[None]:
    """What tells this process to end tells it to the children instead, once the caller has added them.

    What is typed at a terminal, such as Ctrl-C, reaches them by itself.
    """

    def handle(number: int, _frame: FrameType | None) -> None:
        if number in (signal.SIGINT, signal.SIGQUIT) and _is_typed():
            return
        for child in children:
            child.send_signal(number)

    numbers = [each for each in (signal.SIGINT, *_PASSED) if signal.getsignal(each) != signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_typed() -> bool:
    """Whether this process is one that a terminal's keys reach."""
    try:
        with Path("/dev/tty").open("rb") as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False
