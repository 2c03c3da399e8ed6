"""A machine file from what was measured."""

from collections.abc import Sequence
from math import exp, log
from statistics import fmean

import polars as pl

from ampsched._core import CoreKind, format_cpus

# Kinds whose mean speeds differ by less are of one class: noise on an idle computer is about that large (our choice).
SAME_SPEED = 0.03
# What the machine files of Arm boards state as estimates (python/ampsched/data/machines/2B2S.toml says from where).
COSTS = {
    "context_switch_ns": 2000,
    "migrate_same_cluster_ns": 5000,
    "migrate_cross_cluster_ns": 20000,
    "wakeup_latency_ns": 3000,
}
ASSUMED_MHZ = 1000


def mean_speeds(table: pl.DataFrame) -> dict[str, float]:
    """Geometric mean over kernels of each kind's speed relative to the first kind's."""
    kinds = list(dict.fromkeys(table["kind"].to_list()))
    first = dict(table.filter(pl.col("kind") == kinds[0]).select("kernel", "rounds_per_s").rows())
    return {
        kind: exp(
            fmean(
                log(speed / first[kernel])
                for kernel, speed in table.filter(pl.col("kind") == kind)
                .select("kernel", "rounds_per_s")
                .rows()
            )
        )
        for kind in kinds
    }


def classes(speeds: dict[str, float]) -> dict[str, int]:
    """Classes from 0, the slowest; kinds of about the same speed share one."""
    ordered = sorted(speeds, key=lambda kind: speeds[kind])
    found: dict[str, int] = {}
    for place, kind in enumerate(ordered):
        slower = ordered[place - 1] if place else kind
        step = place > 0 and speeds[kind] > speeds[slower] * (1 + SAME_SPEED)
        found[kind] = found.get(slower, 0) + step
    return found


def machine_toml(
    name: str, kinds: Sequence[CoreKind], of_class: dict[str, int], speeds: dict[str, float]
) -> str:
    """A machine file; comments say what was measured and what was not."""
    lines = [
        f'name = "{name}"',
        'description = "This computer, by ampsched calibrate"',
        "",
        "# Measured: which cores are alike, and the order of their speeds. Not measured: voltages, costs, caches and pipelines; the core",
        "# types are the nearest shipped ones.",
    ]
    for kind in kinds:
        unknown = "" if kind.mhz else " # not known: the computer does not tell it"
        lines += [
            "",
            "[[clusters]]",
            f'name = "{kind.name}"',
            f'core_type = "{kind.core_type}"',
            f"cores = {len(kind.cpus)} # CPUs {format_cpus(kind.cpus)}",
            f"class = {of_class[kind.name]} # speed {speeds[kind.name]:.3f} of the first kind's, mean over kernels",
            f"opps = [{{ mhz = {kind.mhz or ASSUMED_MHZ}, volt = 1.0 }}]{unknown}",
        ]
    lines += ["", "[costs] # not measured: the estimates of the shipped machines"]
    lines += [f"{key} = {value}" for key, value in COSTS.items()]
    return "\n".join(lines) + "\n"
