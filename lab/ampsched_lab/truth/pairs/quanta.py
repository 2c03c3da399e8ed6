"""Which results depend on the quantum by which CPUs of the exact machine take turns."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import mean

from ampsched_lab.campaign.boot import Guest, Scheduler
from ampsched_lab.campaign.run import Group, carry_out_all
from ampsched_lab.campaign.store import Store
from ampsched_lab.truth.pairs.report import table
from ampsched_lab.truth.pairs.workloads import WORKLOADS

QUANTA_US = (2.0, 10.0, 50.0)
NAMES = ("hogs-7", "lock-hot", "lock-cool", "barrier", "pipeline-sink", "lock+pipeline+hogs")
OFFSETS = (1, 2, 3)
POLICIES = ("cfs", "colab")
"""Beside the kernel's own scheduler."""


def guests(guest: Guest) -> list[Guest]:
    """The machine with each quantum."""
    return [
        replace(
            guest, name=f"{guest.name}-{quantum_us:g}us", exact=replace(guest.exact, quantum_us=quantum_us)
        )
        for quantum_us in QUANTA_US
    ]


INTRODUCTION = """\
Written by `make -C lab truth`. CPUs of an exact machine take turns of one quantum. A working CPU notices an interrupt at its
next turn, so up to a quantum late. Mean turnaround in ms over three start offsets, by quantum."""


def measure(guest: Guest, schedulers: Sequence[Scheduler], store: Store, jobs: int) -> None:
    """Runs what the store does not have yet."""
    mixes = tuple(workload.mix() for workload in WORKLOADS if workload.name in NAMES)
    groups = [Group(each, scheduler, mixes) for scheduler in schedulers for each in guests(guest)]
    carry_out_all(groups, [OFFSETS], store, jobs)


def quanta_table(guest: Guest, schedulers: Sequence[Scheduler], store: Store) -> str:
    """Mean turnaround of the programs of each workload in ms, by quantum."""
    rows = []
    for scheduler in schedulers:
        found = [store.read(each.name, each.system, scheduler.name) for each in guests(guest)]
        for name in NAMES:
            own = [
                mean(
                    program["report"]["turnaround_ns"]
                    for offset in OFFSETS
                    for program in each[name, offset]["programs"]
                )
                for each in found
            ]
            spread = (max(own) - min(own)) / min(own)
            rows.append(
                [f"`{name}`", f"`{scheduler.name}`", *(f"{ns / 1e6:.1f}" for ns in own), f"{spread:.1%}"]
            )
    return table(
        ["workload", "scheduler", *(f"{quantum_us:g} us" for quantum_us in QUANTA_US), "spread"], rows
    )
