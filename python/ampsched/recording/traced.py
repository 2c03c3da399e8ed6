"""The machine that a trace is of: how fast its CPUs are, and which of them have one clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ampsched._core import InputError, Machine, parse_cpus
from ampsched.naming import unknown


def stated(machine: Machine, cpus: str = "") -> dict[str, Any]:
    """What an import needs to know of a machine.

    A core's speed is the capacity at its cluster's highest frequency that a scheduler believes (1024: the fastest).

    Args:
        machine: The machine that was traced.
        cpus: Which CPUs of the trace are of which cluster, such as ``little=0,3-5 big=1,2``. Empty: CPU i of the trace
            is core i of the machine.

    Returns:
        ``speeds`` and ``kinds`` of the CPUs, the first those of CPU 0, and ``domains``: CPUs with one clock, and its
        lowest and highest value in MHz.

    Raises:
        InputError: The text names no clusters of the machine, or not each of its cores once.
    """
    cluster_of = clusters_of_cpus(machine, cpus) if cpus else machine.cluster_of_core
    numbers = range(len(machine.clusters))
    capacities = [machine.energy_model(cluster)[-1][1] for cluster in numbers]
    clocks = [machine.frequencies_mhz(cluster) for cluster in numbers]
    return {
        "speeds": [capacities[cluster] for cluster in cluster_of],
        "kinds": [machine.clusters[cluster][1] for cluster in cluster_of],
        "domains": [
            {
                "cores": [cpu for cpu, cluster in enumerate(cluster_of) if cluster == number],
                "min_mhz": clocks[number][0],
                "max_mhz": clocks[number][-1],
            }
            for number in numbers
        ],
    }


def ratio_of_speeds(info: Mapping[str, Any]) -> float:
    """Of a recording's cores, the fastest one's speed by the slowest one's; 1 if none is known."""
    speeds = [core["speed"] for core in info["cores"]]
    return max(speeds, default=1.0) / min(speeds, default=1.0)


def clusters_of_cpus(machine: Machine, text: str) -> list[int]:
    """The cluster of each CPU, by its place among ``machine.clusters``.

    Args:
        machine: The machine.
        text: ``CLUSTER=CPUS`` for each cluster, with spaces between.

    Raises:
        InputError: See `stated`.
    """
    found: dict[int, int] = {}
    for part in text.split():
        place, cpus = _cluster(machine, part)
        for cpu in cpus:
            if found.setdefault(cpu, place) != place:
                raise InputError(f"--cpus: CPU {cpu} is of two clusters")
    for place, (name, _, cores, *_) in enumerate(machine.clusters):
        count = sum(of == place for of in found.values())
        if count != cores:
            raise InputError(f"--cpus: {count} CPUs of {name}, {machine.name} has {cores} such cores")
    missing = set(range(machine.cores)) - set(found)
    if missing:
        raise InputError(f"--cpus: CPU {min(missing)} is of no cluster; they are numbered from 0 on")
    return [found[cpu] for cpu in range(machine.cores)]


def _cluster(machine: Machine, part: str) -> tuple[int, list[int]]:
    """A cluster's place and its CPUs, from ``CLUSTER=CPUS``."""
    names = [name for name, *_ in machine.clusters]
    name, sign, numbers = part.partition("=")
    if not sign:
        raise InputError(f'--cpus: "{part}" is no CLUSTER=CPUS (such as little=0,3-5)')
    if name not in names:
        raise unknown(f"cluster of {machine.name}", name, names)
    return names.index(name), parse_cpus(f"--cpus {name}", numbers)
