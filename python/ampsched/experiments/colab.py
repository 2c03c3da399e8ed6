"""COLAB (CGO 2020): 26 workloads on four machines, its six figures and the claims about them.

Also the 38 workloads of the evaluation draft ("tex") on two machines. Each result is the mean of two runs, big cores
first and little cores first (section 5.1), and is repeated with several seeds.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ampsched.api import compare
from ampsched.comparison import Comparison
from ampsched.experiments.normalised import Case, Filter

MACHINES = ("2B2S", "2B4S", "4B2S", "4B4S")
CORES = {"2B2S": 4, "2B4S": 6, "4B2S": 6, "4B4S": 8}
POLICIES = ("cfs", "wash", "colab")
TEX_MACHINES = ("2B2S", "4B4S")
TEX_POLICIES = (*POLICIES, "colab-collaboration-only")
SINGLE = (
    "blackscholes",
    "bodytrack",
    "dedup",
    "ferret",
    "fluidanimate",
    "freqmine",
    "swaptions",
    "radix",
    "lu_ncb",
    "lu_cb",
    "ocean_cp",
    "water_nsquared",
    "water_spatial",
    "fmm",
    "fft",
)
CLASSES = {"sync": 4, "nsync": 4, "comm": 4, "comp": 4, "rand": 10}
# Table 4 of the paper: threads of each workload, and programs (the rest have four).
THREADS = {
    "sync": (4, 18, 9, 20),
    "nsync": (4, 16, 8, 20),
    "comm": (4, 16, 9, 20),
    "comp": (4, 17, 8, 20),
    "rand": (19, 10, 9, 8, 6, 21, 20, 17, 55, 53),
}
TWO_PROGRAMS = frozenset(
    [f"{name}-{number}" for name in ("sync", "nsync", "comm", "comp") for number in (1, 2)]
    + [f"rand-{number}" for number in range(1, 6)]
)
TEX_CLASSES = {"tex-2B": 10, "tex-3B": 9, "tex-4B": 10, "tex-6B": 9}
Progress = Callable[[int, int], object]


def workloads(*classes: str) -> list[str]:
    """Names of the workloads of some classes, or of all."""
    return [f"{name}-{number}" for name in classes or CLASSES for number in range(1, CLASSES[name] + 1)]


def of(*classes: str, on: str | None = None) -> Filter:
    """Cases of some workload classes (all if none is named), on one machine or all."""
    names = set(workloads(*classes))
    return lambda case: case.workload in names and on in (None, case.machine)


def threads_of(workload: str) -> int:
    """Threads of a workload in Table 4."""
    name, number = workload.rsplit("-", 1)
    return THREADS[name][int(number) - 1]


def few_threads(case: Case) -> bool:
    """Fewer threads than the machine has cores (Figure 8, left)."""
    return case.workload in set(workloads()) and threads_of(case.workload) < CORES[case.machine]


def many_threads(case: Case) -> bool:
    """At least twice as many threads as the greatest machine has cores (Figure 8, right)."""
    return case.workload in set(workloads()) and threads_of(case.workload) >= 2 * max(CORES.values())


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the experiment: what is run together."""

    name: str
    title: str
    machines: tuple[str, ...]
    workloads: tuple[str, ...]
    policies: tuple[str, ...] = POLICIES

    def run(self, jobs: int, repeats: int, progress: Progress | None, factors: str = "oracle") -> Comparison:
        """Runs it with seeds 1 to `repeats`; policies learn speed-ups from `factors`."""
        return compare(
            self.machines,
            self.workloads,
            self.policies,
            repeat=repeats,
            factors=factors,
            jobs=jobs,
            progress=progress,
        )

    def simulations(self, repeats: int) -> int:
        """Simulations without baselines: for progress."""
        return len(self.machines) * len(self.workloads) * len(self.policies) * 2 * repeats


SINGLES = tuple(f"single-{name}" for name in SINGLE)
PARTS = {
    "fig4": Part("fig4", "Single programs on 2B2S (Figure 4)", ("2B2S",), SINGLES),
    "fig5": Part(
        "fig5", "Much and little synchronisation (Figure 5)", MACHINES, tuple(workloads("sync", "nsync"))
    ),
    "fig6": Part(
        "fig6", "Communication and computation (Figure 6)", MACHINES, tuple(workloads("comm", "comp"))
    ),
    "fig7": Part("fig7", "Random mixes (Figure 7)", MACHINES, tuple(workloads("rand"))),
    "tex": Part(
        "tex",
        "The 38 mixes of the evaluation draft",
        TEX_MACHINES,
        tuple(f"{name}-{number}" for name, count in TEX_CLASSES.items() for number in range(1, count + 1)),
        TEX_POLICIES,
    ),
}
# Figures 8 and 9 and the summary group all 26 workloads anew.
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


def run(
    only: str | None, jobs: int, repeats: int, progress: Progress | None = None, factors: str = "oracle"
) -> dict[str, Comparison]:
    """Runs the parts that a figure needs, or all; results by the name of the part.

    Args:
        only: ``"fig4"`` to ``"fig9"``, ``"summary"``, ``"tex"``, or None for all.
        jobs: Processors to use; 0: all. Results do not depend on it.
        repeats: Seeds.
        progress: Called with the number of finished simulations and of all.
        factors: Where policies learn speed-ups from.
    """
    names = NEEDS[only] if only else tuple(PARTS)
    total = sum(PARTS[name].simulations(repeats) for name in names)
    finished = 0
    results = {}
    for name in names:
        before = finished
        share = PARTS[name].simulations(repeats)

        def step(done: int, of_all: int, before: int = before, share: int = share) -> None:
            if progress:
                progress(before + done * share // of_all, total)

        results[name] = PARTS[name].run(jobs, repeats, step, factors)
        finished += share
    return results
