"""What is kept of comparisons, and the changes that follow from it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean

import polars

from ampsched.comparison import SummaryRow

BASELINE = "cfs"
"""What all others are compared with."""


@dataclass(frozen=True, slots=True)
class Row:
    """A policy on a mix: means over both core orders."""

    section: str
    machine: str
    workload: str
    policy: str
    h_antt: float
    h_stp: float
    makespan: float
    """In ms."""
    unfairness: float
    late_ms: float | None = None
    """99th percentile of how late sleepers woke up, in mixes that have some."""
    edp: float | None = None
    """Energy x delay in J s, where energy is counted."""


@dataclass(frozen=True, slots=True)
class Changes:
    """A policy against the baseline: geometric means over cases of ratios; -0.1 is 10 % less."""

    h_antt: float
    h_stp: float
    makespan: float
    unfairness: float


NAMES = {"h_antt": "H_ANTT", "h_stp": "H_STP", "makespan": "makespan", "unfairness": "unfairness"}
"""The measures and what they are called."""
HIGHER_IS_BETTER = {"h_stp"}


def row_of(section: str, row: SummaryRow, late_ms: float | None = None) -> Row:
    """What is kept of a summary's row."""
    mean = row.h_antt.mean, row.h_stp.mean, row.makespan_ms.mean
    edp = row.edp_js.mean if row.edp_js else None
    return Row(section, row.machine, row.workload, row.policy, *mean, row.unfairness, late_ms, edp)


def changes(rows: Sequence[Row]) -> dict[str, Changes]:
    """The changes of all policies but the baseline, from rows of the same cases."""
    base = baseline(rows)
    return {
        policy: Changes(**{key: change(own, base, key) for key in NAMES})
        for policy, own in by_policy(rows).items()
        if policy != BASELINE
    }


def by_policy(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each policy."""
    by: dict[str, list[Row]] = {}
    for row in rows:
        by.setdefault(row.policy, []).append(row)
    return by


def baseline(rows: Sequence[Row]) -> dict[tuple[str, str], Row]:
    """The baseline's rows by machine and workload."""
    return {(row.machine, row.workload): row for row in rows if row.policy == BASELINE}


def change(own: Sequence[Row], base: Mapping[tuple[str, str], Row], key: str) -> float:
    """Of a measure against that of other rows of the same cases: the geometric mean of ratios, minus 1."""
    return (
        geometric_mean(getattr(row, key) / getattr(base[row.machine, row.workload], key) for row in own) - 1
    )


def best(found: Sequence[Changes], key: str) -> float:
    """The best value of a measure."""
    values: list[float] = [getattr(each, key) for each in found]
    return max(values) if key in HIGHER_IS_BETTER else min(values)


def write(rows: Sequence[Row], path: Path) -> None:
    """Writes rows as Parquet, numbers with six digits."""
    table = polars.DataFrame([asdict(row) for row in rows], infer_schema_length=None)
    rounded = polars.col(polars.Float64).round_sig_figs(6).cast(polars.Float32)
    table.with_columns(rounded).write_parquet(path, compression="zstd")


def read(path: Path) -> list[Row]:
    """What `write` wrote."""
    return [Row(**each) for each in polars.read_parquet(path).iter_rows(named=True)]
