"""Cores of two threads: simulations beside published measurements with one thread per core and with two."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ampsched_lab.truth.contention.simulated import Site, speeds
from ampsched_lab.truth.pairs.report import table

CORES = (1, 2, 3, 4)


@dataclass(frozen=True)
class Pair:
    """GB/s of a loop whose data is in the L2s, by number of cores.

    Attributes:
        one: With one thread on each core.
        two: With two.
    """

    one: tuple[float, float, float, float]
    two: tuple[float, float, float, float]


# The example machine file SkylakeSP_Gold-5122.yml of kerncraft (RRZE Erlangen): L2, likwid-bench.
PUBLISHED: Mapping[str, Pair] = {
    "load": Pair((27.15, 54.09, 80.61, 106.41), (35.29, 70.28, 104.67, 139.63)),
    "copy": Pair((43.53, 90.07, 127.73, 171.81), (42.23, 83.70, 124.33, 167.50)),
    "update": Pair((50.38, 98.47, 147.91, 197.20), (50.09, 99.77, 149.87, 198.82)),
    "triad": Pair((43.38, 83.72, 124.83, 166.04), (52.38, 100.00, 147.40, 193.31)),
    "daxpy": Pair((36.29, 71.29, 103.33, 136.48), (41.14, 80.22, 116.23, 155.08)),
}


def section(folder: Path) -> str:
    """Compares them.

    Args:
        folder: For files.
    """
    own = {loop: max(0.5, pair.two[0] / pair.one[0] / 2) for loop, pair in PUBLISHED.items()}
    common = sum(own.values()) / len(own)
    rows, errors, common_errors = [], [], []
    for loop, pair in PUBLISHED.items():
        for cores in CORES[1:]:
            real = pair.two[cores - 1] / pair.one[cores - 1]
            ours, shared = (_gain(folder, cores, speed) for speed in (own[loop], common))
            errors.append(ours / real - 1)
            common_errors.append(shared / real - 1)
            cells = [
                f"{own[loop]:.3f}",
                f"{real:.3f}",
                f"{ours:.3f}",
                f"{errors[-1]:+.1%}",
                f"{common_errors[-1]:+.1%}",
            ]
            rows.append([f"{loop}, {cores} cores", *cells])
    header = [
        "loop", "`smt_speed`, from one core", "gain of two threads a core, published", "simulated", "error",
        f"with {common:.3f} for all",
    ]  # fmt: skip
    greatest, common_greatest = (max(map(abs, all_)) for all_ in (errors, common_errors))
    return "\n\n".join([
        table(header, rows),
        f"Greatest error {greatest:.1%}; {common_greatest:.1%} with one value for all loops.",
    ])  # fmt: skip


def _gain(folder: Path, cores: int, smt_speed: float) -> float:
    site = Site(2 * cores, cluster={"threads_per_core": "2", "smt_speed": f"{smt_speed}"})
    profile = {"l1d_mpki": 0.0, "l2_512k_mpki": 0.0, "l2_2m_mpki": 0.0}
    two = sum(speeds(folder, site, [profile] * (2 * cores)))
    one = sum(speeds(folder, Site(cores), [profile] * cores))
    return two / one
