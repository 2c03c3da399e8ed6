"""The programs of ``ampsched selftest``: ``python programs.py NAME WORKERS``; a second of work in all, or two.

They import nothing of the package. Work is key derivation, which needs no lock of the interpreter and takes as many
instructions every time.
"""

import hashlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial

ROUNDS = 1000
"""Of key derivation in a unit of work: about a third of a ms on fast cores."""
UNITS, UNITS_EACH = 3200, 800
"""Of each program on all its workers; more where there are many, of each worker."""


def all_of(workers: int) -> int:
    """Units of work of a program."""
    return max(UNITS, UNITS_EACH * workers)


def work(units: float) -> None:
    """Works."""
    hashlib.pbkdf2_hmac("sha256", b"work", b"more", max(1, round(units * ROUNDS)))


def together(parts: Iterable[Callable[[], object]]) -> None:
    """Does each part in a thread of its own."""
    threads = [threading.Thread(target=part) for part in parts]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def forked(parts: Iterable[Callable[[], object]]) -> None:
    """Does each part in a process of its own."""
    for part in parts:
        if os.fork() == 0:
            part()
            os._exit(0)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def shares(workers: int) -> None:
    """Threads with equal shares."""
    together([lambda: work(all_of(workers) / workers)] * workers)


def processes(workers: int) -> None:
    """Processes with equal shares."""
    forked([lambda: work(all_of(workers) / workers)] * workers)


def barriers(workers: int) -> None:
    """Threads that wait for each other forty times."""
    barrier = threading.Barrier(workers)

    def part() -> None:
        for _ in range(40):
            work(all_of(workers) / workers / 40)
            barrier.wait()

    together([part] * workers)


def queue(workers: int) -> None:
    """Threads that take unequal pieces from a queue."""
    pieces = [1 + place % 4 for place in range(16 * workers)]
    unit, lock = all_of(workers) / sum(pieces), threading.Lock()

    def part() -> None:
        while True:
            with lock:
                piece = pieces.pop() if pieces else 0
            if not piece:
                return
            work(unit * piece)

    together([part] * workers)


def pipeline(workers: int) -> None:
    """Three processes that pass sixty items on by pipes; the second has most to do."""
    pipes = [os.pipe() for _ in range(2)]

    def stage(place: int, units: float) -> None:
        for _ in range(60):
            if place > 0:
                os.read(pipes[place - 1][0], 1)
            work(units)
            if place < len(pipes):
                os.write(pipes[place][1], b"x")

    item = all_of(min(workers, 3)) / 60
    forked([partial(stage, 0, item / 4), partial(stage, 1, item / 2), partial(stage, 2, item / 4)])


def sleeper(workers: int) -> None:
    """Threads with equal shares, and one that works for a moment every 10 ms."""
    share = all_of(workers) / workers

    def sleeps() -> None:
        for _ in range(40):
            time.sleep(0.01)
            work(2)

    together([*[lambda: work(share)] * workers, sleeps])


PROGRAMS: dict[str, Callable[[int], None]] = {
    each.__name__: each for each in (shares, processes, barriers, queue, pipeline, sleeper)
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](int(sys.argv[2]))
