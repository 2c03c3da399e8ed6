"""Recordings of commands on the cores of an exact virtual machine: work is instructions, whoever executed them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from ampsched._core import Recording
from ampsched.recording.imports import import_file
from ampsched.vm.exact.machine import Done, Exact, Work, run
from ampsched.vm.exact.trace import RECORDED


def record(
    exact: Exact,
    work: Work,
    *,
    name: str | None = None,
    out: Path | None = None,
    limit_s: float = 600.0,
    echo: Callable[[str], None] = lambda text: None,
) -> tuple[Done, Recording | None]:
    """Runs a command as `run` does and records it.

    Time in the machine is virtual: what the recorder does takes the guest's time, but nothing that happens outside of
    it does. Each core's CPU time counts as much work as its speed says, so that work of 1 ms is what the fastest core
    executes in 1 ms: so many integer instructions, whichever core it was.

    Args:
        exact: The machine. A governor would change speeds that the recording takes as constant.
        work: The command.
        name: The program whose threads are recorded, with all that it starts; that of the command by default.
        out: Folder for the files that the command leaves in its own; they are thrown away by default.
        limit_s: Time of this computer in s after which the machine is stopped.
        echo: Is told the output as it comes.

    Returns:
        What has come out of it, and the recording; none if the command did not end.

    Raises:
        VmError: Something that is needed is missing, or QEMU does not start.
        InputError: The trace has none of the program's threads.
    """
    with tempfile.TemporaryDirectory(prefix="ampsched-record-") as folder:
        trace = Path(folder, "trace")
        done = run(exact, work, out=out, trace=trace, events=RECORDED, limit_s=limit_s, echo=echo)
        if done.code is None:
            return done, None
        return done, _recording(exact, work, trace, name, done.code)


def _recording(exact: Exact, work: Work, trace: Path, name: str | None, code: int) -> Recording:
    kinds = [core_type for _, core_type, *_ in exact.machine.clusters]
    clusters = list(zip(exact.clusters(), kinds, strict=True))
    return import_file(
        trace,
        commands=[name or Path(work.command[0]).name],
        speeds=[cluster.speed for cluster, _ in clusters for _ in range(cluster.cores)],
        kinds=[kind for cluster, kind in clusters for _ in range(cluster.cores)],
        command=work.command,
        kernel=exact.fetch_kernel().release,
        recorder="vm",
        exit_code=code,
    )
