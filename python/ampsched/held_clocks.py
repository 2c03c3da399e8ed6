"""Bounds of clocks that a trace told, on the machine that replays it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ampsched._core import Machine, Workload

HeldClock = tuple[str, int, int | None, int | None]
"""Kind and number of the cores that have a clock, and its bounds in kHz where they are known."""


@dataclass(frozen=True, slots=True)
class Held:
    """A machine as a replay has it.

    Attributes:
        machine: With the bounds of clocks that the trace told, under the name that it had.
        note: Which these are, or why none; empty if nothing is known of any.
    """

    machine: Machine
    note: str


def with_held_clocks(machine: Machine, workload: Workload, is_governed: bool) -> Held:
    """The machine with the bounds between which its clocks were held when the workload was traced.

    That counts where a governor sets clocks and the machine is the one that was traced: its clusters have the same
    kinds and numbers of cores. Bounds that the machine's name states go before those of the trace.

    Args:
        machine: The machine of the replay.
        workload: The workload; what was not imported with the machine that was traced says nothing.
        is_governed: Whether a governor sets clocks.
    """
    told: list[list[HeldClock]] = []
    for clocks in workload.held_clocks():
        told += [clocks] if clocks and clocks not in told else []
    if not told:
        return Held(machine, "")
    why = _why_not(machine, told, is_governed)
    if why:
        return Held(machine, f"bounds of clocks are not those of the trace: {why}")
    shares = [_share(machine, place, low, high) for place, (_, _, low, high) in enumerate(told[0])]
    held = [share for share in shares if share]
    if not held:
        return Held(machine, "")
    return Held(
        machine.part(held, machine.name),
        f"clocks are bounded as in the trace: {':'.join((machine.name, *held))} "
        f"({machine.name}:{held[0].partition('@')[0]}@- allows all)",
    )


def _why_not(machine: Machine, told: Sequence[Sequence[HeldClock]], is_governed: bool) -> str:
    """Why a machine does not take the bounds of a trace; empty if it does."""
    if any(machine.bounds()):
        return f"{machine.name} states bounds itself"
    if not is_governed:
        return "no governor sets clocks, they are the highest"
    if len(told) > 1:
        return "programs of several traces tell different ones"
    kinds = [(kind, cores) for _, kind, cores, *_ in machine.clusters]
    traced = [(kind, cores) for kind, cores, *_ in told[0]]
    if kinds != traced:
        return f"{machine.name} is not the machine with {', '.join(f'{n} x {kind}' for kind, n in traced)}"
    return ""


def _share(machine: Machine, place: int, min_khz: int | None, max_khz: int | None) -> str:
    """How a part of a machine states the bounds of a cluster; empty if they allow all its clocks.

    Between whole MHz they go outwards, as machines state some clocks rounded. Of bounds without a clock between them
    the kernel allows the next higher one (drivers/cpufreq/freq_table.c, `cpufreq_frequency_table_verify`).
    """
    clocks = machine.frequencies_mhz(place)
    low = clocks[0] if min_khz is None else min(min_khz // 1000, clocks[-1])
    high = clocks[-1] if max_khz is None else -(-max_khz // 1000)
    inside = [mhz for mhz in clocks if low <= mhz <= high] or [mhz for mhz in clocks if mhz >= low][:1]
    if inside == clocks:
        return ""
    top = "" if inside[-1] == clocks[-1] else f"{inside[-1]}"
    bottom = "" if inside[0] == clocks[0] else f"{inside[0]}"
    return f"{machine.clusters[place][0]}@{bottom}-{top}"
