"""Fits the thermal network of the Odroid XU3 to measured temperatures."""

from dataclasses import dataclass, fields

import numpy as np
from measured import columns, rows
from scipy.linalg import expm
from scipy.optimize import least_squares

LITTLE_AREA = 0.25
"""Area of the little cluster relative to the big one, as DS3 takes it; there is no sensor on it."""
IDLE_OTHER_W = 0.0757
"""GPU and memory while the board idles: lowest reading of the table."""


@dataclass(frozen=True)
class Network:
    """Resistances in K/W, capacities in J/K."""

    ambient_c: float
    core_k_per_w: float
    big_k_per_w: float
    case_k_per_w: float
    core_j_per_k: float
    big_j_per_k: float
    case_j_per_k: float

    def steady_c(self, core_w: np.ndarray, big_w: float, little_w: float, other_w: float) -> np.ndarray:
        """Temperatures of the four big cores, and of the case: `big_w` is the whole cluster's power."""
        case_c = self.ambient_c + self.case_k_per_w * (big_w + little_w + other_w)
        big_c = case_c + self.big_k_per_w * big_w
        return np.append(big_c + self.core_k_per_w * core_w, case_c)

    def little_c(self, little_w: float) -> float:
        """Temperature of the little cluster while the big one idles at its lowest frequency."""
        case_c = self.ambient_c + self.case_k_per_w * (little_w + IDLE_OTHER_W)
        return case_c + self.big_k_per_w / LITTLE_AREA * little_w

    def warming_c(
        self, seconds: np.ndarray, big_w: np.ndarray, shared_w: float, start_c: np.ndarray
    ) -> np.ndarray:
        """Temperatures of cores and case while all four cores are busy alike, from `start_c` on."""
        capacity = np.array([4 * self.core_j_per_k, self.big_j_per_k, self.case_j_per_k])
        core, big, case = 4 / self.core_k_per_w, 1 / self.big_k_per_w, 1 / self.case_k_per_w
        conductance = np.array([[core, -core, 0], [-core, core + big, -big], [0, -big, big + case]])
        step = expm(-conductance / capacity[:, None] * (seconds[1] - seconds[0]))
        temperatures = [start_c]
        for watt in big_w[1:]:
            heat = np.array([watt - shared_w, shared_w, IDLE_OTHER_W + self.ambient_c * case])
            steady = np.linalg.solve(conductance, heat)
            temperatures.append(steady + step @ (temperatures[-1] - steady))
        return np.array(temperatures)


def fit() -> Network:
    """The network nearest to steady temperatures and to a warm-up, all readings weighted alike."""
    steady = [_steady(row) for row in rows("exynos5422_temperatures.csv")]
    warming = rows("exynos5422_warming.csv")
    seconds = np.array([float(row["time_s"]) for row in warming])
    big_w = np.array([float(row["big_w"]) for row in warming])
    cores_c = np.array([[float(row[f"core{core}_c"]) for core in range(4)] for row in warming]).mean(axis=1)
    case_c = np.array([float(row["gpu_c"]) for row in warming])
    shared_w = columns("big")["idle"].watt[-1]

    def residuals(values: np.ndarray) -> np.ndarray:
        network = Network(*values[:-1])
        errors = [network.steady_c(*heat) - measured for heat, measured in steady]
        start_c = np.array([cores_c[0], values[-1], case_c[0]])
        modelled = network.warming_c(seconds, big_w, shared_w, start_c)
        return np.concatenate([*errors, modelled[:, 0] - cores_c, modelled[:, 2] - case_c])

    start = [22, 5, 2, 5, 0.02, 0.05, 1, 55]
    lowest = [15, 0.1, 0.1, 1, 0.001, 0.001, 0.1, 40]
    highest = [27, 20, 20, 20, 1, 5, 20, 70]
    found = least_squares(residuals, start, bounds=(lowest, highest), x_scale=start)
    return Network(*(float(f"{value:.3g}") for value in found.x[: len(fields(Network))]))


def _steady(row: dict[str, str]) -> tuple[tuple[np.ndarray, float, float, float], np.ndarray]:
    """Heat and measured temperatures of a row."""
    big_w, little_w, other_w = (float(row[f"{part}_w"]) for part in ("big", "little", "other"))
    busy = int(row["busy_cores"]) if row["busy_cluster"] == "big" else 0
    idle = columns("big")["idle"]
    dynamic_w = big_w - np.interp(float(row["mhz"]), idle.mhz, idle.watt)
    core_w = np.array([dynamic_w / busy if core < busy else 0.0 for core in range(4)])
    measured = np.array([float(row[f"{part}_c"]) for part in ("core0", "core1", "core2", "core3", "gpu")])
    return (core_w, big_w, little_w, other_w), measured


def steady_errors(network: Network) -> list[tuple[dict[str, str], np.ndarray]]:
    """Modelled minus measured temperatures by row."""
    found = []
    for row in rows("exynos5422_temperatures.csv"):
        heat, measured = _steady(row)
        found.append((row, network.steady_c(*heat) - measured))
    return found
