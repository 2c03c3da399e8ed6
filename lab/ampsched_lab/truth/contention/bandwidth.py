"""Memory bandwidth: simulations beside published measurements of how it scales with the number of threads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ampsched_lab.truth.contention.simulated import Site, speeds
from ampsched_lab.truth.pairs.report import table


@dataclass(frozen=True)
class Kernel:
    """What a loop does.

    Attributes:
        reads: Lines that it reads.
        writes: Lines that it writes meanwhile; they are fetched first, and go back later.
        counted: Lines that its author counts.
    """

    reads: int
    writes: int
    counted: int

    @property
    def profile(self) -> Mapping[str, float]:
        """Lines as misses: four instructions for each, all of them foreseen."""
        lines = self.reads + self.writes
        misses, stores = 250.0, 250.0 * self.writes / lines
        sizes = ("l1d", "l2_512k", "l2_2m")
        both = {f"{size}_mpki": misses for size in sizes} | {f"{size}_write_mpki": stores for size in sizes}
        return {**both, "prefetchable": 1.0}

    @property
    def traffic(self) -> float:
        """Lines that move for each that is counted."""
        return (self.reads + 2 * self.writes) / self.counted

    def gb_s(self, instructions_per_ns: float) -> float:
        """What its author would count."""
        return instructions_per_ns / 4 * 64 * self.counted / (self.reads + self.writes)


LOAD, COPY, TRIAD, LMBENCH = Kernel(1, 0, 1), Kernel(1, 1, 2), Kernel(3, 1, 4), Kernel(1, 1, 1)


@dataclass(frozen=True)
class Series:
    """A published series.

    Attributes:
        name: Computer and loop.
        kernel: The loop.
        memory_ns: Latency of the memory.
        channels: Of the memory, for these cores.
        gb_s: By number of threads, each on a core of its own.
    """

    name: str
    kernel: Kernel
    memory_ns: float
    channels: int
    gb_s: Mapping[int, float]


def _by_threads(*gb_s: float) -> dict[int, float]:
    return dict(enumerate(gb_s, 1))


A53 = ("AM62P (4 Cortex-A53, LPDDR4)", 110, 1)
HASWELL = ("Xeon E5-2695 v3 (7 cores of a cluster on die)", 90, 2)
SANDY_BRIDGE = ("Xeon E5-2680 (8 cores)", 90, 4)
# Texas Instruments SPRADG0A (AM62P benchmarks, August 2024), section 3.1.1, LMBench on its console. The examples'
# machine files of kerncraft (RRZE Erlangen; HaswellEP_E5-2695v3_CoD.yml, SandyBridgeEP_E5-2680.yml): MEM, one thread
# per core, likwid-bench, of the latter the best of ten runs. Channels are the data sheets'. The latency of the A53 is
# the shipped core type's; those of the Xeons are assumed.
PUBLISHED = (
    Series(f"{A53[0]}, bcopy", LMBENCH, *A53[1:], {1: 1.95671, 2: 3.12266, 4: 3.60580}),
    Series(f"{A53[0]}, cp", LMBENCH, *A53[1:], {1: 1.01227, 2: 1.56878, 4: 1.87432}),
    Series(f"{HASWELL[0]}, load", LOAD, *HASWELL[1:], _by_threads(9.69, 18.10, 24.39, 29.21, 31.10, 31.81, 32.08)),
    Series(f"{HASWELL[0]}, copy", COPY, *HASWELL[1:], _by_threads(10.04, 15.17, 16.65, 17.45, 17.46, 17.65, 17.69)),
    Series(f"{HASWELL[0]}, triad", TRIAD, *HASWELL[1:], _by_threads(11.30, 18.28, 21.29, 22.14, 22.54, 22.51, 22.65)),
    Series(
        f"{SANDY_BRIDGE[0]}, load", LOAD, *SANDY_BRIDGE[1:],
        _by_threads(12.30, 23.50, 33.04, 40.59, 44.03, 44.56, 44.26, 43.77),
    ),
    Series(
        f"{SANDY_BRIDGE[0]}, copy", COPY, *SANDY_BRIDGE[1:],
        _by_threads(11.12, 20.53, 24.86, 26.20, 26.47, 26.35, 26.24, 26.17),
    ),
    Series(
        f"{SANDY_BRIDGE[0]}, triad", TRIAD, *SANDY_BRIDGE[1:],
        _by_threads(12.41, 24.13, 29.24, 30.73, 30.68, 30.58, 30.54, 30.63),
    ),
)  # fmt: skip
FACTORS = (0.02, 20.0)
ASSUMED_NS = 90
OTHERS_NS = (70, 110)


def section(folder: Path) -> str:
    """Compares them.

    Args:
        folder: For files.
    """
    rows = []
    for series in PUBLISHED:
        ours = simulated(folder, series)
        for threads, gb_s in series.gb_s.items():
            most = max(series.gb_s)
            use = {1: " (sets the loop)", most: " (in what sets the memory)"}.get(threads, "")
            what = series.name if threads == 1 else ""
            error = ours[threads] / gb_s - 1
            rows.append([what, f"{threads}{use}", f"{gb_s:.2f}", f"{ours[threads]:.2f}", f"{error:+.1%}"])
    header = ["computer and loop", "threads", "published, GB/s", "simulated", "error"]
    errors = _errors(folder, PUBLISHED)
    single = _errors(folder, [replace(series, channels=1) for series in PUBLISHED])
    assumed = [series for series in PUBLISHED if series.memory_ns == ASSUMED_NS]
    others = [
        f"{ns} ns: {_summary(_errors(folder, [replace(series, memory_ns=ns) for series in assumed]))}"
        for ns in OTHERS_NS
    ]
    return "\n\n".join(
        [
            table(header, rows),
            f"In between: {_summary(errors)}. As if each memory had one channel: {_summary(single)}. The Xeons as "
            f"if their memory took {'; '.join(others)}.",
        ]
    )


def _errors(folder: Path, all_series: Sequence[Series]) -> list[float]:
    """Of numbers of threads that have set nothing."""
    errors = []
    for series in all_series:
        ours = simulated(folder, series)
        inner = [threads for threads in series.gb_s if 1 < threads < max(series.gb_s)]
        errors += [ours[threads] / series.gb_s[threads] - 1 for threads in inner]
    return errors


def _summary(errors: list[float]) -> str:
    within = sum(abs(error) <= 0.1 for error in errors)
    absolute = [abs(error) for error in errors]
    return (
        f"mean absolute error {sum(absolute) / len(absolute):.1%}, greatest {max(absolute):.1%}, "
        f"{within} of {len(errors)} within 10 %"
    )


def simulated(folder: Path, series: Series) -> dict[int, float]:
    """GB/s by number of threads, if the memory carries the most that was published, and one thread is as fast as that.

    Args:
        folder: For files.
        series: What was published.
    """
    memory = {
        "bandwidth_mb_s": 1000 * series.kernel.traffic * max(series.gb_s.values()),
        "channels": series.channels,
    }
    site = Site(max(series.gb_s), memory_ns=series.memory_ns, mlp_max=10, memory=memory)

    def gb_s(threads: int, factor: float) -> float:
        profile = {**series.kernel.profile, "cycles_factor": factor}
        return sum(series.kernel.gb_s(speed) for speed in speeds(folder, site, [profile] * threads))

    fast, slow = FACTORS
    for _ in range(24):
        middle = (fast * slow) ** 0.5
        fast, slow = (middle, slow) if gb_s(1, middle) > series.gb_s[1] else (fast, middle)
    return {threads: gb_s(threads, slow) for threads in series.gb_s}
