"""Other tools' traces as recordings."""

from __future__ import annotations

import codecs
import json
from collections.abc import Sequence
from pathlib import Path

from ampsched._core import (
    DATA_BYTES_MAX,
    InputError,
    Machine,
    Recording,
    import_trace,
    trace_forms,
    wake_ups,
)
from ampsched.files import read_bytes, read_text, shown
from ampsched.recording.traced import stated

FORMS = dict(trace_forms())
"""The forms that are read, by the names with which recordings state them."""

__all__ = ["FORMS", "import_file", "wake_ups"]


def import_file(
    path: Path,
    *,
    commands: Sequence[str] = (),
    pids: Sequence[int] = (),
    speeds: Sequence[float] = (),
    kinds: Sequence[str] = (),
    command: Sequence[str] = (),
    kernel: str = "",
    recorder: str = "",
    exit_code: int | None = None,
    machine: str = "",
    traced: Machine | None = None,
    cpus: str = "",
    cgroups: Path | None = None,
) -> Recording:
    """The recording in a file of a trace, whose form is recognised by its content.

    Args:
        path: The file. Beside a ``NAME.npz.zst`` its ``NAME.json`` is read.
        commands: Programs whose threads are wanted, with all that they start: names of processes, threads or files.
            Without these and ``pids``: all threads of programs, apart from those of recorders.
        pids: Processes and threads that are wanted, with all that they start.
        speeds: Speeds of the cores, the first that of core 0; only their ratios count. Empty: all are equally fast.
        kinds: Kinds of the cores.
        command: What was executed, if it is known.
        kernel: Release of the kernel, if the trace does not tell it.
        recorder: Who recorded; the form's name by default.
        exit_code: How the program ended, if it is known.
        machine: The exact virtual machine that the trace is of, by its name.
        traced: The machine that the trace is of: states the cores' speeds, kinds and highest clocks.
        cpus: Which CPUs of the trace are of which of its clusters, such as ``little=0,3-5 big=1,2``. Empty: CPU i is
            core i.
        cgroups: What stands beside the trace of control groups and threads, lines ``PATH:VALUE`` as ``grep -rH`` prints
            them of ``/dev/cpuset``, ``/dev/cpuctl``, ``/dev/stune``, ``/sys/fs/cgroup`` and ``/proc``: threads get the
            CPUs, utilisation clamps and groups of it.

    Work is CPU time by the speed of the core at its clock of that moment. Without `traced` the highest clock of a core
    is that of the trace.

    Raises:
        InputError: There is no such file, it is of no form that is read, damaged, has none of the wanted threads, or
            more cores than the machine.
    """
    if traced and (speeds or kinds):
        raise InputError("a machine states the speeds of its cores: state either --machine or --speeds")
    if cpus and not traced:
        raise InputError(
            "--cpus states which CPUs are of which cluster of a machine: state it, too (--machine)"
        )
    options = {
        "commands": list(commands),
        "pids": list(pids),
        "speeds": list(speeds),
        "kinds": list(kinds),
        "command": list(command),
        "kernel": kernel,
        "recorder": recorder,
        "exit_code": exit_code,
        "machine": machine,
        "beside": _beside(path),
        "cgroups": [shown(cgroups), _cgroups(cgroups)] if cgroups else ["", ""],
        **(stated(traced, cpus) if traced else {}),
    }
    return import_trace(shown(path), read_bytes(path), json.dumps(options))


def _cgroups(path: Path) -> str:
    """The text of a file of control groups, whose names may be any bytes, and which a Windows shell may have written.

    Raises:
        InputError: It cannot be read, is too long, or is empty.
    """
    content = read_bytes(path, DATA_BYTES_MAX)
    is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = content.decode("utf-16" if is_utf16 else "utf-8-sig", errors="replace")
    if not text.strip():
        raise InputError(f"{path}: is empty")
    return text


def _beside(path: Path) -> str:
    """The text of the ``.json`` beside columns of numpy, empty if there is none."""
    name = path.name.removesuffix(".zst")
    if not name.endswith(".npz"):
        return ""
    beside = path.with_name(f"{name.removesuffix('.npz')}.json")
    return read_text(beside) if beside.is_file() else ""
