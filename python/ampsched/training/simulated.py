"""Training rows from the simulator's core model."""

from dataclasses import dataclass, replace

import numpy as np

from ampsched import _core
from ampsched._core import InputError, Machine
from ampsched.catalog import Catalog
from ampsched.training.pie import Pair, pie_from_big, pie_from_little
from ampsched.training.pmu import Pmu
from ampsched.training.rows import Array, TrainingSet

# Profiles that are one program twice: two versions of one algorithm, or two encoders of one format. They are left out
# of the training together (lab/calibration/profiles/README.md says what each profile is).
TWINS = {
    "lu_cb": "lu", "lu_ncb": "lu", "ocean_cp": "ocean", "ocean_ncp": "ocean", "water_nsquared": "water",
    "water_spatial": "water", "hmmer2": "hmmer", "hmmer3": "hmmer", "x264": "h264", "h264c": "h264",
}  # fmt: skip
# Coefficient of variation of a count in a window that is counted all the time. Overcounting and skid are far below 1 %
# (Weaver, Terpstra and Moore, ISPASS 2013) over a whole run; 1 % for windows of some ms is an estimate.
COUNTER_CV = 0.01
# Windows per profile with noise (our choice): enough that the noise, not one draw of it, is judged.
NOISY_WINDOWS = 10


@dataclass(frozen=True, slots=True)
class Noise:
    """How counts differ from the truth: `cv` of a count that always runs; `turns`: all events take turns on the PMU."""

    cv: float = 0.0
    turns: bool = False


def simulated_rows(
    machine: Machine,
    pmus: dict[str, Pmu],
    catalog: Catalog | None = None,
    noise: Noise | None = None,
    seed: int = 1,
) -> list[TrainingSet]:
    """Rows of every profile on every kind of core of a machine, at its highest frequency.

    Args:
        machine: A machine with cores of at least two speeds.
        pmus: PMU of each type of core.
        catalog: Where the profiles are; the shipped ones by default.
        noise: Noise of the counts; several windows per profile then.
        seed: Seed of the noise.

    Raises:
        InputError: If all cores are equally fast.
    """
    clusters = machine.clusters
    classes = [cluster[4] for cluster in clusters]
    if len(set(classes)) < 2:
        raise InputError(
            f"machine {machine.name}: all its cores are equally fast, there is no speed-up to predict"
        )
    names = tuple(_core.simulated_counter_names())
    table = _core.simulated_counters((catalog or Catalog.shipped()).core, machine)
    profiles = list(dict.fromkeys(row[0] for row in table))
    speed = {(profile, cluster): ips for profile, cluster, ips, _ in table}
    counts = {(profile, cluster): row for profile, cluster, _, row in table}
    fastest, slowest = classes.index(max(classes)), classes.index(min(classes))
    speedup = np.array([speed[profile, fastest] / speed[profile, slowest] for profile in profiles])
    pair = _pair(machine, fastest, slowest)
    sets: list[TrainingSet] = []
    for place, (_, core_type, _, mhz, core_class) in enumerate(clusters):
        if any(made.core_type == core_type and made.mhz == mhz for made in sets):
            continue
        exact = TrainingSet(
            name=machine.name,
            core_type=core_type,
            mhz=float(mhz),
            is_big=core_class == max(classes),
            counters=names,
            counts=np.array([counts[profile, place] for profile in profiles]),
            programs=tuple(profiles),
            groups=tuple(TWINS.get(name, name) for name in (profile.split(".")[0] for profile in profiles)),
            speedup=speedup,
            pie=np.full(len(profiles), np.nan),
        )
        rows = exact if noise is None else with_noise(exact, noise, pmus[core_type], seed)
        sets.append(_with_pie(rows, pair, mhz, clusters[slowest][3]))
    return sets


def with_noise(rows: TrainingSet, noise: Noise, pmu: Pmu, seed: int) -> TrainingSet:
    """Several windows of each row whose counts are spoilt; the truth stays."""
    share = pmu.running_share(rows.counters) if noise.turns else 1.0
    repeated = rows.rows(np.repeat(np.arange(len(rows)), NOISY_WINDOWS))
    variance = np.log(1 + _core.counter_cv(noise.cv, share) ** 2)
    draws = np.random.default_rng(seed).standard_normal(repeated.counts.shape)
    # Fixed counters do not take turns.
    alone = np.log(1 + noise.cv**2)
    spread = np.array([alone if name in pmu.fixed else variance for name in rows.counters])
    spoilt: Array = repeated.counts * np.exp(np.sqrt(spread) * draws - spread / 2)
    return replace(repeated, counts=spoilt)


def _pair(machine: Machine, fastest: int, slowest: int) -> Pair:
    (big_width, big_window), (little_width, _) = machine.issue(fastest), machine.issue(slowest)
    clocks = machine.clusters[fastest][3] / machine.clusters[slowest][3]
    return Pair(big_width, big_window, little_width, clocks)


def _with_pie(rows: TrainingSet, pair: Pair, mhz: int, slowest_mhz: int) -> TrainingSet:
    instructions = rows.column("instructions")
    cpi = rows.column("cycles") / instructions
    memory_cpi = rows.column("stall_memory_cycles") / instructions
    misses = rows.column("l2_misses") / instructions
    if rows.is_big:
        return replace(rows, pie=pie_from_big(pair, cpi, memory_cpi, misses))
    # A kind of core in between stands for the slowest one.
    scale = slowest_mhz / mhz
    return replace(rows, pie=pie_from_little(pair, cpi, memory_cpi * scale, misses))
