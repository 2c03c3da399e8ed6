"""Kills and faults of live sessions: whatever is killed, nothing stays bound, frozen, stopped or with another priority.

Each trial has threads of its own, a session that schedules them, and one fault at a random moment. Trials run side
by side. Needs root and two CPUs; faults of cgroups and disks use mounts of a mount namespace of their own.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import faults
from progress import Progress
from trial import Trial
from workers import Done, Failure

SIDE_BY_SIDE = 12
"""Trials wait most of the time."""
APART = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
"""A process with numbers of processes of its own, among which its number is 1."""
APART_S = 120.0


def one(program: Path, number: int, seed: int) -> tuple[str, str | None]:
    """One fault; its name and what was wrong."""
    fault = faults.ALL[number % len(faults.ALL)]
    try:
        # It chooses which number comes next, and numbers of others' that have ended would be taken for them.
        if fault is faults.number_reused and os.getpid() != 1:
            return apart(program, number, seed)
        trial = Trial(program, number, seed)
        try:
            wrong = fault(trial)
            if wrong is None and fault is not faults.threads_killed and trial.threads.poll() is not None:
                wrong = f"its threads have ended with {trial.threads.returncode}"
            return fault.__name__, wrong
        finally:
            trial.clean_up()
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        return fault.__name__, f"{type(error).__name__}: {error}"


def apart(program: Path, number: int, seed: int) -> tuple[str, str | None]:
    """The same by another process, apart from others."""
    command = [*APART, sys.executable, __file__, str(program), str(seed), str(number)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=APART_S)
    name, wrong = done.stdout.strip().split(" ", 1)
    return name, None if wrong == "None" else wrong


def missing() -> str | None:
    """What is missing for kills here."""
    if os.geteuid() != 0:
        return "they need root"
    if len(os.sched_getaffinity(0)) < 2 or not {0, 1} <= os.sched_getaffinity(0):
        return "they need CPUs 0 and 1"
    return None


def run(program: Path, count: int, seed: int, out: Path, progress: Progress) -> Done:
    """So many faults, of all kinds in turns."""
    why = missing()
    if why:
        return Done(skipped=count, notes=[f"SKIPPED: {why}"])
    done, kinds = Done(), {fault.__name__: 0 for fault in faults.ALL}
    usable = [n for n in range(count) if faults.is_possible(faults.ALL[n % len(faults.ALL)])]
    done.skipped = count - len(usable)
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        results = pool.map(lambda number: one(program, number, seed), usable)
        for number, (name, wrong) in zip(usable, results, strict=True):
            done.count += 1
            progress.add()
            kinds[name] += 1
            if wrong:
                repeat = f"python3 tests/attack/kills.py {program} {seed} {number}"
                done.failures.append(Failure(f"{name.replace('_', ' ')}: {wrong}", repeat))
    done.notes = [f"{name.replace('_', ' ')}: {number:,}" for name, number in kinds.items()]
    return done


if __name__ == "__main__":
    print(*one(Path(sys.argv[1]), int(sys.argv[3]), int(sys.argv[2])))
