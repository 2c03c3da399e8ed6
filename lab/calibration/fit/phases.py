"""Cuts recordings of barrier programs into phases and finds their loops.

A phase is what the threads do between two barriers. Splash-3 builds a barrier from a mutex and a condition:
the last thread to arrive broadcasts, the others wait. fluidanimate's barrier spins before it waits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from math import log, sqrt

import numpy as np
from recording import BY_TRYLOCK, CBCAST, CWAIT, LOCK, TRYFAIL, UNLOCK, Bools, Events, Ints, Recording

START_BARRIER_NS = 50_000
"""Phases shorter than this right after the first barrier belong to the start-up (synchronised start)."""

SERIAL_SHARE = 0.9
"""A phase is serial if one thread does more than this share of its work."""

SERIAL_MIN_NS = 50_000
"""Shorter phases are never called serial: their spread is that of the clock."""


@dataclass(frozen=True)
class Phase:
    """What the threads do up to a barrier."""

    cpu_ns: tuple[int, ...]
    """CPU time per thread."""
    pairs: tuple[int, ...]
    """Lock/unlock pairs per thread, without the barrier's own."""
    hold_ns: int
    """CPU time inside critical sections, all threads."""
    longest_ns: tuple[int, ...]
    """Longest stretch before a lock, per thread (0 without locks)."""
    gap_squares: int
    """Sum of squares of the other stretches before locks, all threads."""
    gap_ns: int
    """Sum of those stretches."""
    mutexes: frozenset[int]

    @property
    def owner(self) -> int | None:
        """The thread that does the work of a serial phase."""
        busiest = max(range(len(self.cpu_ns)), key=lambda thread: self.cpu_ns[thread])
        total = sum(self.cpu_ns)
        return busiest if total > SERIAL_MIN_NS and self.cpu_ns[busiest] > SERIAL_SHARE * total else None

    @property
    def mean_ns(self) -> float:
        """CPU time per thread."""
        return sum(self.cpu_ns) / len(self.cpu_ns)

    @property
    def cv(self) -> float:
        """Spread of CPU time between threads: sample standard deviation / mean."""
        if self.mean_ns == 0:
            return 0.0
        squares = sum((cpu - self.mean_ns) ** 2 for cpu in self.cpu_ns)
        return sqrt(squares / (len(self.cpu_ns) - 1)) / self.mean_ns


def splash_phases(recording: Recording) -> list[Phase]:
    """Phases of a Splash-3 program from its start barrier to its last barrier."""
    barriers = _barrier_conditions(recording)
    ends = [
        np.flatnonzero(_is_arrival(events) & np.isin(events.obj, barriers)) for events in recording.threads
    ]
    cuts = [_phase_numbers(events, end) for events, end in zip(recording.threads, ends, strict=True)]
    barrier_locks = [_marks(events, end - 1) for events, end in zip(recording.threads, ends, strict=True)]
    phases = _collect(recording.threads, cuts, barrier_locks, len(ends[0]))
    first = 1
    while phases[first].mean_ns < START_BARRIER_NS:
        first += 1
    return phases[first:]


def _is_arrival(events: Events) -> Bools:
    arrivals: Bools = (events.kind == CWAIT) | (events.kind == CBCAST)
    return arrivals


def _barrier_conditions(recording: Recording) -> list[int]:
    """Conditions at which every thread arrives equally often: those of barriers."""
    per_thread = [
        dict(zip(*np.unique(events.obj[_is_arrival(events)], return_counts=True), strict=True))
        for events in recording.threads
    ]
    return [
        int(obj) for obj, count in per_thread[0].items() if all(each.get(obj) == count for each in per_thread)
    ]


def _phase_numbers(events: Events, ends: Ints) -> Ints:
    """The phase of each event; the arrival at a barrier is its phase's last event."""
    numbers: Ints = np.searchsorted(ends, np.arange(len(events.kind)))
    return numbers


def _marks(events: Events, positions: Ints) -> Bools:
    marks = np.zeros(len(events.kind), dtype=np.bool_)
    marks[positions] = True
    return marks


def fluid_phases(recording: Recording) -> list[Phase]:
    """Phases of fluidanimate's workers, from its first barrier to its last one.

    Its barrier broadcasts twice: when the last thread has arrived and when the last one has left. Threads
    spin before they wait; the recording shows that as CPU before a trylock of the barrier's mutex, and it is taken out.
    """
    workers = recording.threads[1:]
    mutex = next(int(obj) for events in workers for obj in events.obj[events.kind == TRYFAIL])
    completed = np.sort(np.concatenate([events.at[events.kind == CBCAST] for events in workers]))[0::2]
    cuts = [np.searchsorted(completed, events.at) for events in workers]
    barrier_locks = [events.obj == mutex for events in workers]
    spun = [_without_spinning(events, mutex) for events in workers]
    return _collect(spun, cuts, barrier_locks, len(completed))


def _without_spinning(events: Events, mutex: int) -> Events:
    """The events with the CPU of spinning at the barrier removed."""
    trylocks = (events.kind == LOCK) & (events.obj == mutex) & (events.aux == BY_TRYLOCK)
    after_unlock = np.concatenate([[False], (events.kind[:-1] == UNLOCK) & (events.obj[:-1] == mutex)])
    spin_ns = int(np.median(events.cpu[trylocks & after_unlock]))
    cpu = np.where(trylocks, np.maximum(events.cpu - spin_ns, 0), events.cpu)
    return Events(events.kind, events.obj, events.aux, events.blocked, cpu, events.at)


def _collect(threads: list[Events], cuts: list[Ints], skip: list[Bools], count: int) -> list[Phase]:
    """Sums per phase over the events of each thread; `skip` marks the barrier's own locks."""
    parts = [
        _thread_phases(events, cut, marks, count)
        for events, cut, marks in zip(threads, cuts, skip, strict=True)
    ]
    return [_merge([thread[number] for thread in parts]) for number in range(count)]


@dataclass(frozen=True)
class _Part:
    cpu: int
    pairs: int
    hold: int
    longest: int
    gap: int
    gap_squares: int
    mutexes: frozenset[int]


def _thread_phases(events: Events, cut: Ints, skip: Bools, count: int) -> list[_Part]:
    bounds = np.searchsorted(cut, np.arange(count + 1))
    hold = hold_times(events)
    locks = (events.kind == LOCK) & ~skip
    parts = []
    for begin, end in pairwise(bounds):
        own = np.flatnonzero(locks[begin:end]) + begin
        gaps = events.cpu[own]
        longest = int(gaps.max()) if len(own) else 0
        parts.append(
            _Part(
                cpu=int(events.cpu[begin:end].sum()),
                pairs=len(own),
                hold=int(hold[own].sum()),
                longest=longest,
                gap=int(gaps.sum()) - longest,
                gap_squares=int((gaps * gaps).sum()) - longest**2,
                mutexes=frozenset(int(obj) for obj in np.unique(events.obj[own])),
            )
        )
    return parts


def hold_times(events: Events) -> Ints:
    """For each LOCK the CPU time up to the thread's next UNLOCK of that mutex, 0 elsewhere."""
    result = np.zeros(len(events.kind), dtype=np.int64)
    used = np.cumsum(events.cpu)
    open_locks: dict[int, int] = {}
    for position in np.flatnonzero((events.kind == LOCK) | (events.kind == UNLOCK)):
        mutex = int(events.obj[position])
        if events.kind[position] == LOCK:
            open_locks[mutex] = int(position)
        elif mutex in open_locks:
            begin = open_locks.pop(mutex)
            result[begin] = used[position] - used[begin]
    return result


def _merge(parts: list[_Part]) -> Phase:
    none: frozenset[int] = frozenset()
    return Phase(
        cpu_ns=tuple(part.cpu for part in parts),
        pairs=tuple(part.pairs for part in parts),
        hold_ns=sum(part.hold for part in parts),
        longest_ns=tuple(part.longest for part in parts),
        gap_squares=sum(part.gap_squares for part in parts),
        gap_ns=sum(part.gap for part in parts),
        mutexes=reduce(frozenset.union, (part.mutexes for part in parts), none),
    )


@dataclass(frozen=True)
class Block:
    """A loop: `repeat` passes over phases; `members[i]` are the recorded phases that the i-th stands for."""

    repeat: int
    members: list[list[Phase]]


def known_loop(phases: list[Phase], period: int) -> Block:
    """The loop over `period` phases that the program's source shows (time steps)."""
    repeat = len(phases) // period
    return Block(repeat, [phases[i : repeat * period : period] for i in range(period)])


def find_loops(
    phases: list[Phase], similar: Callable[[Phase, Phase], bool], period_max: int = 40
) -> list[Block]:
    """The shortest description of a sequence of phases by loops over similar ones, in order.

    Dynamic programme from the end: a block costs one per phase in its body and one for the loop.
    """
    count = len(phases)
    best: list[tuple[int, int, int]] = [(0, 0, 0)] * (count + 1)
    for start in reversed(range(count)):
        best[start] = min(
            (period + (repeat > 1) + best[start + period * repeat][0], period, repeat)
            for period in range(1, min(period_max, count - start) + 1)
            for repeat in _repeats(phases, start, period, similar)
        )
    blocks, start = [], 0
    while start < count:
        _, period, repeat = best[start]
        members = [[phases[start + pass_ * period + i] for pass_ in range(repeat)] for i in range(period)]
        blocks.append(Block(repeat, members))
        start += period * repeat
    return blocks


def _repeats(
    phases: list[Phase], start: int, period: int, similar: Callable[[Phase, Phase], bool]
) -> list[int]:
    """Numbers of passes for which every phase resembles that of the first pass."""
    repeat = 1
    while start + (repeat + 1) * period <= len(phases) and all(
        similar(phases[start + i], phases[start + repeat * period + i]) for i in range(period)
    ):
        repeat += 1
    return list(range(1, repeat + 1))


FEW_PAIRS = 8
"""Up to this many lock pairs per thread a phase takes the program's global mutex, one by one."""


def similar_within(tolerance: float, floor_ns: float) -> Callable[[Phase, Phase], bool]:
    """Phases that may stand for one another: equal structure and about equal work."""

    def close(a: float, b: float, floor: float) -> bool:
        return abs(a - b) <= floor or abs(log(max(a, 1e-9) / max(b, 1e-9))) <= tolerance

    def similar(a: Phase, b: Phase) -> bool:
        pairs_a, pairs_b = sum(a.pairs) / len(a.pairs), sum(b.pairs) / len(b.pairs)
        few_a, few_b = pairs_a <= FEW_PAIRS, pairs_b <= FEW_PAIRS
        same_pairs = few_a or close(pairs_a, pairs_b, FEW_PAIRS)
        return few_a == few_b and same_pairs and a.owner == b.owner and close(a.mean_ns, b.mean_ns, floor_ns)

    return similar


def lasting_imbalance(members: list[Phase]) -> tuple[float, float]:
    """Spread between the threads' shares of passes over a phase (mean 1), and its standard error.

    The error is what the spread of single passes, if independent from pass to pass, leaves in the sums.
    """
    total = sum(phase.mean_ns for phase in members)
    if total == 0:
        return 0.0, 0.0
    threads = range(len(members[0].cpu_ns))
    shares = [sum(phase.cpu_ns[thread] for phase in members) / total for thread in threads]
    error = sqrt(sum((phase.cv * phase.mean_ns) ** 2 for phase in members)) / total
    return float(np.std(shares)), error
