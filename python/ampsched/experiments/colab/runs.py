"""COLAB's experiments: what is run for its figures.

Each result is the mean of two runs, big cores first and little cores first (section 5.1), and is repeated
with several seeds.
"""

from dataclasses import dataclass

from ampsched.api import compare
from ampsched.comparison import Comparison
from ampsched.execution import Progress
from ampsched.experiments.colab.setup import (
    MACHINES,
    POLICIES,
    SINGLES,
    STAND_INS,
    TEX,
    TEX_MACHINES,
    VARIANT,
    workloads,
)
from ampsched.experiments.progress import shares


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the experiment: what is run together."""

    machines: tuple[str, ...]
    workloads: tuple[str, ...]
    variants: tuple[str, ...] = ()
    """Policies beside `POLICIES`."""

    def policies(self, factors: str) -> tuple[str, ...]:
        """What is run; what stands in for Linux asks for no speed-ups."""
        return (*POLICIES, *self.variants, *(STAND_INS if factors == EXACT else ()))

    def run(self, jobs: int, repeats: int, progress: Progress, factors: str) -> Comparison:
        """Runs it with seeds 1 to `repeats`; policies learn speed-ups from `factors`."""
        return compare(
            self.machines,
            self.workloads,
            self.policies(factors),
            repeat=repeats,
            factors=factors,
            jobs=jobs,
            progress=progress,
        )

    def simulations(self, repeats: int, factors: str) -> int:
        """Simulations without baselines: for progress."""
        return len(self.machines) * len(self.workloads) * len(self.policies(factors)) * 2 * repeats


EXACT, PREDICTED = SOURCES = ("oracle", "predicted")
"""Where policies learn speed-ups from: exact ones, or those that the shipped model predicts from counters."""

PARTS = {
    "fig4": Part(("2B2S",), SINGLES),
    "fig5": Part(MACHINES, tuple(workloads("sync", "nsync"))),
    "fig6": Part(MACHINES, tuple(workloads("comm", "comp"))),
    "fig7": Part(MACHINES, tuple(workloads("rand"))),
    "tex": Part(TEX_MACHINES, TEX, (VARIANT,)),
}
NEEDS = {
    "fig4": ("fig4",),
    "fig5": ("fig5",),
    "fig6": ("fig6",),
    "fig7": ("fig7",),
    "fig8": ("fig5", "fig6", "fig7"),
    "fig9": ("fig5", "fig6", "fig7"),
    "summary": ("fig5", "fig6", "fig7"),
    "tex": ("tex",),
}
"""What each figure needs to be run. Figures 8 and 9 and the summary group all 26 workloads anew."""


def run(
    only: str | None, jobs: int, repeats: int, progress: Progress | None = None
) -> dict[str, dict[str, Comparison]]:
    """Runs the parts that a figure needs, or all; results by `SOURCES` and by the name of the part.

    Args:
        only: A key of `NEEDS`, or None for all.
        jobs: Processors to use; 0: all. Results do not depend on it.
        repeats: Seeds.
        progress: Called with the number of finished simulations and of all.
    """
    names = NEEDS[only] if only else tuple(PARTS)
    sizes = {(source, name): PARTS[name].simulations(repeats, source) for source in SOURCES for name in names}
    steps = shares(progress, sizes)
    return {
        source: {name: PARTS[name].run(jobs, repeats, steps[source, name], source) for name in names}
        for source in SOURCES
    }
