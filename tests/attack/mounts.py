"""Disks and cgroups of trials."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from trial import Process, kill, threads_of, until

FREEZER = Path("/sys/fs/cgroup/freezer")

HOLDS = "hfee:epoch_ms=100"
"""A policy that holds threads back in turns, if more want to run than there are cores when an epoch begins."""

HELD_S = 15.0


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
        with contextlib.suppress(OSError):
            for tid in (home / "tasks").read_text().split():
                (FREEZER / "tasks").write_text(tid)
            home.rmdir()


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


def when_held(pid: int, session: Process) -> list[int]:
    """Stops a session when it holds threads of a process back, and returns these."""
    end = time.monotonic() + HELD_S
    while time.monotonic() < end and session.poll() is None:
        until(lambda: bool(held(pid)), HELD_S)
        kill(session.pid, signal.SIGSTOP)
        # It is not stopped before the kernel says so.
        until(lambda: state_of_process(session.pid) in "Tt", 5.0)
        if found := held(pid):
            return found
        kill(session.pid, signal.SIGCONT)
    raise RuntimeError(f"nobody is held back for {HELD_S:.0f} s")


def state_of_process(pid: int) -> str:
    """Its state as one letter."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def left_by(pid: int, home: Path) -> bool:
    """Takes a process's threads out of a cgroup, but for those that are held elsewhere, and removes it."""
    with contextlib.suppress(OSError):
        for tid in (home / "tasks").read_text().split():
            with contextlib.suppress(OSError):
                (FREEZER / "tasks").write_text(tid)
        home.rmdir()
        return True
    return False


def make_read_only(pid: int) -> bool:
    """Makes cgroups read-only for a process with mounts of its own; false if somebody writes there."""
    enter = ["nsenter", "--mount", "--target", str(pid)]
    remount = [*enter, "mount", "-o", "remount,bind,ro", str(FREEZER)]
    return subprocess.run(remount, check=False, capture_output=True).returncode == 0
