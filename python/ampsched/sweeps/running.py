"""Hands points out to workers, in chunks, and keeps what comes back; whoever dies meanwhile loses nothing for others.

Workers only compute: they return rows, and this process alone writes. A chunk whose worker is killed is handed out
again; if this process is killed, what it has kept is not run again.
"""

import math
import os
import pickle
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field

from ampsched._core import InputError
from ampsched.children import end_with_parent
from ampsched.execution import Progress
from ampsched.sweeps import code
from ampsched.sweeps.plan import Plan
from ampsched.sweeps.work import Done, Point, Row, simulate

Keep = Callable[[Sequence[Row]], object]

FIRST_CHUNK = 8
"""Points in a chunk while it is not known how long they take."""
CHUNK_MAX = 2048
CHUNK_S = 2.0
"""How long a chunk should take: what the death of a worker costs, and how often somebody talks to it."""
KEEP_S = 2.0
"""How much work is lost at most if this process is killed, beside the chunks that are being worked on."""
UNKNOWN_WORKERS = 32
"""As many chunks are handed out to an executor at once that does not say how many workers it has."""
DEATHS_MAX = 3
"""So many deaths of workers without a result between them are no chance."""


def run(
    plan: Plan,
    points: Sequence[Point],
    keep: Keep,
    *,
    executor: Executor | None = None,
    jobs: int = 0,
    progress: Progress | None = None,
) -> None:
    """Simulates points of a plan.

    Args:
        plan: The plan.
        points: Those that are missing.
        keep: Is given rows, now and then; never a row twice.
        executor: Who simulates; processes of this computer by default.
        jobs: Number of processes; 0: one per processor. With an executor: its number of workers, if it is known.
        progress: Called with the number of finished simulations and of all.

    Raises:
        InputError: If workers die again and again, or have other code or files.
    """
    processes = jobs or os.cpu_count() or 1
    kept = _Kept(keep, len(points), progress)
    try:
        if executor is not None:
            _check_can_be_sent(plan)
            try:
                _hand_out(plan, deque(points), executor, 2 * jobs or UNKNOWN_WORKERS, kept)
            except BrokenExecutor as error:
                raise InputError(
                    f"the executor is broken ({error}); what is done is kept, start again"
                ) from None
        elif processes == 1 or len(points) <= FIRST_CHUNK or not plan.can_be_sent():
            _run_here(plan, points, processes, kept)
        else:
            _run_in_processes(plan, deque(points), min(processes, len(points)), kept)
    finally:
        kept.flush()


@dataclass
class _Kept:
    """Rows on their way."""

    keep: Keep
    total: int
    progress: Progress | None
    done: int = 0
    rows: list[Row] = field(default_factory=list)
    since: float = -math.inf

    def take(self, rows: Sequence[Row]) -> None:
        self.rows += rows
        self.done += len(rows)
        if self.progress:
            self.progress(self.done, self.total)
        if time.monotonic() - self.since > KEEP_S:
            self.flush()

    def flush(self) -> None:
        rows, self.rows = self.rows, []
        self.keep(rows)
        self.since = time.monotonic()


@dataclass
class _Size:
    """How many points make a chunk."""

    workers: int
    points: int = 0
    seconds: float = 0.0

    def learn(self, points: int, seconds: float) -> None:
        self.points, self.seconds = self.points + points, self.seconds + seconds

    def next(self, left: int) -> int:
        """Chunks of the right length, and smaller ones at the end, so that nobody has to wait for the last."""
        wanted = round(CHUNK_S * self.points / self.seconds) if self.seconds else FIRST_CHUNK
        return max(1, min(wanted, CHUNK_MAX, -(-left // self.workers)))


def _run_here(plan: Plan, points: Sequence[Point], processes: int, kept: _Kept) -> None:
    size, done = _Size(1), 0
    while done < len(points):
        chunk = points[done : done + size.next(len(points) - done)]
        rows, seconds = simulate(chunk, plan.files, code.engine(), processes)
        size.learn(len(chunk), seconds)
        kept.take(rows)
        done += len(chunk)


def _run_in_processes(plan: Plan, points: deque[Point], processes: int, kept: _Kept) -> None:
    """With processes of this computer; if one dies, all are replaced."""
    deaths, before = 0, -1
    while points:
        with workers(processes) as executor:
            try:
                _hand_out(plan, points, executor, 2 * processes, kept)
            except BrokenExecutor:
                deaths = deaths + 1 if kept.done == before else 1
                before = kept.done
                if deaths >= DEATHS_MAX:
                    raise InputError(
                        f"processes of workers have died {deaths} times, and nothing came back between: "
                        "is there too little memory? (--jobs 1 takes the least)"
                    ) from None


@contextmanager
def workers(processes: int) -> Iterator[Executor]:
    """Processes of this computer, which end with the block, or with this process."""
    from loky import ProcessPoolExecutor

    executor = ProcessPoolExecutor(processes, initializer=_begin)
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=True, kill_workers=True)
        raise
    executor.shutdown(wait=True)


def _begin() -> None:
    """A worker leaves Ctrl-C to the process that has started it, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(signal.SIGKILL)


def _check_can_be_sent(plan: Plan) -> None:
    if not plan.can_be_sent():
        raise InputError(
            "with an executor, machines and workloads are names or files: objects can't be sent to workers"
        )
    for each in {point.policy for point in plan.points}:
        try:
            pickle.dumps(each)
        except Exception as error:
            raise InputError(
                f"policy {each.name} can't be sent to workers ({error}): put it into a file"
            ) from None


def _hand_out(plan: Plan, points: deque[Point], executor: Executor, at_once: int, kept: _Kept) -> None:
    """Hands out all points; those of which no row has come back are in `points` again if it raises."""
    size, waiting = _Size(at_once), dict[Future[Done], list[Point]]()
    engine = code.engine()
    try:
        while points or waiting:
            while points and len(waiting) < at_once:
                chunk = [points.popleft() for _ in range(size.next(len(points)))]
                try:
                    waiting[executor.submit(simulate, chunk, plan.files, engine)] = chunk
                except BaseException:
                    points.extendleft(reversed(chunk))
                    raise
            ready, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in sorted(ready, key=lambda each: each.exception() is not None):
                rows, seconds = future.result()
                size.learn(len(waiting.pop(future)), seconds)
                kept.take(rows)
    finally:
        _take_back(executor, waiting)
        for chunk in waiting.values():
            points.extendleft(reversed(chunk))


def _take_back(executor: Executor, futures: Iterable[Future[Done]]) -> None:
    """Cancels what is not begun.

    An executor of `workers` is killed instead: it ends all futures by itself, and prints a traceback if one of them is
    cancelled already (loky 3.7.0).
    """
    from loky import ProcessPoolExecutor

    if not isinstance(executor, ProcessPoolExecutor):
        for future in futures:
            future.cancel()
