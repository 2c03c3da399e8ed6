"""What an arm64 guest is told of its cores: capacities, clusters, refusals; no machine is started."""

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence

import pytest

from ampsched.vm import VmError
from ampsched.vm.archive import VERIFIED, cache_folder, selections
from ampsched.vm.exact.devicetree import (
    Cluster,
    addition,
    capacities,
    device_tree,
    stated_capacities,
    with_clusters,
)
from ampsched.vm.exact.frequencies import Frequencies
from ampsched.vm.exact.qemu import LIBRARIES, LOADER

UNEQUAL = [Cluster([0], 1000), Cluster([1, 2, 3], 400)]

# Of QEMU 10.0's tree for four cores, what is about cores.
SOURCE = """/dts-v1/;

/ {
\t#size-cells = <0x02>;
\t#address-cells = <0x02>;

\tcpus {
\t\t#size-cells = <0x00>;
\t\t#address-cells = <0x01>;

\t\tcpu-map {

\t\t\tsocket0 {

\t\t\t\tcluster0 {

\t\t\t\t\tcore0 {
\t\t\t\t\t\tcpu = <0x8002>;
\t\t\t\t\t};
\t\t\t\t};
\t\t\t};
\t\t};

\t\tcpu@0 {
\t\t\tphandle = <0x8002>;
\t\t\treg = <0x00>;
\t\t\tdevice_type = "cpu";
\t\t};

\t\tcpu@1 {
\t\t\tphandle = <0x8001>;
\t\t\treg = <0x01>;
\t\t\tdevice_type = "cpu";
\t\t};

\t\tcpu@2 {
\t\t\treg = <0x02>;
\t\t\tdevice_type = "cpu";
\t\t};

\t\tcpu@3 {
\t\t\treg = <0x03>;
\t\t\tdevice_type = "cpu";
\t\t};
\t};
};
"""


def python(script: str, *words: str) -> list[str]:
    return [sys.executable, "-c", f"import sys\n{script}", *words]


# Decompiles everything to SOURCE, and compiles by handing on what it is given.
COMPILER = python(
    "given = sys.stdin.buffer.read()\n"
    "assert given == b'a tree' or 'dts' in sys.argv[sys.argv.index('-I') + 1]\n"
    "sys.stdout.buffer.write(sys.argv[1].encode() if 'dtb' in sys.argv[sys.argv.index('-I') + 1] else given)",
    SOURCE,
)


def real_compiler() -> list[str]:
    """The device tree compiler of this computer, or of the cache."""
    found = shutil.which("dtc")
    if found:
        return [found]
    selection = selections()["qemu-aarch64"]
    qemu = cache_folder().resolve() / f"{selection.name}-{selection.fingerprint()}"
    if not (qemu / VERIFIED).exists():
        pytest.skip("SKIPPED: there is no device tree compiler here (apt install device-tree-compiler)")
    libraries = ":".join(str(qemu / library) for library in LIBRARIES)
    return [str(qemu / LOADER), "--library-path", libraries, str(qemu / "usr/bin/dtc")]


@pytest.mark.parametrize(
    ("speeds", "expected"),
    [
        ([1000, 400], [1024, 410]),
        ([400, 1000], [410, 1024]),
        ([3, 2, 1], [1024, 683, 341]),
        ([7, 7], [1024, 1024]),
        ([1e9, 1], [1024, 1]),
    ],
)
def test_capacities_are_in_proportion_to_the_fastest(speeds: Sequence[float], expected: list[int]) -> None:
    assert capacities([Cluster([0, 1], speed) for speed in speeds]) == expected


def test_cores_are_numbered_through_all_clusters() -> None:
    text = addition(UNEQUAL)
    assert re.findall(r"cpu@(\d) \{ capacity-dmips-mhz = <(\d+)>; \};", text) == [
        ("0", "1024"),
        ("1", "410"),
        ("2", "410"),
        ("3", "410"),
    ]
    assert re.findall(r"cluster\d|core\d|cpu@\d(?=\}>)", text) == [
        *("cluster0", "core0", "cpu@0"),
        *("cluster1", "core0", "cpu@1", "core1", "cpu@2", "core2", "cpu@3"),
    ]


def test_the_tree_of_qemu_is_kept_and_added_to() -> None:
    assert with_clusters(b"a tree", UNEQUAL, COMPILER).decode() == SOURCE + addition(UNEQUAL)


def test_qemu_is_asked_for_its_tree() -> None:
    qemu = python(
        "from pathlib import Path\n"
        "assert sys.argv[1:-1] == ['-smp', '4', '-machine']\n"
        "name, _, file = sys.argv[-1].partition('=')\n"
        "assert name == 'dumpdtb'\n"
        "Path(file).write_bytes(b'a tree')",
        *("-smp", "4"),
    )
    assert device_tree(qemu, UNEQUAL, COMPILER).decode() == SOURCE + addition(UNEQUAL)


def test_a_real_compiler_understands_it() -> None:
    compiler = real_compiler()
    compiled = _compile(compiler, SOURCE)
    source = _decompile(compiler, with_clusters(compiled, UNEQUAL, compiler))
    capacity_of = re.findall(r"cpu@(\d) \{[^}]*capacity-dmips-mhz = <(0x\w+)>", source)
    assert [(core, int(value, 16)) for core, value in capacity_of] == [
        ("0", 1024),
        ("1", 410),
        ("2", 410),
        ("3", 410),
    ]
    handle_of = dict(re.findall(r"cpu@(\d) \{[^}]*phandle = <(0x\w+)>", source))
    assert len(set(handle_of.values())) == 4
    assert handle_of["0"] == "0x8002", "QEMU's own are kept"
    members = re.findall(r"(cluster\d) \{|cpu = <(0x\w+)>", source)
    core_of = {handle: core for core, handle in handle_of.items()}
    assert [cluster or core_of[handle] for cluster, handle in members] == [
        *("cluster0", "0"),
        *("cluster1", "1", "2", "3"),
    ]


CHOICE = [
    Cluster([0], 1000, Frequencies(0x1_5FE0_0000, (2000, 500), (900_000, 100_000))),
    Cluster([1, 2, 3], 400, Frequencies(0x1_5FE0_1000, (1600,), (0,))),
]


def test_what_is_stated_times_the_highest_frequency_is_the_speed() -> None:
    stated = stated_capacities(CHOICE)
    assert stated[0] * 2000 / (stated[1] * 1600) == pytest.approx(1000 / 400, rel=1e-4)


def test_a_real_compiler_understands_controllers() -> None:
    compiler = real_compiler()
    source = _decompile(compiler, with_clusters(_compile(compiler, SOURCE), CHOICE, compiler))
    (handle,) = re.findall(r"performance-controller@15fe00000 \{[^}]*phandle = <(0x\w+)>", source)
    owners = re.findall(rf"cpu@(\d) \{{[^}}]*performance-domains = <{handle} (0x\w+)>", source)
    assert [(core, int(owner, 16)) for core, owner in owners] == [("0", 0), ("1", 1), ("2", 1), ("3", 1)]
    assert "reg = <0x01 0x5fe00000 0x00 0x1000 0x01 0x5fe01000 0x00 0x1000>;" in source
    assert re.search(r"frequencies@15fe00000 \{\s*reg = <0x01 0x5fe00000 0x00 0x200000>;\s*no-map;", source)


def _compile(compiler: Sequence[str], source: str) -> bytes:
    return _run([*compiler, "-q", "-I", "dts", "-O", "dtb"], source.encode())


def _decompile(compiler: Sequence[str], tree: bytes) -> str:
    return _run([*compiler, "-q", "-I", "dtb", "-O", "dts"], tree).decode()


def _run(command: Sequence[str], given: bytes) -> bytes:
    return subprocess.run(command, input=given, capture_output=True, check=True).stdout


def test_a_tree_with_other_cores_is_refused() -> None:
    with pytest.raises(VmError, match=r"has the cores \[0, 1, 2, 3\], not those of a machine with 5"):
        with_clusters(b"a tree", [Cluster([0], 2), Cluster([1, 2, 3, 4], 1)], COMPILER)


def test_what_fails_is_said_in_one_line() -> None:
    fails = python("sys.exit('no such machine')")
    with pytest.raises(VmError, match=r"^the device tree cannot be made: no such machine$"):
        device_tree(fails, UNEQUAL, COMPILER)
    with pytest.raises(VmError, match=r"^the device tree cannot be made: no such machine$"):
        with_clusters(b"a tree", UNEQUAL, fails)
    with pytest.raises(VmError, match=r"^the device tree cannot be made: .*/nowhere"):
        with_clusters(b"a tree", UNEQUAL, ["/nowhere/dtc"])
