"""The clock by which virtual cores are exactly unequal: where it is, what it is told, what it reports.

It is a plugin of QEMU (``crates/live/exact``), which ``make build`` puts beside the installed programs. Wheels do not
have it.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ampsched.vm.error import VmError
from ampsched.vm.exact.costs import ClassCosts
from ampsched.vm.exact.siblings import Pairs, clock_lines

INSTALLED = Path("lib/ampsched/exact-clock.so")
QUANTUM_US = (1.0, 10_000.0)
"""Shortest and longest quantum."""
CORES_MAX, CLASSES_MAX = 512, 16
"""MAX_CPUS and MAX_CLASSES of ``crates/live/exact/machine.h``."""


def clock_file() -> Path:
    """The plugin: ``$AMPSCHED_EXACT_CLOCK``, or where it was installed.

    Raises:
        VmError: It is not there.
    """
    given = os.environ.get("AMPSCHED_EXACT_CLOCK")
    path = Path(given) if given else Path(sys.prefix) / INSTALLED
    if not path.exists():
        raise VmError(
            f"{path}: the clock of exact virtual machines is missing. Wheels do not have it: in ampsched's sources, "
            "`make build` makes it, or `make -C crates/live/exact OUT=FOLDER`, which needs a C compiler only; then set "
            f"AMPSCHED_EXACT_CLOCK=FOLDER/{INSTALLED.name}"
        )
    return path


def settings(
    cores: Sequence[ClassCosts], quantum_us: float, siblings: Pairs = (), *, has_gaps: bool = False
) -> str:
    """What the clock is told: the quantum, classes of cores, the class of each CPU and who shares a core.

    Args:
        cores: What instructions cost on each core.
        quantum_us: Length of a turn in us of virtual time.
        siblings: CPUs that share a core.
        has_gaps: QEMU's numbers of CPUs have gaps, for cores with one thread.

    Raises:
        VmError: The quantum is out of range, or there are too many cores.
    """
    if not QUANTUM_US[0] <= quantum_us <= QUANTUM_US[1]:
        raise VmError(f"quantum {quantum_us:g} us: from {QUANTUM_US[0]:g} to {QUANTUM_US[1]:g} us")
    classes = list(dict.fromkeys(cores))
    if len(cores) > CORES_MAX or len(classes) > CLASSES_MAX:
        raise VmError(
            f"{len(cores)} cores of {len(classes)} kinds: at most {CORES_MAX} cores of {CLASSES_MAX} kinds"
        )
    lines = [f"quantum_ns {round(quantum_us * 1000)}"]
    lines += [line for each in classes for line in _class_lines(each)]
    lines += clock_lines([classes.index(each) for each in cores], siblings, has_gaps=has_gaps)
    return "\n".join(lines) + "\n"


def _class_lines(costs: ClassCosts) -> Iterator[str]:
    yield f"class {costs.rate_kips} {_words(costs.shares)}"
    if costs.misses:
        yield f"cache {costs.misses.l1_kib} {costs.misses.l2_kib} {_words(costs.misses.shares)}"
    if costs.choice:
        yield f"rates {costs.choice.address:x} {_words(costs.choice.rates_kips)}"


def _words(numbers: Sequence[int]) -> str:
    return " ".join(map(str, numbers))


@dataclass(frozen=True)
class Report:
    """What the clock says at the end.

    Attributes:
        virtual_s: Time that has passed in the guest.
        host_s: Time that has passed outside.
        instructions: Executed by each core, in units of cost 1.
    """

    virtual_s: float
    host_s: float
    instructions: tuple[int, ...]

    @classmethod
    def read(cls, text: str) -> "Report":
        """From the clock's own text: lines of name and value."""
        values = dict(line.split() for line in text.splitlines())
        counts = [int(value) for name, value in values.items() if name.endswith("_instructions")]
        return cls(int(values["virtual_ns"]) / 1e9, float(values["host_s"]), tuple(counts))
