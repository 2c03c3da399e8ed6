"""Processes that do not outlive the one that has started them, whatever ends it."""

import ctypes
import os
import resource
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import IO, NoReturn

_PR_SET_PDEATHSIG = 1
"""include/uapi/linux/prctl.h."""
SIGNALLED = 128
"""What a shell adds to the number of the signal that has ended a program."""
GRACE_S = 0.4
"""How long a process may take to end that is told to: all is over in half a second."""


def cpu_s_of_children() -> float:
    """CPU time of this process' ended children, and of all that they had started and waited for, in s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def why_not_run(name: str) -> str:
    """Why a program that a command names, by its place or in the path, cannot be run: there is none, or it may not."""
    if os.sep not in name or not os.path.lexists(name):
        return "there is no such program"
    is_folder = os.path.isdir(name)  # noqa: PTH112 (may be any text)
    return "is a folder, no program" if is_folder else "is not executable (chmod +x makes it so)"


def with_parent(number: signal.Signals) -> Callable[[], None]:
    """A ``preexec_fn`` by which a process gets a signal when the thread ends that has started it.

    What it executes keeps that, what it starts does not.
    """
    parent, prctl = os.getpid(), ctypes.CDLL(None).prctl

    def call() -> None:
        prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # it has ended before
            os.kill(os.getpid(), number)

    return call


def end_with_parent(number: signal.Signals) -> None:
    """Gives this process a signal when the thread that started it ends; for those that `with_parent` can't start."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() == 1:  # it has ended before
        os.kill(os.getpid(), number)


def end(process: "subprocess.Popen[str] | subprocess.Popen[bytes]") -> None:
    """Tells a process to end, and kills it if it does not."""
    process.terminate()
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def child_in_group(command: list[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """A process in a group of its own that has ended when the block has, or this process."""
    process = subprocess.Popen(  # noqa: S603 (a command of ours)
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=with_parent(signal.SIGKILL),
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()


def last_line(stream: IO[bytes] | None, otherwise: str) -> str:
    """The last line of what a process that has ended wrote there; something else if it wrote nothing."""
    text = stream.read().decode(errors="replace").strip() if stream else ""
    return text.splitlines()[-1] if text else otherwise


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end the block in an orderly way: by SystemExit, with 128 and the number of the signal.

    What is ignored stays ignored, as SIGHUP is under ``nohup``. SIGINT ends it as ever, by KeyboardInterrupt, and at
    once: polars has a handler of its own, which calls Python's, but lets the system call go on that was interrupted.
    """
    if threading.current_thread() is not threading.main_thread():  # only that one gets signals
        yield
        return
    numbers = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) != signal.SIG_IGN]
    signal.siginterrupt(signal.SIGINT, True)
    before = [signal.signal(number, leave) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def leave(number: int, _frame: FrameType | None = None) -> NoReturn:
    """Exits as a program that a signal ends; a handler of signals."""
    raise SystemExit(SIGNALLED + number)
