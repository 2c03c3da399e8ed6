"""Fits the power law of each cluster of the Exynos 5422: idle power first, then what busy cores add."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from measured import FAMILIES, FITTED, WORKLOADS, Column, Counts, columns, core_type, counts, rows
from scipy.optimize import least_squares, nnls
from thermal import IDLE_OTHER_W, Network

REFERENCE_VOLT = 1.0
REFERENCE_C = 25.0
ZERO_CELSIUS_K = 273.15
BUSIEST_MHZ = 2000
"""Frequency of the workloads' counter readings, and the big cluster's highest."""


@dataclass(frozen=True)
class Idle:
    """A cluster without load: V^2 f times a constant, and leakage."""

    uncore_uw_per_mhz_v2: float
    leakage_w: float
    """At the reference voltage and temperature, all cores together."""
    per_volt: float
    kelvin: float

    def leakage(self, volt: np.ndarray, celsius: np.ndarray) -> np.ndarray:
        """Leakage in W."""
        kelvin, reference = celsius + ZERO_CELSIUS_K, REFERENCE_C + ZERO_CELSIUS_K
        by_volt = volt / REFERENCE_VOLT * np.exp(self.per_volt * (volt - REFERENCE_VOLT))
        by_temperature = (kelvin / reference) ** 2 * np.exp(self.kelvin * (1 / reference - 1 / kelvin))
        return self.leakage_w * by_volt * by_temperature

    def power(self, column: Column, celsius: np.ndarray) -> np.ndarray:
        """Power in W."""
        return self.uncore_uw_per_mhz_v2 * 1e-6 * _mhz_v2(column) + self.leakage(column.volt, celsius)


@dataclass(frozen=True)
class Law:
    """What a cluster's file says."""

    idle: Idle
    dynamic_uw_per_mhz_v2: float
    stalled: float
    l2: float


def _mhz_v2(column: Column) -> np.ndarray:
    return column.mhz * column.volt**2


def temperatures(
    cluster: str, network: Network, column: Column, idle: Column
) -> tuple[np.ndarray, np.ndarray]:
    """Temperatures of the busy core and of the others while one core runs: from measured power."""
    if cluster == "little":
        celsius = np.array([network.little_c(watt) for watt in column.watt])
        return celsius, celsius
    added = column.watt - idle.watt
    cores = [
        network.steady_c(np.array([dynamic, 0.0, 0.0, 0.0]), watt, 0.01, IDLE_OTHER_W)
        for dynamic, watt in zip(added, column.watt, strict=True)
    ]
    return np.array([each[0] for each in cores]), np.array([each[1] for each in cores])


def fit_idle(cluster: str, network: Network, kelvin: float | None) -> Idle:
    """Idle power; without `kelvin` leakage's growth with temperature is found from the warm-up, too."""
    column = columns(cluster)["idle"]
    celsius = temperatures(cluster, network, column, column)[0]
    warming = rows("exynos5422_warming.csv")[1:]
    warming_w = np.array([float(row["big_w"]) for row in warming])
    cores_c = np.array([[float(row[f"core{core}_c"]) for core in range(4)] for row in warming]).mean(axis=1)
    volt = np.full_like(cores_c, columns("big")["idle"].volt[-1])

    def residuals(values: np.ndarray) -> np.ndarray:
        idle = Idle(*values[:3], values[3] if kelvin is None else kelvin)
        errors = idle.power(column, celsius) / column.watt - 1
        if kelvin is not None:
            return errors
        # Frequency and load stay the same, so what grows is leakage; how much else there is does not matter.
        constant_w = warming_w - idle.leakage(volt, cores_c)
        return np.concatenate([errors, (constant_w - constant_w.mean()) / warming_w])

    start = [50, 0.02, 4] + ([] if kelvin is not None else [2660])
    found = least_squares(residuals, start, bounds=(0, np.inf), x_scale=start)
    values = [float(f"{value:.3g}") for value in found.x]
    return Idle(*values[:3], values[3] if kelvin is None else kelvin)


def slots_and_l2(cluster: str, workload: str, column: Column, count: Counts) -> tuple[np.ndarray, np.ndarray]:
    """Share of issue slots used, and L2 accesses per cycle: both follow the measured speed."""
    core = core_type(cluster)
    ipc = count.instructions_per_cycle * column.speed * BUSIEST_MHZ / column.mhz
    return np.minimum(ipc / core["width"], 1.0), ipc * count.l2_accesses_per_instruction


def _equations(cluster: str, network: Network, idle: Idle, workload: str) -> tuple[np.ndarray, np.ndarray]:
    """Left and right side of the linear equations for stalled, issuing and L2 power, relative to the total."""
    column, resting = columns(cluster)[workload], columns(cluster)["idle"]
    busy_c, other_c = temperatures(cluster, network, column, resting)
    leakage = (idle.leakage(column.volt, busy_c) + 3 * idle.leakage(column.volt, other_c)) / 4
    shared = idle.uncore_uw_per_mhz_v2 * 1e-6 * _mhz_v2(column)
    slots, l2 = slots_and_l2(cluster, workload, column, counts()[workload])
    waiting = 1 - np.exp(-l2 * core_type(cluster)["l2_cycles"])
    weight = 1e-6 * _mhz_v2(column) / column.watt
    left = np.stack([weight, weight * slots, weight * waiting], axis=1)
    return left, 1 - (shared + leakage) / column.watt


def fit_busy(cluster: str, network: Network, idle: Idle, workloads: Iterable[str]) -> np.ndarray:
    """Coefficients of stalled, issuing and L2 power in uW / (MHz V^2); none is negative."""
    sides = [_equations(cluster, network, idle, workload) for workload in workloads]
    return nnls(np.concatenate([left for left, _ in sides]), np.concatenate([right for _, right in sides]))[0]


def errors(cluster: str, network: Network, idle: Idle, coefficients: np.ndarray, workload: str) -> np.ndarray:
    """Modelled power relative to the measured one, minus 1, by operating point."""
    left, right = _equations(cluster, network, idle, workload)
    return left @ coefficients - right


def fit(cluster: str, network: Network, kelvin: float | None) -> Law:
    """The law of a cluster, rounded as its file states it."""
    idle = fit_idle(cluster, network, kelvin)
    stalled, issuing, l2 = fit_busy(cluster, network, idle, FITTED)
    full = float(f"{stalled + issuing:.3g}")
    return Law(idle, full, round(stalled / full, 3), round(l2 / full, 3))


def left_out(cluster: str, network: Network, idle: Idle) -> dict[str, float]:
    """Mean error of each workload if it and its like are not fitted."""
    found = {}
    for family in FAMILIES:
        others = [workload for workload in WORKLOADS if workload not in family]
        coefficients = fit_busy(cluster, network, idle, others)
        for workload in family:
            found[workload] = float(np.abs(errors(cluster, network, idle, coefficients, workload)).mean())
    return found
