"""Facts that machine files have no key for yet: limits of power, base and turbo clocks, idle states, heat.

They become comments. A new key of the machine file takes its fact from here.
"""

from collections.abc import Sequence

from ampsched._core import format_cpus
from ampsched.machine_file.tree import CPU, Source, names, number, text

POWERCAP = "sys/class/powercap"
HEAT = "sys/class/thermal"
ZONES_MOST = 4


def remarks(source: Source) -> list[str]:
    """Facts about the whole computer, a line each."""
    return [*_power_limits(source), *_priorities(source), *_zones(source)]


def cluster_remarks(source: Source, cpus: Sequence[int], l3_kib: int | None) -> list[str]:
    """Facts about a cluster's cores, a line each."""
    root, first = source.root, f"{CPU}/cpu{cpus[0]}"
    found = []
    base = number(root, f"{first}/cpufreq/base_frequency")
    if base:
        found.append(f"base frequency {base // 1000} MHz (cpufreq/base_frequency)")
    top = {number(root, f"{CPU}/cpu{cpu}/cpufreq/cpuinfo_max_freq") for cpu in cpus} - {None}
    if len(top) > 1:
        clocks = ", ".join(f"{khz // 1000}" for khz in sorted(each for each in top if each))
        found.append(f"highest frequencies of its cores {clocks} MHz (cpuinfo_max_freq)")
    if l3_kib:
        found.append(f"L3 {l3_kib} KiB (cache/index3/size)")
    for state in names(root, f"{first}/cpuidle", r"state\d+"):
        folder = f"{first}/cpuidle/{state}"
        name, latency = text(root, f"{folder}/name"), number(root, f"{folder}/latency")
        residency = number(root, f"{folder}/residency")
        if name and latency is not None and residency is not None:
            found.append(f"idle state {_cut(name)}: exit {latency} us, residency {residency} us (cpuidle)")
    return found


def _power_limits(source: Source) -> list[str]:
    found = []
    for zone in names(source.root, POWERCAP, r"intel-rapl(-mmio)?:\d+"):
        folder = f"{POWERCAP}/{zone}"
        name = text(source.root, f"{folder}/name") or zone
        for each in range(4):
            limit = number(source.root, f"{folder}/constraint_{each}_power_limit_uw")
            window = number(source.root, f"{folder}/constraint_{each}_time_window_us")
            label = text(source.root, f"{folder}/constraint_{each}_name")
            if limit and label:
                over = f" over {window / 1e6:g} s" if window else ""
                found.append(f"power limit {_cut(name)} {_cut(label)}: {limit / 1e6:g} W{over} (powercap)")
    return found


def _priorities(source: Source) -> list[str]:
    """Which cores the processor prefers; machine files rank classes only."""
    ranks: dict[int, list[int]] = {}
    for cpu in names(source.root, CPU, r"cpu\d+"):
        rank = number(source.root, f"{CPU}/{cpu}/acpi_cppc/highest_perf")
        if rank:
            ranks.setdefault(rank, []).append(int(cpu[3:]))
    if len(ranks) < 2:
        return []
    words = [f"{rank} of CPUs {format_cpus(ranks[rank])}" for rank in sorted(ranks, reverse=True)]
    return ["highest_perf " + ", ".join(words) + " (acpi_cppc)"]


def _zones(source: Source) -> list[str]:
    found = []
    for zone in names(source.root, HEAT, r"thermal_zone\d+"):
        folder = f"{HEAT}/{zone}"
        name = text(source.root, f"{folder}/type")
        trips = []
        for trip in range(8):
            celsius = number(source.root, f"{folder}/trip_point_{trip}_temp")
            kind = text(source.root, f"{folder}/trip_point_{trip}_type")
            if celsius and kind:
                trips.append(f"{_cut(kind)} at {celsius / 1000:g} C")
        if name and trips:
            found.append((_cut(name), trips))
    return zones(found)


def zones(trips: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """A line for the thermal zones that have the same trip points."""
    alike: dict[str, list[str]] = {}
    for name, own in trips:
        alike.setdefault(", ".join(own), []).append(name)
    return [f"heat: {own} in {', '.join(_some(names))}" for own, names in alike.items()]


def _some(names: Sequence[str]) -> list[str]:
    more = [f"and {len(names) - ZONES_MOST} more"] if len(names) > ZONES_MOST else []
    return [*names[:ZONES_MOST], *more]


def _cut(text: str) -> str:
    return text.split("\n")[0][:40]
