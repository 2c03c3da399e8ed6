"""Signals end a command, even if a library loses what they raise."""

import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

from ampsched.children import SIGNALLED, leave

AGAIN_S = 0.05
"""So long after a signal, and again and again, it is looked whether the command has begun to end."""


def exit_code(command: Callable[[], int]) -> str | int | None:
    """What a command ends with: its result, what it exits with, or 128 and the number of the signal that ends it.

    SIGINT raises KeyboardInterrupt in it, SIGTERM and SIGHUP SystemExit; what is ignored stays ignored, as SIGHUP is
    under ``nohup``. Compiled code may lose such an exception, or make another one of it. So it is raised again as
    long as none is being handled, and after a signal the code is the signal's, whatever the command ends with.
    SIGINT also interrupts system calls, which it does not by the handler that polars installs.
    """
    told = _Told()
    if threading.current_thread() is not threading.main_thread():  # only that one gets signals
        return _exit_code(command, told)
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    handlers: dict[signal.Signals, Callable[[int, FrameType | None], None]] = {
        each: told.leave for each in numbers if signal.getsignal(each) != signal.SIG_IGN
    }
    handlers[signal.SIGALRM] = told.insist
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        return _exit_code(command, told)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass
class _Told:
    """The last signal that has told a command to end."""

    number: int | None = None
    over: bool = False
    """The command has ended."""

    def leave(self, number: int, _frame: FrameType | None) -> None:
        self.number = number
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S, AGAIN_S)
        _end(number)

    def insist(self, _number: int, _frame: FrameType | None) -> None:
        if self.number is not None and sys.exc_info()[1] is None and not self.over:
            _end(self.number)


def _end(number: int) -> NoReturn:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    leave(number)


def _exit_code(command: Callable[[], int], told: _Told) -> str | int | None:
    code: str | int | None
    try:
        try:
            code = command()
        finally:
            told.over = True
    except KeyboardInterrupt:
        code = SIGNALLED + signal.SIGINT
    except SystemExit as ended:
        code = ended.code
    except Exception:
        if told.number is None:
            raise
    return code if told.number is None else SIGNALLED + told.number
