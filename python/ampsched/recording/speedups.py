"""How many times as fast a recorded program is on a machine's fastest cores as on its slowest, if anybody knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ampsched._core import TYPICAL_PROFILE, Machine
from ampsched.catalog import Catalog
from ampsched.recording.counting import predicted_speedup
from ampsched.recording.summary import sources
from ampsched.recording.traced import ratio_of_speeds


@dataclass(frozen=True, slots=True)
class Speedup:
    """What is known of a program's speed-up on a machine.

    Attributes:
        ratio: The speed-up; none if nobody knows it, so that it is that of `TYPICAL_PROFILE`.
        text: How it is known, in words.
    """

    ratio: float | None
    text: str


def known_speedup(
    info: Mapping[str, Any],
    catalog: Catalog,
    machine: str | Machine,
    stated: float | None = None,
    usual: float | None = None,
) -> Speedup:
    """The speed-up of a recorded program on a machine: of what is known, the surest.

    Args:
        info: What is known of the recording as a whole.
        catalog: Has the machine.
        machine: The machine.
        stated: What the user says; nothing is surer.
        usual: That of small programs on this machine, if it was measured: better than nothing.
    """
    where = catalog.machine(machine)
    if stated == 0:
        return Speedup(None, f"that of {TYPICAL_PROFILE}, as is asked for")
    if stated is not None:
        return Speedup(stated, f"stated: {stated:g}")
    if info["speedup"] is not None and info["machine"] == where.name:
        return Speedup(
            info["speedup"], f"{info['speedup']:.2f}, measured on the virtual cores of {where.name}"
        )
    measured = info.get("speedup_kinds")
    if measured and set(measured) == {core_type for _, core_type, *_ in where.clusters}:
        return Speedup(
            info["speedup"], f"{info['speedup']:.2f}, measured on {measured[0]} and on {measured[1]}"
        )
    # Who has imported it states speeds of its cores.
    ratio = ratio_of_speeds(info)
    if not info["machine"] and sources(info) is None and ratio > 1:
        return Speedup(ratio, f"{ratio:.2f}, by the speeds of the recording's cores")
    predicted = predicted_speedup(info, where)
    if predicted is not None:
        predicted = max(1.0, predicted)  # a model may be wrong by a little
        return Speedup(predicted, f"{predicted:.2f}, predicted from what the processor counted")
    if usual is not None:
        return Speedup(usual, f"{usual:.2f}, that of small programs on these cores")
    return Speedup(
        None, f"not known: taken for that of {TYPICAL_PROFILE}, the middle of the shipped profiles"
    )
