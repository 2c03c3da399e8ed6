"""Disks and cgroups of trials."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from trial import (
    Process,
    Trial,
    guardian_of,
    kill,
    state_of_process,
    threads_of,
    until,
    wait_until_stopped,
)

FREEZER = Path("/sys/fs/cgroup/freezer")

HOLDS = "hfee:epoch_ms=100"
"""A policy that holds threads back in turns, if more want to run than there are cores when an epoch begins."""

HELD_S, LEFT_S = 15.0, 5.0


@contextlib.contextmanager
def small_disk(folder: Path, size_kib: int) -> Iterator[None]:
    """A file system in memory."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_kib}k,mode=700", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=False)


@contextlib.contextmanager
def own_cgroup(name: str) -> Iterator[Path]:
    """A cgroup in which threads can be frozen, as long as it is needed; what is left there goes to the one above."""
    home = FREEZER / name
    home.mkdir()
    try:
        yield home
    finally:
        until(lambda: left_by(home), LEFT_S)


def move(pid: int, group: Path) -> None:
    """Puts the threads of a process into a cgroup."""
    for tid in threads_of(pid):
        with contextlib.suppress(OSError):
            (group / "tasks").write_text(str(tid))


def held(pid: int) -> list[int]:
    """The threads of a process that are in a cgroup that freezes."""
    found = []
    for tid in threads_of(pid):
        with contextlib.suppress(OSError):
            if "ampsched-held" in Path(f"/proc/{tid}/cgroup").read_text():
                found.append(tid)
    return found


def frozen_still(pid: int, before: dict[int, int]) -> set[int]:
    """Those of some frozen threads that have not run since; `before`: the ns that each had run by then."""
    found = set()
    for tid in before.keys() & set(held(pid)):
        with contextlib.suppress(OSError):
            if ran_ns(pid, tid) == before[tid]:
                found.add(tid)
    return found


def ran_ns(pid: int, tid: int) -> int:
    """How long a thread has run so far."""
    return int(Path(f"/proc/{pid}/task/{tid}/schedstat").read_text().split()[0])


def when_held(trial: Trial, session: Process) -> dict[int, int]:
    """Stops a session when it holds threads of a trial back and has nothing to do. Returns how long each has run."""
    pid = trial.victim
    end = time.monotonic() + HELD_S

    def is_time() -> bool:
        # Who sleeps has no file of a cgroup open, and has come further since it was stopped the last time.
        return session.poll() is not None or (bool(held(pid)) and state_of_process(session) == "S")

    while time.monotonic() < end:
        until(is_time, HELD_S)
        if session.poll() is not None:
            said = trial.said()[-200:]
            raise RuntimeError(f"before it holds anybody back it ends with {session.returncode}: {said}")
        kill(session.pid, signal.SIGSTOP)
        if wait_until_stopped(session) and (found := held(pid)):
            # However long this takes, it is not a fault of its own.
            kill(guardian_of(session), signal.SIGSTOP)
            return {tid: ran_ns(pid, tid) for tid in found}
        kill(session.pid, signal.SIGCONT)
    raise RuntimeError(f"nobody is held back for {HELD_S:.0f} s: {trial.said()[-200:]}")


def go_on(session: Process) -> None:
    """Lets a session go on that was stopped, then its guardian, which does not see it stopped."""
    guardian = guardian_of(session)
    kill(session.pid, signal.SIGCONT)
    kill(guardian, signal.SIGCONT)


def left_by(home: Path) -> bool:
    """Takes all threads out of a cgroup and removes it, if nobody comes meanwhile; whether it is gone."""
    with contextlib.suppress(OSError):
        for tid in (home / "tasks").read_text().split():
            with contextlib.suppress(OSError):
                (FREEZER / "tasks").write_text(tid)
        home.rmdir()
    return not home.exists()


def make_read_only(pid: int) -> bool:
    """Makes cgroups read-only for a process with mounts of its own; false if somebody writes there."""
    enter = ["nsenter", "--mount", "--target", str(pid)]
    remount = [*enter, "mount", "-o", "remount,bind,ro", str(FREEZER)]
    return subprocess.run(remount, check=False, capture_output=True).returncode == 0
