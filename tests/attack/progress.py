"""How far work is, and how long it still takes."""

import sys
import threading
import time

TERMINAL_S, LOG_S = 1.0, 30.0
"""Seconds between lines: a terminal shows one line that changes, a log grows."""


class Progress:
    """Says on the error output how much of a number of things is done."""

    def __init__(self, what: str, count: int) -> None:
        self.what, self.count, self.done = what, count, 0
        self.start = self.said = time.monotonic()
        self.lock = threading.Lock()

    def add(self, more: int = 1) -> None:
        """So much more is done; any thread may say so."""
        with self.lock:
            self.done += more
            self.say()

    def reach(self, done: int) -> None:
        """So much is done in all."""
        with self.lock:
            self.done = done
            self.say()

    def say(self) -> None:
        """A line, unless the last was a moment ago."""
        now, terminal = time.monotonic(), sys.stderr.isatty()
        if now - self.said < (TERMINAL_S if terminal else LOG_S):
            return
        self.said = now
        begin, end = ("\r\033[K", "") if terminal else ("", "\n")
        print(f"{begin}{self.line(now - self.start)}", end=end, file=sys.stderr, flush=True)

    def line(self, passed_s: float) -> str:
        """What is said after so long."""
        share = f"{self.what}: {self.done:,} of {self.count:,}"
        if not 0 < self.done <= self.count:
            return share
        left_s = passed_s * (self.count - self.done) / self.done
        return f"{share} ({100 * self.done // self.count} %), {length(left_s)} left"

    def end(self) -> None:
        """Removes the line from a terminal."""
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def length(seconds: float) -> str:
    """A time in words."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
