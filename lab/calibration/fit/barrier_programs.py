"""Models of the programs whose threads advance from barrier to barrier: Splash-3 and fluidanimate."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import toml_text as toml
from model import Fitted, Observed, segment_figures
from phases import (
    FEW_PAIRS,
    Block,
    Phase,
    find_loops,
    fluid_phases,
    known_loop,
    lasting_imbalance,
    similar_within,
    splash_phases,
)
from rates import Rate, rate
from recording import load

SIMULATED_PAIRS_MAX = 20_000
"""Lock pairs are thinned by a power of two until no more are left: five operations each, 100,000 in all."""

TOLERANCE, FLOOR_NS = 0.3, 60_000
"""Neighbouring phases within a factor exp(0.3) or 60 us per thread may share one line of a loop."""

SKEW_MIN = 0.03
"""A lasting imbalance between threads is modelled if its spread exceeds this and twice its standard error."""

LOOPS_UNIT = 8
"""Critical sections of a phase are a multiple of this, so that 1, 2, 4 and 8 threads share them evenly."""

GAP_MIN_NS = 1_000
"""The spread of shorter stretches between locks is that of the clock."""

BULK_SHARE = 0.5
"""If the longest stretch before a lock has this share of a phase, it stands before the loop of locks."""


@dataclass(frozen=True)
class Subject:
    """A barrier program and what is known about it besides its recording."""

    name: str
    recording: str
    description: str
    command: str
    threads: int = 4
    """Default of the parameter n."""
    step: tuple[int, int, int] | None = None
    """First phase, phases and number of time steps, where the source shows a loop that noise hides."""
    thinned: int = 1
    """One in so many uncontended lock pairs is in the recording."""
    excluded: str = "the part before the start barrier (serial set-up) and the part after the last barrier"


SUBJECTS = [
    Subject(
        "radix",
        "radix",
        "Splash-3 radix sort of 8388608 keys.",
        "RADIX -p4 -n8388608",
        excluded="the creation of the keys before the start barrier (85 % of the CPU time)"
        " and the part after the last barrier",
    ),
    Subject(
        "fft",
        "fft",
        "Splash-3 FFT of 2^22 complex points.",
        "FFT -p4 -m22",
        excluded="the serial set-up by the first thread (40 % of the CPU time) and the part after the last barrier",
    ),
    Subject("lu_cb", "lu_cb", "Splash-3 LU factorisation, 2048 x 2048, contiguous blocks.", "LU -p4 -n2048"),
    Subject(
        "lu_ncb", "lu_ncb", "Splash-3 LU factorisation, 2048 x 2048, non-contiguous blocks.", "LU -p4 -n2048"
    ),
    Subject("ocean_cp", "ocean_cp", "Splash-3 ocean currents, 1026 x 1026 grid.", "OCEAN -p4 -n1026"),
    Subject(
        "water_nsquared",
        "water_nsq",
        "Splash-3 water, all pairs, 1728 molecules, 3 steps.",
        "WATER-NSQUARED",
        threads=2,
    ),
    Subject(
        "water_spatial",
        "water_sp",
        "Splash-3 water, cell lists, 8000 molecules, 3 steps.",
        "WATER-SPATIAL",
        threads=2,
    ),
    Subject(
        "fmm",
        "fmm",
        "Splash-3 fast multipole method, 16384 particles, 5 steps.",
        "FMM",
        threads=2,
        step=(5, 6, 4),
    ),
    Subject(
        "fluidanimate",
        "fluidanimate",
        "PARSEC fluid dynamics, 15000 particles, 60 frames.",
        "fluidanimate 4 60 in_15K.fluid out.fluid",
        step=(0, 10, 60),
        thinned=7,
        excluded="the reading and writing of files by the main thread",
    ),
]


def fit(subject: Subject) -> Fitted:
    """The model of a barrier program."""
    return Model(subject).fitted()


class Model:
    """Everything derived from one recording."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        recording = load(subject.recording)
        fluid = subject.name == "fluidanimate"
        self.phases = fluid_phases(recording) if fluid else splash_phases(recording)
        program = {"water_nsquared": "water_nsq", "water_spatial": "water_sp"}.get(subject.name, subject.name)
        self.rate: Rate = rate(program, subject.recording)
        self.recorded_threads = len(self.phases[0].cpu_ns)
        self.blocks = self._blocks()
        fine = [phase for phase in self.phases if _many(phase)]
        self.fine_mutexes = len(frozenset().union(*(phase.mutexes for phase in fine))) if fine else 0
        self.pairs = sum(sum(phase.pairs) for phase in fine) * subject.thinned
        self.thinning = _thinning(self.pairs)

    def _blocks(self) -> list[Block]:
        similar = similar_within(TOLERANCE, FLOOR_NS)
        if self.subject.step is None:
            return find_loops(self.phases, similar)
        first, period, count = self.subject.step
        last = first + period * count
        before, after = self.phases[:first], self.phases[last:]
        steps = known_loop(self.phases[first:last], period)
        return [*find_loops(before, similar), steps, *find_loops(after, similar)]

    def fitted(self) -> Fitted:
        """File text and recorded figures."""
        return Fitted(
            self.subject.name, toml.text(self._lines()), self._observed(), recorded_params={"n": 4.0}
        )

    def _observed(self) -> Observed:
        per_thread = [
            sum(phase.cpu_ns[thread] for phase in self.phases) for thread in range(self.recorded_threads)
        ]
        return Observed(
            giga_instructions=sum(per_thread) * self.rate.per_ns / 1e9,
            barriers=len(self.phases),
            pairs=self.pairs + sum(sum(phase.pairs) for phase in self.phases if not _many(phase)),
            thinning=self.thinning,
            items=0,
            segments=segment_figures(
                "phase", [cpu * self.rate.per_ns for phase in self.phases for cpu in phase.cpu_ns]
            ),
            imbalance=max(per_thread) / (sum(per_thread) / len(per_thread)),
            critical_share=sum(max(phase.cpu_ns) for phase in self.phases)
            * self.recorded_threads
            / sum(per_thread),
        )

    def _lines(self) -> list[str]:
        subject = self.subject
        lines = toml.head(subject.name, subject.description, self._source(), self._notes())
        lines += ["[params]", f"n = {subject.threads}  # threads{_plus_main(subject)}"]
        if any(sum(phase.pairs) > 0 and not _many(phase) for phase in self.phases):
            lines += ["", "[mutexes.global]"]
        if self.pairs:
            lines += [
                "",
                "[mutexes.cells]",
                f"count = {max(1, round(self.fine_mutexes / self.thinning))}"
                f"  # {self.fine_mutexes} recorded / {self.thinning}",
            ]
        lines += ["", "[barriers.phase]", 'parties = "n"']
        if subject.name == "fluidanimate":
            lines += toml.thread("main", "", ['{ fork = "worker", times = "n" },', "{ join = true },"])
            return lines + toml.thread("worker", "0", self._body())
        return lines + toml.thread("worker", "n", self._body())

    def _source(self) -> str:
        suite = "PARSEC 3.0" if self.subject.name == "fluidanimate" else "Splash-3"
        return f"{suite}, {self.subject.command}, recorded with 4 threads"

    def _notes(self) -> list[str]:
        notes = [
            f"Instructions = recorded CPU ns x {self.rate.per_ns:.3f}: {self.rate.source}.",
            f"Left out: {self.subject.excluded}.",
            "Each line is a phase between two barriers; n threads share its work. The comment gives the recorded CPU"
            " time per thread (4 threads, mean over the loop); cv is the recorded spread between threads.",
        ]
        if self.pairs:
            private = (
                " (mutexes of a single thread were left out of the recording)"
                if self.subject.thinned > 1
                else ""
            )
            notes.append(
                f"Locks: {self.pairs} recorded pairs{private}; one in {self.thinning} is simulated. Critical sections"
                f" are {self.thinning} times as long and the array of mutexes {self.thinning} times as small, so the"
                " share of time inside critical sections and the rate of contended acquisitions stay; each wait is as"
                " many times longer."
            )
        if self.subject.name in ("fmm", "radix"):
            other = "pause flags" if self.subject.name == "fmm" else "semaphores of the prefix tree"
            notes.append(
                f"Not modelled: the {other} by which single threads wait for one another inside phases."
            )
        return notes

    def _body(self) -> list[str]:
        lines: list[str] = []
        for block in self.blocks:
            lines += self._global_updates(block)
            body = [line for members in block.members for line in self._phase(members)]
            lines += toml.loop(str(block.repeat), body) if block.repeat > 1 else body
        return lines

    def _global_updates(self, block: Block) -> list[str]:
        """The few critical sections of a block's phases (sums, counters), together before the block."""
        few = [phase for members in block.members for phase in members if not _many(phase)]
        pairs = sum(sum(phase.pairs) for phase in few)
        count = round(pairs / self.recorded_threads)
        if count == 0:
            return []
        hold = toml.number(sum(phase.hold_ns for phase in few) / pairs * self.rate.per_ns)
        section = toml.critical_section("global", hold, self.subject.name)
        return toml.loop(str(count), section) if count > 1 else section

    def _phase(self, members: list[Phase]) -> list[str]:
        count = len(members)
        mean_us = sum(phase.mean_ns for phase in members) / count / 1000
        lines = self._locked_phase(members) if _many(members[0]) else [self._plain_phase(members)]
        return [*lines[:-1], f'{lines[-1]} {{ barrier = "phase" }},  # {mean_us:.1f} us']

    def _plain_phase(self, members: list[Phase]) -> str:
        total_ns = sum(sum(phase.cpu_ns) - phase.hold_ns for phase in members) / len(members)
        return self._share(total_ns, members, _cv(members))

    def _share(self, total_ns: float, members: list[Phase], cv: float) -> str:
        """A compute step with a thread's share of work that takes `total_ns` in all."""
        total = toml.number(total_ns * self.rate.per_ns)
        if members[0].owner is not None:
            return toml.compute(f"{total} * max(0, 1 - index)", self.subject.name)
        return toml.compute(f"{total} / n{_skew_factor(members)}", self.subject.name, cv)

    def _locked_phase(self, members: list[Phase]) -> list[str]:
        """Work before the locks, then a loop of work and critical sections."""
        count = len(members)
        total_ns = sum(sum(phase.cpu_ns) for phase in members) / count
        hold_ns = sum(phase.hold_ns for phase in members) * self.subject.thinned / count
        pairs = sum(sum(phase.pairs) for phase in members) * self.subject.thinned / count
        owner = members[0].owner is not None
        loops = max(1, round(pairs / self.thinning / LOOPS_UNIT)) * LOOPS_UNIT
        cv = 0.0 if owner else _cv(members)
        before_ns = self._before_locks(members, total_ns, cv)
        gap = (total_ns - hold_ns - before_ns) / loops * self.rate.per_ns
        assert gap > 0, f"{self.subject.name}: critical sections exceed the phase"
        hold = toml.number(hold_ns / loops * self.rate.per_ns)
        repeat = f"{loops} * max(0, 1 - index)" if owner else f"{loops} / n"
        skew = "" if owner else _skew_factor(members)
        work = toml.compute(toml.number(gap) + skew, self.subject.name, self._gap_cv(members))
        body = [f"{work} {toml.critical_section('cells', hold, self.subject.name)[0]}"]
        lines = toml.loop(repeat, body)
        if before_ns == 0:
            return lines
        return [self._share(before_ns, members, cv * total_ns / before_ns), *lines]

    def _before_locks(self, members: list[Phase], total_ns: float, cv: float) -> float:
        """Work of a phase before its locks: the longest stretch if that is most of it, else enough for the spread."""
        longest_ns = sum(sum(phase.longest_ns) for phase in members) / len(members)
        if longest_ns > BULK_SHARE * total_ns:
            return longest_ns
        return min(BULK_SHARE, 2 * cv) * total_ns

    def _gap_cv(self, members: list[Phase]) -> float:
        """Spread of the work between two simulated critical sections, each standing for several."""
        count = sum(sum(phase.pairs) - len(phase.pairs) for phase in members)
        mean = sum(phase.gap_ns for phase in members) / count
        variance = sum(phase.gap_squares for phase in members) / count - mean**2
        cv = sqrt(max(0.0, variance)) / mean / sqrt(self.thinning / self.subject.thinned)
        return cv if cv >= 0.1 and mean >= GAP_MIN_NS else 0.0


def _skew(members: list[Phase]) -> float:
    """Largest lasting deviation of a thread's share, if it stands out from the noise of single passes."""
    spread, error = lasting_imbalance(members)
    long = sum(phase.mean_ns for phase in members) > FLOOR_NS * len(members)
    if members[0].owner is not None or len(members) < 3 or not long or spread < max(SKEW_MIN, 2 * error):
        return 0.0
    return spread / float(np.std(np.linspace(-1, 1, len(members[0].cpu_ns))))


def _skew_factor(members: list[Phase]) -> str:
    """Shares that rise evenly from thread to thread; their mean is 1 for any number of threads."""
    skew = _skew(members)
    return f" * (1 + {skew:.3f} * (2 * index + 1 - count) / max(1, count - 1))" if skew else ""


def _cv(members: list[Phase]) -> float:
    """Spread between threads, without what a lasting imbalance explains."""
    squares = sum((phase.cv * phase.mean_ns) ** 2 for phase in members)
    weight = sum(phase.mean_ns**2 for phase in members)
    explained = lasting_imbalance(members)[0] ** 2 if _skew(members) else 0.0
    return sqrt(max(0.0, squares / weight - explained)) if weight > 0 else 0.0


def _many(phase: Phase) -> bool:
    return sum(phase.pairs) > FEW_PAIRS * len(phase.pairs)


def _thinning(pairs: int) -> int:
    thinning = 1
    while pairs / thinning > SIMULATED_PAIRS_MAX:
        thinning *= 2
    return thinning


def _plus_main(subject: Subject) -> str:
    return " besides the main thread, which only waits for them" if subject.name == "fluidanimate" else ""
