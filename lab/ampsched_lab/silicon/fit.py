"""What is fitted on the chips that do not judge, by the rule of lab/data/silicon/LOT.md."""

from collections.abc import Mapping, Sequence
from math import exp, log
from statistics import mean

import numpy as np
from scipy.optimize import least_squares

from ampsched_lab.silicon import intel
from ampsched_lab.silicon.chip import Kind, together
from ampsched_lab.silicon.data import SEVEN_ZIP, SHIPPED, chips, coremark, keep, kept, seven_zip
from ampsched_lab.silicon.lot import halves
from ampsched_lab.silicon.machines import write
from ampsched_lab.silicon.simulated import PROFILES, alone

Array = np.ndarray[tuple[int], np.dtype[np.float64]]

BOUNDS = {
    "cpi_core_little": (0.4, 4.0),
    "ilp_40": (1.0, 12.0),
    "more": (1.0, 4.0),
    "cpi_core_big": (0.1, 2.0),
    "branch_mpki": (0.1, 12.0),
}
FREE = {
    "coremark": ("cpi_core_little", "ilp_40", "more", "branch_mpki"),
    "compress": ("cpi_core_little", "ilp_40", "more", "cpi_core_big"),
    "decompress": ("cpi_core_little", "ilp_40", "more", "cpi_core_big"),
}
"""Of each program; ``more`` is ilp_128 over ilp_40."""
BETWEEN_CHIPS = 0.3
"""Weight of differences between chips beside those between the kinds of a chip, which are what is judged."""
SHARES = tuple(round(0.05 * step, 2) for step in range(8, 21))
"""Of the memory's peak, that are tried: streams get at least so much of any memory that is in use."""


def measured(program: str, names: Sequence[str]) -> list[tuple[Kind, float]]:
    """Kinds of cores at their highest frequency, and what the program has done there."""
    found = []
    for name in names:
        if program == "coremark":
            rates = {kind: points[-1][1] for kind, points in coremark(name).items()}
        else:
            rates = {kind: rate[program] for kind, rate in seven_zip(name).items()}
        found += [(kind, rates[kind.name]) for kind in Kind.of(name) if kind.name in rates]
    return found


def fitted_profile(program: str, names: Sequence[str]) -> tuple[dict[str, float], float, float]:
    """Values of the profile, the score per million instructions, and the mean error within chips."""
    points = measured(program, names)
    places = [(kind.core_type, kind.l2_kib, kind.mhz) for kind, _ in points]
    wanted = np.log([rate for _, rate in points])
    free = FREE[program]

    def values(vector: Array) -> dict[str, float]:
        found = {key: exp(value) for key, value in zip(free, vector, strict=True)}
        return {
            **{key: found[key] for key in free if key != "more"},
            "ilp_128": found["ilp_40"] * found["more"],
        }

    of_chip = np.array([[1.0 * (a.chip == b.chip) for b, _ in points] for a, _ in points])
    of_chip /= of_chip.sum(axis=1, keepdims=True)

    def errors(vector: Array, /) -> Array:
        differences = wanted - np.log(alone(places, {**PROFILES[program], **values(vector)}))
        chip = of_chip @ differences
        return np.concatenate([differences - chip, BETWEEN_CHIPS * (chip - chip.mean())])

    low, high = (np.log([BOUNDS[key][side] for key in free]) for side in (0, 1))
    starts = [low + (high - low) * share for share in (0.35, 0.65)]
    best = min(
        (least_squares(errors, start, bounds=(low, high), diff_step=[0.01] * len(free)) for start in starts),
        key=lambda found: found.cost,
    )
    found = values(best.x)
    differences = wanted - np.log(alone(places, {**PROFILES[program], **found}))
    return found, exp(differences.mean()), float(np.abs(best.fun[: len(points)]).mean())


def memory_share(names: Sequence[str], shares: Sequence[float] = SHARES) -> tuple[float, dict[str, float]]:
    """The share of memories' peaks, and the factors of all threads by program, with the least error of all cores."""
    best: tuple[float, float, dict[str, float]] | None = None
    for share in shares:
        differences = {
            program: [
                log(sum_of(name, program)) - log(together(name, program, chips()[name]["memory"][0] * share))
                for name in names
            ]
            for program in SEVEN_ZIP
        }
        factors = {program: exp(mean(each)) for program, each in differences.items()}
        cost = sum(
            (each - log(factors[program])) ** 2 for program, all_ in differences.items() for each in all_
        )
        if best is None or cost < best[0]:
            best = cost, share, factors
    assert best
    return best[1], best[2]


def sum_of(name: str, program: str) -> float:
    """What 7-zip does on all cores over the sum of all cores alone, measured."""
    rates = seven_zip(name)
    return rates["all"][program] / sum(kind.cores * rates[kind.name][program] for kind in Kind.of(name))


def energies(name: str) -> list[tuple[float, float, float, float]]:
    """Of each operating point of a chip: the three arguments of the law, and mJ per iteration of CoreMark."""
    return [
        (rate / mhz, mhz / points[-1][0], rate, power / rate)
        for points in coremark(name).values()
        for mhz, rate, power in points
        if power
    ]


def law(values: Mapping[str, float], per_mhz: float, share: float, per_s: float) -> float:
    """Energy, in mJ, of an iteration of CoreMark by the law: a r^b (s + (1 - s) x^g) + p0 / rate.

    Args:
        values: a (its logarithm), b, s, g and p0: what is drawn beside the core, in mW.
        per_mhz: r, CoreMark per MHz.
        share: x, of the highest frequency.
        per_s: The rate, CoreMark per second.
    """
    shape = values["s"] + (1 - values["s"]) * share ** values["g"]
    return float(exp(values["log_a"]) * per_mhz ** values["b"] * shape + values["p0"] / per_s)


def fitted_law(names: Sequence[str], *, constant: bool = True) -> dict[str, float]:
    """The values of the law, with or without p0."""
    points = [point for name in names for point in energies(name)]
    keys = ("log_a", "b", "s", "g", "p0")

    def errors(vector: Array, /) -> list[float]:
        values = dict(zip(keys, vector, strict=True))
        return [log(law(values, rate, share, per_s) / energy) for rate, share, per_s, energy in points]

    high = [3, 6, 0.99, 8, 300 if constant else 1e-9]
    start = [-3.0, 1.0, 0.4, 2.0, high[-1] / 6]
    found = least_squares(
        errors,
        start,
        bounds=([-9, -3, 0.01, 0.5, 0], high),
        loss="soft_l1",
        x_scale=[1, 1, 0.3, 1, high[-1] / 6],
    )
    return {key: round(float(value), 5) for key, value in zip(keys, found.x, strict=True)}


def fit() -> None:
    """Fits everything and keeps it."""
    names = halves()["fit"]
    found: dict[str, dict[str, object]] = {"profiles": {}, "scores": {}, "errors": {}}
    for program in PROFILES:
        with_data = [
            name for name in names if ("coremark" if program == "coremark" else "seven_zip") in chips()[name]
        ]
        values, score, error = fitted_profile(program, with_data)
        found["profiles"][program] = {key: round(value, 4) for key, value in values.items()}
        found["scores"][program], found["errors"][program] = round(score, 6), round(error, 4)
        print(program, found["profiles"][program], score, error)
    # What machine files need of the last fit stays until it is done.
    keep("fitted", {**kept("fitted"), **found})
    share, factors = memory_share([name for name in names if "seven_zip" in chips()[name]])
    law = {"energy": fitted_law(names), "intel": intel.fitted()}
    keep("fitted", {**found, "memory_share": share, "all_threads": factors, **law})
    print(kept("fitted"))
    write(SHIPPED)


if __name__ == "__main__":
    fit()
