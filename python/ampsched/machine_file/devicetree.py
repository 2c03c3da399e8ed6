"""Device trees: cores, capacities, operating points, power, caches.

Linux, Documentation/devicetree/bindings: arm/cpus.yaml, opp, cpu.
"""

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ampsched._core import InputError
from ampsched.machine_file.facts import ALL, Lack
from ampsched.machine_file.flat_tree import Node, parse
from ampsched.machine_file.limits import zones
from ampsched.machine_file.tree import CPU, Source, Tree

CPUS_MAX = 4096
HZ_MAX = 10**10
VOLT_MAX = 2.0
LEVELS_MAX = 4
"""Of caches; no processor has more."""
COEFFICIENT_MAX = 100_000
"""The limit of machine files."""


@dataclass
class _Cpu:
    number: int
    node: Node
    volt_by_khz: dict[int, float | None] = field(default_factory=dict)
    clock: object = None

    @property
    def dmips(self) -> int:
        return (self.node.cells("capacity-dmips-mhz") or [0])[0]

    @property
    def top_khz(self) -> int:
        return max(self.volt_by_khz, default=0)


def from_bytes(content: bytes, folder: Path, title: str) -> Source:
    """A source from a compiled tree.

    Raises:
        InputError: It is damaged, or has no CPUs.
    """
    root = parse(content, title)
    handles = {handle: node for node in root.walk() for handle in node.cells("phandle")[:1]}
    nodes = _cpu_nodes(root)
    if not nodes:
        raise InputError(f"{title}: has no CPUs (/cpus/cpu@...)")
    cpus = [_cpu(number, node, handles) for number, node in enumerate(nodes[:CPUS_MAX])]
    model = root.text("model")[:60]
    source = Source(f"{title} ({model})" if model else title, "the device tree", folder, is_arm=True)
    tree = Tree(folder)
    tree.online([cpu.number for cpu in cpus])
    source.cores = {cpu.number: name for cpu in cpus if (name := _core(cpu.node))}
    _clocks(tree, cpus, source)
    _capacities(tree, cpus, source)
    _caches(tree, cpus, handles)
    _siblings(tree, root, cpus)
    _power(tree, cpus, source)
    source.remarks += [*_idle_states(cpus, handles), *_zones(root)]
    source.remarks.append("CPUs are numbered as the tree lists them; Linux gives 0 to the one that boots")
    return source


def _cpu_nodes(root: Node) -> list[Node]:
    cpus = root.child("cpus")
    found = cpus.children if cpus else []
    return [
        node
        for node in found
        if re.match(r"cpu(@|\d*$)", node.name) and node.is_on and "compatible" in node.properties
    ]


def _core(node: Node) -> str:
    """Its name; "qcom,kryo" alone stands for all of Qualcomm's cores."""
    if node.text("compatible") == "qcom,kryo":
        return ""
    return re.sub(r"^(arm|qcom|apple|nvidia|samsung|sifive|thead),", "", node.text("compatible"))[:40]


def _cpu(number: int, node: Node, handles: dict[int, Node]) -> _Cpu:
    cpu = _Cpu(number, node)
    table = handles.get((node.cells("operating-points-v2") or [0])[0])
    if table:
        cpu.volt_by_khz = _points(table)
    elif pairs := node.cells("operating-points"):
        cpu.volt_by_khz = {khz: _volt(uv) for khz, uv in zip(pairs[::2], pairs[1::2], strict=False) if khz}
    elif hertz := node.cells("clock-frequency"):
        whole = hertz[0] if len(hertz) == 1 else hertz[0] << 32 | hertz[1]
        cpu.volt_by_khz = {whole // 1000: None} if 10**6 <= whole <= HZ_MAX else {}
    domain = node.properties.get("qcom,freq-domain") or node.properties.get("performance-domains")
    is_shared = table is not None and "opp-shared" in table.properties
    cpu.clock = domain or (id(table) if is_shared else node.properties.get("clocks")) or number
    return cpu


def _points(table: Node) -> dict[int, float | None]:
    """Volts by kHz of a table of version 2, those of all speed bins; points that are off are left out."""
    found: dict[int, float | None] = {}
    for point in table.children:
        hertz = point.properties.get("opp-hz", b"")[:8]
        if point.is_on and len(hertz) == 8:
            (whole,) = struct.unpack(">Q", hertz)
            if 10**6 <= whole <= HZ_MAX:
                found[whole // 1000] = _volt((point.cells("opp-microvolt") or [0])[0])
    return found


def _volt(microvolt: int) -> float | None:
    return microvolt / 1e6 if 0 < microvolt <= VOLT_MAX * 1e6 else None


def _by_clock(cpus: Sequence[_Cpu]) -> list[list[_Cpu]]:
    shared: dict[object, list[_Cpu]] = {}
    for cpu in cpus:
        shared.setdefault((cpu.clock, tuple(cpu.volt_by_khz)), []).append(cpu)
    return list(shared.values())


def _clocks(tree: Tree, cpus: Sequence[_Cpu], source: Source) -> None:
    for number, own in enumerate(_by_clock(cpus)):
        khz = _whole_mhz(own[0].volt_by_khz)
        if khz:
            tree.clock([cpu.number for cpu in own], list(khz), number)
        if khz and all(khz.values()):
            volts = {each // 1000: volt for each, volt in khz.items() if volt}
            source.volts |= {cpu.number: volts for cpu in own}
    if not all(cpu.volt_by_khz for cpu in cpus):
        source.left_out.append(Lack("frequencies", "not all are in the tree (firmware has them)", ALL))


def _whole_mhz(volt_by_khz: dict[int, float | None]) -> dict[int, float | None]:
    """One frequency for each MHz: machine files count them."""
    return dict(sorted({khz // 1000: (khz, volt) for khz, volt in sorted(volt_by_khz.items())}.values()))


def _capacities(tree: Tree, cpus: Sequence[_Cpu], source: Source) -> None:
    """As Linux computes them (drivers/base/arch_topology.c): per MHz, times the highest frequency."""
    if len({(_core(cpu.node), cpu.top_khz, cpu.dmips) for cpu in cpus}) == 1:
        return  # all are alike
    if not all(cpu.dmips for cpu in cpus):
        source.left_out.append(Lack("capacities", "the tree has no capacity-dmips-mhz for all cores", ALL))
        return
    if not all(cpu.top_khz for cpu in cpus):
        if len({cpu.dmips for cpu in cpus}) == 1:
            return
        source.left_out.append(
            Lack("capacities", "capacity-dmips-mhz for equal frequencies, as none are known", ALL)
        )
    speeds = [cpu.dmips * (cpu.top_khz if all(each.top_khz for each in cpus) else 1) for cpu in cpus]
    for cpu, speed in zip(cpus, speeds, strict=True):
        tree.put(f"{CPU}/cpu{cpu.number}/cpu_capacity", max(1, round(1024 * speed / max(speeds))))


def _caches(tree: Tree, cpus: Sequence[_Cpu], handles: dict[int, Node]) -> None:
    chains: dict[int, list[int]] = {}
    found: list[tuple[_Cpu, int, int, Node]] = []
    for cpu in cpus:
        level, node = 1, handles.get((_next_cache(cpu.node) or [0])[0])
        while node is not None and level < LEVELS_MAX:
            level = max(level + 1, (node.cells("cache-level") or [0])[0])
            chains.setdefault(id(node), []).append(cpu.number)
            found.append((cpu, level, (node.cells("cache-size") or [0])[0] // 1024, node))
            node = handles.get((_next_cache(node) or [0])[0])
    for cpu, level, kib, node in found:
        if level <= LEVELS_MAX:
            tree.cache(cpu.number, level, "Unified", kib, chains[id(node)])


def _next_cache(node: Node) -> list[int]:
    return node.cells("next-level-cache") or node.cells("l2-cache")


def _siblings(tree: Tree, root: Node, cpus: Sequence[_Cpu]) -> None:
    """Hardware threads of a core: several in a node of cpu-map."""
    numbers = {handle: cpu.number for cpu in cpus for handle in cpu.node.cells("phandle")[:1]}
    places = root.child("cpus")
    for core in (places.child("cpu-map") or Node("")).walk() if places else []:
        threads = [node.cells("cpu")[:1] for node in core.children if re.fullmatch(r"thread\d+", node.name)]
        own = [numbers[handle[0]] for handle in threads if handle and handle[0] in numbers]
        for cpu in own:
            tree.put(f"{CPU}/cpu{cpu}/topology/core_cpus_list", ",".join(map(str, own)))


def _power(tree: Tree, cpus: Sequence[_Cpu], source: Source) -> None:
    """As Linux computes it (drivers/opp/of.c): coefficient, frequency, voltage squared."""
    for own in _by_clock(cpus):
        told = [(cpu.node.cells("dynamic-power-coefficient") or [0])[0] for cpu in own]
        # Old trees state it of the first CPU of a cluster only.
        coefficient = next((each for each in told if 0 < each <= COEFFICIENT_MAX), 0)
        volts = source.volts.get(own[0].number)
        if coefficient:
            source.coefficients |= {cpu.number: coefficient for cpu in own}
        if volts and coefficient:
            uw = {
                khz: round(coefficient * khz / 1000 * volts[khz // 1000] ** 2)
                for khz in _whole_mhz(own[0].volt_by_khz)
            }
            tree.energy([cpu.number for cpu in own], uw)


def _idle_states(cpus: Sequence[_Cpu], handles: dict[int, Node]) -> list[str]:
    found = {}
    for cpu in cpus:
        for handle in cpu.node.cells("cpu-idle-states"):
            node = handles.get(handle)
            times = (
                [node.cells(f"{key}-us") for key in ("entry-latency", "exit-latency", "min-residency")]
                if node
                else []
            )
            if node and all(times):
                entry, leave, least = (each[0] for each in times)
                name = node.text("idle-state-name") or node.name
                found[handle] = (
                    f"idle state {name[:40]}: entry {entry} us, exit {leave} us, residency {least} us"
                )
    return list(found.values())


def _zones(root: Node) -> list[str]:
    top = root.child("thermal-zones")
    found = []
    for zone in top.children if top else []:
        trips = zone.child("trips")
        told = [
            f"{trip.text('type')[:20]} at {cells[0] / 1000:g} C"
            for trip in (trips.children if trips else [])[:8]
            if (cells := trip.cells("temperature")) and cells[0] < 1 << 31
        ]
        if told:
            found.append((zone.name[:40], told))
    return zones(found)
