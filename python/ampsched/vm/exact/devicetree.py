"""The device tree of an arm64 guest: how fast each core is, and which cores are of a cluster.

QEMU writes a tree for cores that are all equal. It is turned into source, to which `capacity-dmips-mhz` and a `cpu-map`
are added (Linux, Documentation/devicetree/bindings/cpu/cpu-capacity.txt and cpu-topology.txt), and compiled again, by
the device tree compiler of Debian's archive.
"""

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ampsched.files import temporary_folder
from ampsched.vm.error import VmError
from ampsched.vm.exact.frequencies import PAGE_BYTES, REGION_BYTES, Frequencies
from ampsched.vm.exact.siblings import Pairs

CAPACITY_OF_FASTEST = 1024
"""Linux's SCHED_CAPACITY_SCALE: what a guest shows in ``cpu_capacity`` is then what was written."""
BY_MHZ_OF_FASTEST = 1 << 16
TOOL_S = 60


@dataclass(frozen=True)
class Cluster:
    """Cores that lie together.

    Attributes:
        cores: The numbers of its cores.
        speed: Of each of them, in any unit that all clusters share, at the highest frequency.
        frequencies: Between which the guest chooses; without, it does not know its frequency.
        siblings: Those of its cores that are two threads of one.
    """

    cores: Sequence[int]
    speed: float
    frequencies: Frequencies | None = None
    siblings: Pairs = ()


def capacities(clusters: Sequence[Cluster]) -> list[int]:
    """The capacity of each cluster's cores: 1024 for the fastest, in proportion for others, at least 1."""
    fastest = max(cluster.speed for cluster in clusters)
    return [max(1, round(CAPACITY_OF_FASTEST * cluster.speed / fastest)) for cluster in clusters]


def stated_capacities(clusters: Sequence[Cluster]) -> list[int]:
    """What a tree says of each cluster's cores: capacity, by MHz if there are frequencies, by which Linux multiplies.

    Linux brings the fastest core to 1024 by itself; larger numbers are more exact.
    """
    if not all(cluster.frequencies for cluster in clusters):
        return capacities(clusters)
    by_mhz = [
        cluster.speed / cluster.frequencies.mhz[0] for cluster in clusters if cluster.frequencies is not None
    ]
    return [max(1, round(BY_MHZ_OF_FASTEST * each / max(by_mhz))) for each in by_mhz]


def addition(clusters: Sequence[Cluster]) -> str:
    """What is added to a tree, in the language of device trees."""
    lines = ["/ {", "cpus {", *_capacity_lines(clusters), "/delete-node/ cpu-map;", "cpu-map {", "socket0 {"]
    for index, cluster in enumerate(clusters):
        lines += [f"cluster{index} {{", *_core_lines(cluster), "};"]
    return "\n".join([*lines, "};", "};", "};", "};", *_controller_lines(clusters)]) + "\n"


def _core_lines(cluster: Cluster) -> Iterator[str]:
    other_of = {one: other for one, other, _ in cluster.siblings}
    firsts = [core for core in cluster.cores if core not in other_of.values()]
    for number, core in enumerate(firsts):
        threads = [core, other_of[core]] if core in other_of else []
        inner = [f"thread{n} {{ cpu = <&{{/cpus/cpu@{cpu}}}>; }};" for n, cpu in enumerate(threads)]
        yield f"core{number} {{ {' '.join(inner) or f'cpu = <&{{/cpus/cpu@{core}}}>;'} }};"


def _controller_lines(clusters: Sequence[Cluster]) -> Iterator[str]:
    """The controllers of frequencies, their memory, and whose they are."""
    each = [cluster.frequencies for cluster in clusters if cluster.frequencies]
    if not each:
        return
    place = f"{each[0].address:x}"
    yield "/ { reserved-memory { #address-cells = <2>; #size-cells = <2>; ranges;"
    yield f"frequencies@{place} {{ reg = <{_cells(each[0].address, REGION_BYTES)}>; no-map; }}; }};"
    pages = ", ".join(f"<{_cells(one.address, PAGE_BYTES)}>" for one in each)
    yield f'controllers: performance-controller@{place} {{ compatible = "mediatek,cpufreq-hw";'
    yield f"reg = {pages}; #performance-domain-cells = <1>; }}; cpus {{"
    for owner, cluster in enumerate(clusters):
        for core in cluster.cores:
            yield f"cpu@{core} {{ performance-domains = <&controllers {owner}>; }};"
    yield "}; };"


def _cells(*numbers: int) -> str:
    """Numbers of two cells each."""
    return " ".join(f"{part:#x}" for number in numbers for part in (number >> 32, number & 0xFFFFFFFF))


def _capacity_lines(clusters: Sequence[Cluster]) -> Iterator[str]:
    for cluster, capacity in zip(clusters, stated_capacities(clusters), strict=True):
        for core in cluster.cores:
            yield f"cpu@{core} {{ capacity-dmips-mhz = <{capacity}>; }};"


def device_tree(qemu: Sequence[str], clusters: Sequence[Cluster], compiler: Sequence[str]) -> bytes:
    """The tree that QEMU would give a guest, with the guest's clusters in it; for QEMU's option ``-dtb``.

    Args:
        qemu: The command that boots the guest; it is only asked for its tree.
        clusters: Of the guest.
        compiler: The command that starts the device tree compiler.

    Raises:
        VmError: QEMU or the compiler fails, or QEMU's tree has other cores.
    """
    with temporary_folder("ampsched-tree-") as folder:
        dumped = folder / "qemu.dtb"
        _call([*qemu, "-machine", f"dumpdtb={dumped}"])
        tree = dumped.read_bytes()
    return with_clusters(tree, clusters, compiler)


def with_clusters(tree: bytes, clusters: Sequence[Cluster], compiler: Sequence[str]) -> bytes:
    """A compiled tree with clusters and capacities of its cores, compiled.

    Raises:
        VmError: The compiler fails, or the tree has other cores.
    """
    source = _call([*compiler, "-q", "-I", "dtb", "-O", "dts"], tree).decode()
    cores = sorted(map(int, re.findall(r"^\t\tcpu@(\d+) \{$", source, re.MULTILINE)))
    wanted = sum(len(cluster.cores) for cluster in clusters)
    if cores != list(range(wanted)):
        raise VmError(f"the device tree has the cores {cores}, not those of a machine with {wanted}")
    return _call([*compiler, "-q", "-I", "dts", "-O", "dtb"], (source + addition(clusters)).encode())


def _call(command: Sequence[str], given: bytes = b"") -> bytes:
    """What a command writes when it is given something."""
    try:
        done = subprocess.run(  # noqa: S603
            command, input=given, capture_output=True, check=False, timeout=TOOL_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise VmError(f"the device tree cannot be made: {error}") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise VmError(f"the device tree cannot be made: {said[-1] if said else command[0]}")
    return done.stdout
