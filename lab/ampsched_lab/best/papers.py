"""The test sets that other papers are: Prop-SP's mixes, HFEE's workloads and Chronaki's programs.

Machines, programs, protocols and metrics are those of the papers' own experiments.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ampsched_lab.best import on_chronaki, on_hfee, on_prop_sp
from ampsched_lab.best.aims import Judged
from ampsched_lab.best.choice import POLICY


@dataclass(frozen=True, slots=True)
class Measured:
    """All that the tables are made of."""

    prop_sp: tuple[on_prop_sp.Row, ...]
    hfee: tuple[on_hfee.Row, ...]
    chronaki: tuple[on_chronaki.Row, ...]

    def record(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)

    @staticmethod
    def of(record: Mapping[str, Iterable[Mapping[str, Any]]]) -> "Measured":
        """From what `record` gave."""
        return Measured(
            tuple(on_prop_sp.Row(**row) for row in record["prop_sp"]),
            tuple(on_hfee.Row(**row) for row in record["hfee"]),
            tuple(on_chronaki.Row(**row) for row in record["chronaki"]),
        )


def with_own(measured: Measured, own: Measured) -> Measured:
    """Others as they were measured, the policy as in `own`."""
    return Measured(
        (*(row for row in measured.prop_sp if not row.policy.startswith(POLICY)), *own.prop_sp),
        (*(row for row in measured.hfee if not row.scheduler.startswith(POLICY)), *own.hfee),
        (*(row for row in measured.chronaki if not row.policy.startswith(POLICY)), *own.chronaki),
    )


def own(measured: Measured) -> Measured:
    """The policy alone, with any parameters but those that leave something out."""

    def is_own(name: str) -> bool:
        return name.startswith(POLICY) and "without" not in name

    return Measured(
        tuple(row for row in measured.prop_sp if is_own(row.policy)),
        tuple(row for row in measured.hfee if is_own(row.scheduler)),
        tuple(row for row in measured.chronaki if is_own(row.policy)),
    )


def measure(jobs: int, progress: Callable[[str], object] = print) -> Measured:
    """Runs all three sets.

    Args:
        jobs: Processors to use; 0: all. Results do not depend on it.
        progress: Called with what is run next.
    """
    progress("Prop-SP's mixes")
    prop_sp = on_prop_sp.measure(jobs)
    progress("HFEE's workloads")
    hfee = on_hfee.measure(jobs)
    progress("Chronaki's programs")
    return Measured(prop_sp, hfee, on_chronaki.measure(jobs))


def judged(measured: Measured) -> list[Judged]:
    """The aims and their outcomes."""
    return [
        *on_prop_sp.judged(measured.prop_sp),
        *on_hfee.judged(measured.hfee),
        *on_chronaki.judged(measured.chronaki),
    ]


def sections(measured: Measured) -> list[str]:
    """Blocks of the report, a section for each set."""
    return [
        *on_prop_sp.section(measured.prop_sp),
        *on_hfee.section(measured.hfee),
        *on_chronaki.section(measured.chronaki),
    ]
