"""The machine that a recording was made on, as far as the recording says."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from ampsched._core import InputError, Machine
from ampsched.catalog import Catalog
from ampsched.files import temporary_folder
from ampsched.machine_file.writing import COSTS

CORE_TYPE = "generic"
MHZ = 2000
X86 = {"crestmont", "golden-cove", "gracemont", "redwood-cove"}
"""Core types of hybrid processors whose kernels know an order of cores and no capacities."""


def recorded_machine(info: Mapping[str, Any], catalog: Catalog, source: str) -> Machine:
    """The machine with the cores that a recording names.

    Args:
        info: What is known of the recording as a whole.
        catalog: Has the machines that exact virtual machines imitate.
        source: The recording, for messages.

    Raises:
        InputError: The recording names no cores.
    """
    if info["machine"]:
        machine = catalog.machine(info["machine"])
        # Calls are recorded on as many cores, all of the fastest kind.
        return machine.all_big() if all(core["speed"] == 1 for core in info["cores"]) else machine
    if not info["cores"]:
        raise InputError(f"{source}: says nothing of the cores that it was made on")
    with temporary_folder("ampsched-") as folder:
        file = folder / "recorded.toml"
        file.write_text(machine_text(info["cores"], info["wakeup_ns"]), encoding="utf-8")
        return catalog.machine(file)


def _sees(cores: list[dict[str, Any]]) -> str:
    """How the kernel that scheduled has told unequal cores apart: by capacities as Arm's, or priorities as x86-64's."""
    return "priorities" if {core["kind"] for core in cores} & X86 else "capacities"


def machine_text(cores: list[dict[str, Any]], wakeup_ns: int | None) -> str:
    """A machine file with these cores; neighbours of one kind and speed are a cluster.

    What waking and switching takes of a core is CPU time of the recorded threads, so it is part of their work.
    """
    costs = COSTS | {"context_switch_ns": 0}
    if wakeup_ns is not None:
        costs["wakeup_latency_ns"] = wakeup_ns
    speeds = sorted({core["speed"] for core in cores})
    lines = ['name = "recorded"', 'description = "The cores of a recording."']
    groups = groupby(cores, key=lambda core: (core["speed"], core["kind"]))
    for number, ((speed, _), members) in enumerate(groups):
        lines += [
            "[[clusters]]",
            f'name = "cluster-{number}"',
            f'core_type = "{CORE_TYPE}"',
            f"cores = {len(list(members))}",
            f"class = {speeds.index(speed)}",
            f"opps = [{{ mhz = {round(MHZ * speed)}, volt = 1.0 }}]",
        ]
    lines += ["[costs]", *(f"{key} = {value}" for key, value in costs.items())]
    if len(speeds) > 1:
        lines += ["[kernel]", f'sees = "{_sees(cores)}"']
    return "\n".join(lines) + "\n"
