"""Frames of interactive programs: how many, how long, how many late.

A frame begins with the wake-up of the thread that begins it, and ends when the thread that ends it waits again: as the
program marks them (Choreographer, SurfaceFlinger), or else from one wake-up at a thread's period to its next wait for
the clock. It is late if it ends later than a period after it began.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ampsched.timeliness import Distribution
from ampsched.units import NS_PER_MS


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames, each counted once, by the thread that ends it.

    Attributes:
        period_ns: From a frame's begin until it is due.
        threads: Names of the threads that end them.
        marked: Whether the program has marked them.
        frames: How many there are.
        late: How many ended later than a period after they began.
        times: From a frame's begin to its end.
    """

    period_ns: int
    threads: tuple[str, ...]
    marked: bool
    frames: int
    late: int
    times: Distribution

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Frames:
        """From the core's JSON."""
        return cls(
            period_ns=values["period_ns"],
            threads=tuple(values["threads"]),
            marked=values["marked"],
            frames=values["frames"],
            late=values["late"],
            times=Distribution.from_dict(values["times"]),
        )

    def words(self) -> str:
        """Where they were found, and how many were late."""
        how = "marked frames" if self.marked else "wake-ups"
        first, *others = self.threads
        more = f" and {len(others)} more" if others else ""
        found = f"a period of {self.period_ns / NS_PER_MS:.1f} ms was found in {how}"
        return (
            f"{found} of {first or 'a thread without a name'}{more}; {self.late} of {self.frames} were late"
        )

    def lengths(self) -> str:
        """How long they took, in words."""
        parts = (
            f"{name} {getattr(self.times, f'{name}_ns') / NS_PER_MS:.1f} ms" for name in ("p50", "p95", "p99")
        )
        return f"from begin to end {', '.join(parts)}"
