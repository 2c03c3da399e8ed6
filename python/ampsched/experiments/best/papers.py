"""The test sets that other papers are: Prop-SP's mixes, HFEE's workloads and Chronaki's programs.

Machines, programs, protocols and metrics are those of the papers' own experiments.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ampsched.experiments.best import on_chronaki, on_hfee, on_prop_sp
from ampsched.experiments.best.aims import Judged


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
