"""Records processes that run already, for a while, through the kernel's scheduler events. Needs root."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

from ampsched._core import InputError
from ampsched.recording import system
from ampsched.recording.files import LIMIT_MB
from ampsched.recording.running import Target, command_of, threads_of

FOR_S = 10.0
"""How long is recorded unless somebody says otherwise, in s."""
FOR_S_MAX = 86_400.0
"""Longest time, in s: a day."""
VISIT_S = 1.0
"""How long it may take to have run on every core, in s."""


def record(target: Target, out: Path, *, for_s: float = FOR_S, limit_mb: int = LIMIT_MB) -> system.Recorded:
    """Records processes and all that they start until the time is over, all have ended or the disk's share is full.

    SIGINT, SIGTERM and SIGHUP end the recording, and what there is by then is saved. What was there before has no
    begin and no end: a thread begins with the window, and a wait that was under way lasts as long as was left of it.

    Args:
        target: The processes.
        out: File for the recording.
        for_s: How long, in s.
        limit_mb: Most that events of the whole computer may take on the disk, in MiB.

    Raises:
        InputError: This process is not root, the kernel cannot trace, the processes have ended, or none ran meanwhile.
        OSError: The recording cannot be written.
    """
    if not 0 < for_s <= FOR_S_MAX:
        raise InputError(f"--for-s {for_s:g}: must be above 0, and at most {FOR_S_MAX:g}")
    check_root()
    pids = target.processes()
    if not pids:
        raise InputError(f"{target.what}: has no process (start it first)")
    known = {"name": target.name, "command": command_of(pids[0])}
    return system.record_from(lambda: _Window(target, for_s), out, known, limit_mb=limit_mb)


def check_root() -> None:
    """Refuses to go on where the kernel would.

    Raises:
        InputError: This process is not root, or is in a container.
    """
    system.check_root("or record a new run of the program without root: ampsched record -- COMMAND")


class _Window:
    """The time during which processes are recorded that were there before."""

    def __init__(self, target: Target, for_s: float) -> None:
        self._target = target
        self._for_s = for_s
        self._since_ns = 0
        self._until_ns: int | None = None
        self._until_s = 0.0
        self._pids: list[int] = []
        self._threads: list[tuple[int, int]] = []
        self._left: list[int] = []
        self._pidfd: int | None = None
        self._is_told = False
        self._before: dict[signal.Signals, Any] = {}

    def begin(self) -> None:
        """Finds out who is there, and who runs.

        Raises:
            InputError: Nobody is there any more.
        """
        self._since_ns = time.monotonic_ns()
        self._until_s = self._since_ns / 1e9 + self._for_s
        self._take_signals()
        self._pids = self._target.processes()
        self._threads = [(tid, pid) for pid in self._pids for tid in threads_of(pid)]
        self._left = list(self._pids)
        if not self._goes_on():
            raise InputError(f"{self._target.what}: has ended")
        _visit_cores()

    def has_ended(self, timeout_s: float) -> bool:
        """Whether the time is over, a signal ends it, or all processes have ended."""
        rest_s = min(timeout_s, self._until_s - time.monotonic())
        is_over = self._is_told or rest_s <= 0
        if not is_over and self._pidfd is not None:
            is_over = system.process_ended(self._pidfd, rest_s) and not self._goes_on()
        if is_over:
            self._until_ns = time.monotonic_ns()
        return is_over

    def end(self) -> None:
        """Its end; who has come to the control group meanwhile belongs to it."""
        self._until_ns = self._until_ns or time.monotonic_ns()
        if self._target.folder is not None:
            self._pids = sorted({*self._pids, *self._target.processes()})
        if self._pidfd is not None:
            os.close(self._pidfd)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def options(self) -> dict[str, object]:
        """Who was there, and when it began and ended."""
        window = {"since_ns": self._since_ns, "until_ns": self._until_ns, "threads": self._threads}
        known: dict[str, object] = {"pids": self._pids, "window": window}
        if self._until_ns is not None:
            took_s = (self._until_ns - self._since_ns) / 1e9
            known["unknown"] = [f"what its threads did before the window of {took_s:.3g} s, and after it"]
        return known

    def _goes_on(self) -> bool:
        """Whether a process is left; it is waited for from now on."""
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        if not self._left and self._target.folder is not None:
            self._left = self._target.processes()
        while self._left and self._pidfd is None:
            with contextlib.suppress(ProcessLookupError):
                self._pidfd = os.pidfd_open(self._left.pop())
        return self._pidfd is not None

    def _take_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():  # only that one gets signals
            return
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._stop)

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._is_told = True


def _visit_cores() -> None:
    """Runs on every core for a moment, so that the kernel tells who ran there: who is not disturbed makes no event.

    In a process of its own: a core that a real-time thread never leaves would keep it.
    """
    pid = os.fork()
    if pid == 0:
        try:
            for core in range(os.sysconf("SC_NPROCESSORS_CONF")):
                with contextlib.suppress(OSError):  # it is off, or not for us
                    os.sched_setaffinity(0, {core})
        finally:
            os._exit(0)
    pidfd = os.pidfd_open(pid)
    if not system.process_ended(pidfd, VISIT_S):
        os.kill(pid, signal.SIGKILL)
    os.close(pidfd)
    os.waitpid(pid, os.WNOHANG)
