"""What the processor counts of a recorded program, and the speed-up that a model predicts from it."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from ampsched._core import CoreKind, InputError, Machine, core_kinds
from ampsched.calibration.perf_event import counting
from ampsched.cpus import allowed_cpus
from ampsched.models import models_for

Counts = dict[str, dict[str, float]]
"""Values of counters by core type and name."""


@contextmanager
def counted() -> Iterator[Counts]:
    """Counts what programs do that are started and ended inside, on each kind of core that Linux names.

    The dictionary is filled at the end; it stays empty without a PMU or the right to use it.
    """
    try:
        kinds: list[CoreKind] = [kind for kind in core_kinds(allowed_cpus()) if kind.is_known]
    except InputError:  # the kernel tells nothing that is understood; a program is recorded without counters
        kinds = []
    found: Counts = {}
    with ExitStack() as stack:
        open_now = [stack.enter_context(counting(kind.pmu, with_children=True)) for kind in kinds]
        yield found
    for kind, counts in zip(kinds, open_now, strict=True):
        if counts:
            found[kind.core_type] = {name: count.value for name, count in counts.items()}


def predicted_speedup(info: Mapping[str, Any], machine: Machine) -> float | None:
    """The speed-up that the shipped model of a machine's cores predicts from a recording's counters.

    None if nothing was counted on a kind of core that the machine has, there is no model for its cores, or the model
    lacks a counter.
    """
    try:
        models = models_for(machine)
    except InputError:
        return None
    for _, core_type, _, mhz, _ in machine.clusters:
        counts = info["counters"].get(core_type)
        prediction = models.speedup(core_type, mhz, counts) if counts else None
        if prediction and prediction[2]:
            return prediction[0]
    return None
