"""Runs and records programs on two CPUs of this computer, and runs them in exact virtual machines."""

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ampsched.execution import ordered
from ampsched.recording import Recording
from ampsched.settings import CoreOrder
from ampsched.vm.exact import Exact, Work, fastest, record, record_calls, run, slowest, under
from ampsched_lab.gain import machines
from ampsched_lab.recordings.elsewhere.programs import EMPTY, Program

TIMED = re.compile(r"TIMED (\d+) (\d+) (\d+)")
MEMORY_MB = 4096
LIMIT_S = 900.0
CALIBRATED_ON = {"2B2S": "2B2S", "1B3S": "2B2S", "4B4S": "2B2S", "2P4E": "2P4E"}
"""Two fast cores of that machine, and two slow ones, tell how fast a program is on either."""
MIPS = 1000.0


@dataclass(frozen=True)
class Timed:
    """How long a command took, and the CPU time of it and of all that it waited for, in ns."""

    wall_ns: int
    cpu_ns: int


class Failed(Exception):
    """A program did not end as it should."""


def _timed(output: str, told: str) -> Timed:
    found = TIMED.search(output)
    if not found or found[1] != "0":
        raise Failed(told.strip()[-400:])
    return Timed(int(found[2]), int(found[3]))


def plain(program: Program, folder: Path, timed: Path) -> Timed:
    """Runs it here, as it is."""
    done = subprocess.run([timed, *program.words], cwd=folder, capture_output=True, check=False)
    return _timed(done.stdout.decode(), (done.stdout + done.stderr).decode(errors="replace"))


def recorded(program: Program, folder: Path, out: Path) -> str:
    """Records it here as users do; returns why that failed, if it did."""
    how = ("--system",) if program.recorder == "system" else ()
    words = [sys.executable, "-m", "ampsched", "record", *how, "-o", str(out), "--", *program.words]
    done = subprocess.run(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    return "" if done.returncode == 0 else done.stderr.decode(errors="replace").strip()[-400:]


def machine(name: str, mips: float = MIPS, order: CoreOrder = "as-is") -> Exact:
    """A machine whose fastest cores execute so many million integer instructions per second."""
    own = machines.exact(name, machines.X86)
    return replace(own, machine=ordered(own.machine, order), mips=mips, memory_mb=MEMORY_MB)


def two(kind: str, name: str, mips: float = MIPS) -> Exact:
    """Two cores of the fastest or of the slowest kind of a machine."""
    whole = machine(name, mips)
    exact = fastest(whole) if kind == "fast" else slowest(whole)
    assert exact is not None
    first, *others = (name for name, *_ in exact.machine.clusters)
    return replace(exact, machine=exact.machine.part([f"{first}=2", *(f"{name}=0" for name in others)]))


Needed = tuple[Sequence[Path], Sequence[Path]]
"""The files and folders of this computer that a program needs."""


def _work(program: Program, folder: Path, needed: Needed) -> Work:
    """A program in a virtual machine, with all that it needs."""
    files, folders = needed
    placed = {each / ".there": folder / EMPTY for each in folders}
    return Work(program.words, files=[folder, *files], cwd=folder, placed=placed)


def there(
    program: Program, exact: Exact, folder: Path, timed: Path, needed: Needed, policy: str = ""
) -> Timed:
    """Runs it in a virtual machine, in virtual time, under a policy of ours, or under Linux alone.

    Raises:
        Failed: It did not end, or not well.
    """
    work = _work(program, folder, needed)
    words, more = [str(timed), *program.words], list[Path]()
    if policy:
        words, more = under(policy, exact, words)
    done = run(exact, replace(work, command=words, files=[*work.files, *more]), limit_s=LIMIT_S)
    return _timed(done.output, f"{done.output}\n{done.console[-300:]}")


def recorded_there(program: Program, exact: Exact, folder: Path, needed: Needed) -> Recording:
    """Records it in a virtual machine with equal cores, in virtual time, as `ampsched vm record` does.

    Raises:
        Failed: It did not end, or not well.
    """
    work = _work(program, folder, needed)
    if program.recorder == "system":
        done, found = record(exact, work, limit_s=LIMIT_S)
    else:
        done, found = record_calls(exact, work, measures_speedup=False, limit_s=LIMIT_S)
    if found is None or done.code:
        raise Failed(f"{done.output}\n{done.console[-300:]}".strip()[-400:])
    return found
