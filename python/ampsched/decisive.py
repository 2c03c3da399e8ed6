"""Numbers of a run, and those by which policies are judged."""

from collections.abc import Callable
from dataclasses import dataclass

from ampsched.execution import Run

Value = Callable[[Run], float]


def h_antt(run: Run) -> float:
    """H_ANTT of a run."""
    return run.metrics.h_antt


def h_stp(run: Run) -> float:
    """H_STP of a run."""
    return run.metrics.h_stp


def makespan_ms(run: Run) -> float:
    """Makespan of a run in ms."""
    return run.outcome.makespan_ns / 1e6


def waiting_ms(run: Run) -> float:
    """Mean time of a thread in run queues, in ms."""
    totals = run.outcome.totals
    return totals.ready_ns / max(1, totals.threads) / 1e6


def longest_wait_ms(run: Run) -> float:
    """Longest stay of a thread in a run queue, in ms."""
    return run.outcome.totals.ready_ns_max / 1e6


def latency_p99_ms(run: Run) -> float:
    """99th percentile of the wake-up latencies of all threads of a run, in ms."""
    return run.outcome.latency.p99_ns / 1e6


def missed(run: Run) -> float:
    """Missed deadlines of all periodic threads of a run."""
    return float(sum(app.periods.missed for app in run.outcome.apps if app.periods))


def instructions(run: Run) -> float:
    """Instructions that all threads of a run have retired."""
    return float(run.outcome.totals.instructions)


@dataclass(frozen=True, slots=True)
class Decisive:
    """A number by which policies are judged.

    Attributes:
        name: What it is, in words.
        value: Of a run.
        text: A value in words.
        more_is_better: Whether more is better.
    """

    name: str
    value: Value
    text: Callable[[float], str]
    more_is_better: bool = False


def time_text(ms: float) -> str:
    """A time in ms in words: with three digits, from a second on in s."""
    return f"{ms:.3g} ms" if ms < 999.5 else f"{ms / 1e3:.3g} s"


TURNAROUND = Decisive("turnaround", makespan_ms, time_text)
SLOWDOWN = Decisive("mean slowdown (H_ANTT)", h_antt, lambda value: f"{value:.3f}")
WORK_DONE = Decisive("work done", instructions, lambda value: f"{value / 1e9:.3f} x 10^9 instructions", True)
