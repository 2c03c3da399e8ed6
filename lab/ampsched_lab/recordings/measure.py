"""Runs programs, plain and recorded, and keeps the runs that nothing else disturbed.

The rule: of each program `RUNS` plain and `RUNS` recorded runs, taken in turns, now the one first, now the
other, that lost at most `FOREIGN_MAX` of the CPUs' time to others; if there are too few after `TRIES_MAX`
turns, the least disturbed ones. Each recording is replayed under what this computer's kernel does; what counts
is the replay's turnaround against the median of the plain runs, and its median over the recordings. Beside it
stands the replay against the very run that was recorded, which does not suffer from a computer that is now
faster and now slower.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ampsched.recording.disturbance import Disturbance
from ampsched_lab.recordings.programs import THREADS, Program
from ampsched_lab.truth.host.measure import FOREIGN_MAX, wait_until_quiet

RUNS = 5
TRIES_MAX = 8


@dataclass(frozen=True)
class Timed:
    """A run.

    Attributes:
        wall_s: How long it took.
        foreign: Share of the CPUs' time that other programs and the hypervisor took meanwhile.
        recording: Its file, if it was recorded.
    """

    wall_s: float
    foreign: float
    recording: str = ""


def timed(run: Callable[[], None], cpus: Sequence[int]) -> Timed:
    """Runs something that waits for its children, and how long it took."""
    disturbance = Disturbance(cpus)
    run()
    return Timed(disturbance.elapsed_s, disturbance.share() or 0.0)


def plain(program: Program, inputs: Path, cpus: Sequence[int], threads: int = THREADS) -> Timed:
    """Runs a program as it is."""

    def run() -> None:
        done = subprocess.run(
            program.words(threads), cwd=inputs, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
        )
        if done.returncode != 0:
            sys.exit(f"{program.name} failed: {done.stderr.decode(errors='replace').strip()[-300:]}")

    return timed(run, cpus)


def recorded(program: Program, inputs: Path, out: Path, cpus: Sequence[int], threads: int = THREADS) -> Timed:
    """Runs a program by `ampsched record`, as users do."""
    how = ("--system",) if program.recorder == "system" else ()
    words = (
        sys.executable,
        "-m",
        "ampsched",
        "record",
        *how,
        "-o",
        str(out.absolute()),
        "--",
        *program.words(threads),
    )

    def run() -> None:
        done = subprocess.run(
            words, cwd=inputs, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
        )
        if done.returncode != 0:
            sys.exit(
                f"{program.name} cannot be recorded: {done.stderr.decode(errors='replace').strip()[-300:]}"
            )

    return Timed(**{**asdict(timed(run, cpus)), "recording": out.name})


def measure(
    program: Program, inputs: Path, folder: Path, cpus: Sequence[int], patience_s: float
) -> tuple[list[Timed], list[Timed]]:
    """Plain and recorded runs of a program, by the rule above; recordings stay in `folder`."""
    runs: tuple[list[Timed], list[Timed]] = ([], [])
    for turn in range(TRIES_MAX):
        out = folder / f"{program.name}-{turn}.ampr"
        for is_recorded in (turn % 2 == 1, turn % 2 == 0):
            wait_until_quiet(cpus, patience_s)
            if is_recorded:
                runs[1].append(recorded(program, inputs, out, cpus))
            else:
                runs[0].append(plain(program, inputs, cpus))
        told = ", ".join(f"{each[-1].wall_s:.2f} s (others {each[-1].foreign:.1%})" for each in runs)
        print(f"  {program.name}: plain, recorded: {told}", flush=True)
        if all(sum(run.foreign <= FOREIGN_MAX for run in each) >= RUNS for each in runs):
            break
    chosen = tuple(sorted(each, key=lambda run: max(run.foreign, FOREIGN_MAX))[:RUNS] for each in runs)
    return chosen[0], chosen[1]


def missing(programs: Sequence[Program]) -> list[str]:
    """Packages of programs that are not there."""
    absent = {program for program in programs if shutil.which(program.command[0]) is None}
    return sorted({package for program in absent for package in program.packages})
