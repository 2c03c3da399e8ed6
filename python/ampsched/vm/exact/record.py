"""Recordings of commands on the cores of an exact virtual machine: work is instructions, whichever core executed them.

There are two ways. `record_calls` loads the recorder's library in the guest, which sees locks; the command runs on as
many cores, all of the fastest kind, so that CPU time is work. `record` lets the guest's kernel tell, which sees who
woke whom, of any program, on the machine's own cores. Threads that share a core (SMT) are cores of their own in both,
or CPU time would be more than work.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ampsched._core import InputError, Recording
from ampsched.files import shown, temporary_folder
from ampsched.recording import preload, room
from ampsched.recording.imports import import_file
from ampsched.vm.exact.machine import Done, Exact, Work, find_program, run
from ampsched.vm.exact.trace import RECORDED


def record(
    exact: Exact,
    work: Work,
    *,
    name: str | None = None,
    machine: str = "",
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
        machine: What the recording calls the machine: a name that `ampsched.Catalog` knows.
        out: Folder for the files that the command leaves in its own; they are thrown away by default.
        limit_s: Time of this computer in s after which the machine is stopped.
        echo: Is told the output as it comes.

    Returns:
        What has come out of it, and the recording; none if the command did not end.

    Raises:
        VmError: Something that is needed is missing, or QEMU does not start.
        InputError: The trace has none of the program's threads.
    """
    exact = replace(exact, shares_cores=False)
    with temporary_folder("ampsched-record-") as folder:
        trace = folder / "trace"
        done = run(exact, work, out=out, trace=trace, events=RECORDED, limit_s=limit_s, echo=echo)
        if done.code is None:
            return done, None
        return done, _recording(exact, work, trace, name, machine, done.code)


def _recording(exact: Exact, work: Work, trace: Path, name: str | None, machine: str, code: int) -> Recording:
    machine_clusters, clusters = exact.machine.clusters, exact.clusters()
    owners = exact.machine.cluster_of_core
    return import_file(
        trace,
        commands=[name or Path(work.command[0]).name],
        speeds=[clusters[owner].speed for owner in owners],
        kinds=[machine_clusters[owner][1] for owner in owners],
        command=work.command,
        kernel=exact.fetch_kernel().release,
        recorder="vm",
        exit_code=code,
        machine=machine,
    )


PARTS = "recorder.parts"
"""Working folder of the recorder in the guest, beside the command."""
LIMIT_MB = 512
"""Most that events may take of the guest's memory, in MiB."""


def record_calls(
    exact: Exact,
    work: Work,
    *,
    machine: str = "",
    measures_speedup: bool = True,
    limit_s: float = 600.0,
    echo: Callable[[str], None] = lambda text: None,
) -> tuple[Done, Recording | None]:
    """Runs a command on as many cores as a machine has, all of its fastest kind, and records its calls.

    Args:
        exact: The machine.
        work: The command, which must be dynamically linked and of this computer's architecture.
        machine: What the recording calls the machine: a name that `ampsched.Catalog` knows.
        measures_speedup: Run the command once more, on cores of the slowest kind only: CPU time there by that on the
            fastest is its speed-up.
        limit_s: Time of this computer in s after which the machine is stopped, for each run.
        echo: Is told the output of the recorded run as it comes.

    Returns:
        What has come out of the recorded run, and the recording; none if the command did not end.

    Raises:
        VmError: Something that is needed is missing, or QEMU does not start.
        InputError: The program cannot be recorded, or nothing was.
    """
    preload.find_program(str(find_program(work.command[0], work.cwd, exact.architecture)))
    exact = replace(exact, shares_cores=False)
    done, found = _calls(fastest(exact), work, machine, limit_s, echo)
    slow = slowest(exact) if measures_speedup else None
    if found is None or slow is None:
        return done, found
    _, slower = _calls(slow, work, machine, limit_s, lambda text: None)
    return done, with_speedup(found, slower) if slower else found


def with_speedup(fast: Recording, slow: Recording) -> Recording:
    """The recording on fast cores, with its speed-up: CPU time on slow ones by that on fast ones."""
    speedup = slow.cpu_ns / fast.cpu_ns
    return fast.with_info(json.dumps({**json.loads(fast.info), "speedup": speedup}))


def _calls(
    exact: Exact, work: Work, machine: str, limit_s: float, echo: Callable[[str], None]
) -> tuple[Done, Recording | None]:
    """Runs a command with the recorder's library in it."""
    info: dict[str, object] = {
        "name": Path(work.command[0]).name,
        "command": [shown(word) for word in work.command],
        "recorder": "vm",
        "kernel": exact.fetch_kernel().release,
        "cores": [{"speed": 1.0}] * exact.machine.cores,
        "machine": machine,
    }
    parts = room.check_path(work.cwd.absolute() / PARTS)
    with temporary_folder("ampsched-record-") as folder:
        here, left = folder / "here", folder / "left"
        room.prepare(here, info, LIMIT_MB, is_alone=True)
        recorded = replace(
            work,
            placed={**work.placed, **{parts / file.name: file for file in here.iterdir()}},
            linked=[*work.linked, here / room.LIBRARY],
            variables={**work.variables, **preload.variables(parts)},
        )
        done = run(exact, recorded, out=left, limit_s=limit_s, echo=echo)
        if done.code is None:
            return done, None
        if not (left / PARTS).is_dir():
            raise InputError(f"{work.command[0]}: has not loaded the recorder (try --system)")
        shutil.copy(here / room.INFO, left / PARTS)
        return done, preload.recover(left / PARTS, {"exit_code": done.code})


def fastest(exact: Exact) -> Exact:
    """The machine with as many cores, all of its fastest kind, each as fast as it is."""
    speeds = None if exact.speeds is None else [max(exact.speeds, key=lambda costs: costs.rate_kips)]
    return replace(exact, machine=exact.machine.all_big(), speeds=speeds)


def slowest(exact: Exact) -> Exact | None:
    """The machine with only its slowest kind of core, as slow as it is; none if there is only one kind."""
    ranks = [rank for *_, rank in exact.machine.clusters]
    if len(set(ranks)) == 1:
        return None
    little = exact.machine.only_little()
    if exact.speeds is not None:
        pairs = zip(exact.speeds, ranks, strict=True)
        return replace(exact, machine=little, speeds=[costs for costs, rank in pairs if rank == min(ranks)])
    speeds = [cluster.speed for cluster in exact.clusters()]
    return replace(exact, machine=little, mips=exact.mips * min(speeds) / max(speeds))
