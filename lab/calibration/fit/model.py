"""What a fit yields: the program file and the figures of the recording to compare it with."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt


@dataclass(frozen=True)
class Segments:
    """Lengths of stretches of work."""

    what: str
    """What a stretch is: phase, item, thread."""
    mean: float
    """Instructions."""
    cv: float
    """Standard deviation / mean."""


@dataclass(frozen=True)
class Observed:
    """Figures of a run, recorded or of the model."""

    giga_instructions: float
    """Work of the modelled region, 10^9 instructions."""
    barriers: int
    """Barrier episodes."""
    pairs: int
    """Lock/unlock pairs, those of the recorded program (before thinning)."""
    thinning: float
    """One pair in so many is simulated."""
    items: int
    """Items taken from queues and pools."""
    segments: Segments
    imbalance: float
    """Most loaded worker / mean."""
    critical_share: float = 0.0
    """Sum over phases of the slowest thread's work / sum of the mean; 0 without barriers."""


@dataclass(frozen=True)
class Fitted:
    """A program file and what was recorded."""

    name: str
    text: str
    observed: Observed
    recorded_params: dict[str, float] = field(default_factory=dict)
    """Parameters for which the model describes the recorded run."""
    workers: str = "worker"
    """Thread group over which the imbalance is taken."""
    item_sources: tuple[str, ...] = ()
    """Queues and pools whose items are compared; empty if threads have fixed shares."""


def segment_figures(what: str, lengths: Sequence[float]) -> Segments:
    """Mean and spread of lengths."""
    mean = sum(lengths) / len(lengths)
    variance = sum((length - mean) ** 2 for length in lengths) / len(lengths)
    return Segments(what, mean, sqrt(variance) / mean if mean > 0 else 0.0)
