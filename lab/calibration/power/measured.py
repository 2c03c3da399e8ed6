"""Reads the measurements of the Odroid XU3 and the shipped core types."""

import csv
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
PUBLISHED = ROOT / "lab" / "calibration" / "published"
DATA = ROOT / "python" / "ampsched" / "data"

CLUSTERS = ("little", "big")
CORE_TYPES = {"little": "cortex-a7", "big": "cortex-a15"}
WORKLOADS = (
    "hash",
    "encrypt",
    "decrypt",
    "gzip-1",
    "gzip-5",
    "gzip-9",
    "cacherate-0",
    "cacherate-100",
    "cachekiller",
)
"""The busy columns, in the order of the source."""
FITTED = WORKLOADS[::2]
"""Every second column is fitted, the others are predicted."""
FAMILIES = (
    ("hash",),
    ("encrypt", "decrypt"),
    ("gzip-1", "gzip-5", "gzip-9"),
    ("cacherate-0",),
    ("cacherate-100", "cachekiller"),
)
"""Columns that are much the same program."""


@dataclass(frozen=True)
class Column:
    """One workload on one cluster, by operating point."""

    mhz: np.ndarray
    volt: np.ndarray
    watt: np.ndarray
    """Power of the cluster; busy columns include the idle power."""
    speed: np.ndarray
    """Relative to a big core at 2000 MHz."""


@dataclass(frozen=True)
class Counts:
    """What a workload does per cycle of a big core at 2000 MHz, and per instruction."""

    instructions_per_cycle: float
    l2_accesses_per_instruction: float


def rows(name: str) -> list[dict[str, str]]:
    """The rows of a table."""
    with (PUBLISHED / name).open() as file:
        return list(csv.DictReader(file))


def columns(cluster: str) -> dict[str, Column]:
    """All columns of a cluster, for the operating points of which the voltage was measured."""
    power = [
        row for row in rows("exynos5422_power.csv") if row["cluster"] == cluster and row["volt_measured"]
    ]
    found = {}
    for workload in ("idle", *WORKLOADS):
        own = [row for row in power if row["workload"] == workload]
        mhz, volt, watt, speed = (
            np.array([float(row[key]) for row in own])
            for key in ("mhz", "volt_measured", "watt", "relative_speed")
        )
        found[workload] = Column(mhz, volt, watt, speed)
    idle = found["idle"].watt
    # The source states what a busy core adds to the idle cluster, see lab/calibration/published/README.md.
    return {
        name: column if name == "idle" else Column(column.mhz, column.volt, column.watt + idle, column.speed)
        for name, column in found.items()
    }


def counts() -> dict[str, Counts]:
    """Counter readings by workload."""
    return {
        row["workload"]: Counts(
            float(row["instructions_per_cycle"]), float(row["l2_accesses_per_instruction"])
        )
        for row in rows("exynos5422_counters.csv")
    }


def core_type(cluster: str) -> dict[str, float]:
    """The shipped core type of a cluster."""
    return tomllib.loads((DATA / "core_types" / f"{CORE_TYPES[cluster]}.toml").read_text())
