"""`ampsched machine`: machine files from what computers say of themselves."""

import gzip
import io
import json
import os
import random
import struct
import subprocess
import tarfile
from pathlib import Path

import pytest
from computers import CPU, collected, laptop, meteor_lake, phone, write
from conftest import Ampsched

import ampsched
from ampsched._core import InputError
from ampsched.catalog import Catalog
from ampsched.machine_file import saved
from ampsched.machine_file.core_types import IN_ORDER, LIKE, OUT_OF_ORDER, SAME
from ampsched.machine_file.making import Made, make
from ampsched.machine_file.sources import opened

Clusters = list[tuple[str, str, int, int, int]]


def made(path: Path) -> Made:
    with opened(str(path)) as source:
        return make(source, "made")


def of(path: Path, tmp_path: Path) -> ampsched.Machine:
    file = tmp_path / "made.toml"
    file.write_text(made(path).text)
    return Catalog.shipped().machine(file)


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_phone_has_its_capacities_powers_and_the_nearest_core_types(tmp_path: Path) -> None:
    path = put(tmp_path / "phone.txt", collected(phone()))
    machine = of(path, tmp_path)
    assert machine.clusters == [("little", "cortex-a53", 4, 1766, 0), ("big", "cortex-a75", 4, 2803, 1)]
    assert machine.energy_model(0)[-1] == (1766, 385.0, 154.0)
    text = made(path).text
    assert "core is a kryo3xx-silver; of the shipped ones its capacity is nearest" in text
    assert "core is a kryo3xx-gold, this is the next shipped one in its line" in text
    assert "# * heat: passive at 90 C in cpu0-thermal" in text
    assert 'last_level_cache = "machine" # stated by the kernel: one L3 for CPUs 0-7' in text
    assert all(len(line) <= 120 for line in text.splitlines())
    outcome = ampsched.simulate(machine, "sync-2", "linux", energy=True)
    assert outcome.energy_j is not None


def test_a_hybrid_laptop_has_pairs_of_threads_and_groups_of_e_cores(tmp_path: Path) -> None:
    path = put(tmp_path / "laptop.txt", collected(laptop()))
    assert of(path, tmp_path).clusters == [
        ("big", "golden-cove", 8, 5000, 1),
        ("little0", "gracemont", 4, 3700, 0),
        ("little1", "gracemont", 4, 3700, 0),
    ]
    text = made(path).text
    assert "cores = 8 # CPUs 0-7, in pairs of hardware threads" in text
    assert 'sees = "priorities" # ITMT is on' in text
    assert text.count("threads_per_core = 2") == 1
    assert text.count("shares_l2 = true") == 2
    assert "Not used yet:\n# * power limit package-0 long_term: 28 W over 27.9839 s (powercap)" in text
    assert "# Not used yet: base frequency 2200 MHz" in text
    assert "clocks of big, up to 4800 MHz on some cores: 5000 MHz stand for all" in text


def test_low_power_e_cores_are_a_cluster_with_their_own_clock(tmp_path: Path) -> None:
    path = put(tmp_path / "ultra.txt", collected(meteor_lake()))
    machine = of(path, tmp_path)
    assert machine.clusters[-1] == ("little2", "gracemont", 2, 2500, 0)
    assert "one L3 for CPUs 0-19; the other cores have none at that level" in made(path).text


def test_cores_have_the_numbers_of_the_cpus(tmp_path: Path) -> None:
    files = {f"{CPU}/online": "0-3"}
    for cpu in range(4):  # siblings 0 and 2, 1 and 3, as on x86-64 without E-cores
        files[f"{CPU}/cpu{cpu}/topology/thread_siblings_list"] = f"{cpu % 2},{cpu % 2 + 2}"
    path = put(tmp_path / "smt.txt", collected(files))
    text = made(path).text
    assert "cores = [0, 2, 1, 3] # CPUs 0-3, in pairs of hardware threads" in text
    assert of(path, tmp_path).cores == 4
    files[f"{CPU}/online"] = "0-1,3"
    files[f"{CPU}/offline"] = "2"
    text = made(put(path, collected(files))).text
    assert "Cores are numbered without a gap; each cluster says which CPUs they are." in text
    assert "CPUs 2: left out, they are off-line" in text
    assert "cores = 2 # CPUs 1,3, in pairs" in text


def test_trees_archives_and_the_script_say_the_same(tmp_path: Path) -> None:
    root = write(tmp_path / "saved", phone())
    texts = {made(each).text.replace(each.name, "X") for each in (root,)}
    archive = tmp_path / "saved.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        file.add(root, "backup/phone")
    outside = root / "sys"
    inside = root / "sys/devices/system/cpu"
    for each in (archive, outside):
        texts.add(made(each).text.replace(each.name, "X"))
    script = saved.collector().replace("/sys/", f"{root}/sys/").replace("/proc/", f"{root}/proc/")
    printed = subprocess.run(["sh"], input=script, capture_output=True, text=True, check=True).stdout
    text = put(tmp_path / "printed", printed.replace(f"{root}/", "/"))
    texts.add(made(text).text.replace("printed", "X"))
    assert len(texts) == 1
    # Below /sys/devices/system/cpu there is no energy model.
    assert "Power of a busy core" not in made(inside).text


def test_links_and_paddings_of_archives(tmp_path: Path) -> None:
    path = tmp_path / "tree.tar"
    with tarfile.open(path, "w") as archive:

        def add(name: str, text: bytes) -> None:
            member = tarfile.TarInfo(name)
            member.size = 4096  # as GNU tar pads files of /sys
            archive.addfile(member, io.BytesIO(text.ljust(4096, b"\0")))

        add("sys/devices/system/cpu/online", b"0\n")
        add("sys/devices/system/cpu/cpufreq/policy0/affected_cpus", b"0\n")
        add("sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq", b"1500000\n")
        add("../../etc/outside", b"x")
        for name, target in (
            ("cpu0/cpufreq", "../cpufreq/policy0"),
            ("cpu1/cpufreq", "../../../../../../etc"),
        ):
            link = tarfile.TarInfo(f"sys/devices/system/cpu/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, target
            archive.addfile(link)
    assert "opps = [{ mhz = 1500 }]" in made(path).text
    assert not (tmp_path.parent / "etc").exists()


def test_an_energy_model_alone(tmp_path: Path) -> None:
    prefix = "sys/kernel/debug/"
    files = {name.removeprefix(prefix): text for name, text in phone().items() if name.startswith(prefix)}
    path = write(tmp_path / "debug", files)
    assert [cluster[2:4] for cluster in of(path, tmp_path).clusters] == [(4, 1766), (4, 2803)]
    assert "an energy model alone does not say it" in made(path / "energy_model").text


SUMMARY = """Architecture:            aarch64
CPU(s):                  4
On-line CPU(s) list:     0-3
Vendor ID:               ARM
Model name:              Cortex-A76
Thread(s) per core:      1
Core(s) per cluster:     4
Socket(s):               -
CPU max MHz:             2400.0000
L2:                      2 MiB (4 instances)
L3:                      2 MiB (1 instance)
"""


def test_lscpu(tmp_path: Path) -> None:
    text = put(tmp_path / "lscpu.txt", SUMMARY)
    rows = [line.partition(":") for line in SUMMARY.splitlines()]
    fields = {"lscpu": [{"field": f"{key}:", "data": value.strip()} for key, _, value in rows]}
    as_json = put(tmp_path / "lscpu.json", json.dumps(fields))
    for path in (text, as_json):
        assert of(path, tmp_path).clusters == [("cores", "cortex-a76", 4, 2400, 0)]
        assert "l2_kib = 512" in made(path).text
    cpus = [
        {"cpu": cpu, "core": cpu // 2 if cpu < 4 else cpu, "socket": 0, "l1d:l1i:l2:l3": f"{cpu}:{cpu}:{cpu // 4}:0",
         "maxmhz": "4700.0000" if cpu < 4 else "3500.0000"} for cpu in range(8)
    ]  # fmt: skip
    table = put(tmp_path / "table.json", json.dumps({"cpus": cpus}))
    assert of(table, tmp_path).clusters == [
        ("big", "golden-cove", 4, 4700, 1),
        ("little", "gracemont", 4, 3500, 0),
    ]
    assert "threads_per_core = 2" in made(table).text
    # lscpu writes a number that it does not know as a dash, which is no JSON.
    unknown = table.read_text().replace('"4700.0000"', "-").replace('"3500.0000"', "-")
    assert "frequencies: the column MAXMHZ is missing or empty" in made(put(table, unknown)).text


HWLOC = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x0000000f">
    <info name="CPUVendor" value="GenuineIntel"/>
    <object type="L3Cache" cpuset="0x0000000f" cache_size="12582912" depth="3">
      <object type="L2Cache" cpuset="0x00000003" cache_size="1310720" depth="2">
        <object type="Core" os_index="0" cpuset="0x00000003">
          <object type="PU" os_index="0" cpuset="0x00000001"/><object type="PU" os_index="1" cpuset="0x00000002"/>
        </object>
      </object>
      <object type="L2Cache" cpuset="0x0000000c" cache_size="2097152" depth="2">
        <object type="Core" cpuset="0x00000004"><object type="PU" os_index="2" cpuset="0x00000004"/></object>
        <object type="Core" cpuset="0x00000008"><object type="PU" os_index="3" cpuset="0x00000008"/></object>
      </object>
    </object>
  </object>
  <cpukind cpuset="0x0000000c">
    <info name="CoreType" value="IntelAtom"/><info name="FrequencyMaxMHz" value="3300"/>
  </cpukind>
  <cpukind cpuset="0x00000003">
    <info name="CoreType" value="IntelCore"/><info name="FrequencyMaxMHz" value="4400"/>
  </cpukind>
</topology>
"""


def test_hwloc(tmp_path: Path) -> None:
    path = put(tmp_path / "hw.xml", HWLOC)
    assert of(path, tmp_path).clusters == [
        ("big", "golden-cove", 2, 4400, 1),
        ("little", "gracemont", 2, 3300, 0),
    ]
    assert "l2_kib = 1280" in made(path).text
    bomb = HWLOC.replace('"hwloc2.dtd">', '"hwloc2.dtd" [<!ENTITY a "b">]>')
    with pytest.raises(InputError, match=r"^hw\.xml: defines entities of XML, which hwloc never does$"):
        made(put(path, bomb))


PLATFORM = """
platform-info:
    conf:
        abi: arm64
        cpu-capacities: {orig: {0: 446, 1: 1024, 2: 446}}
        freq-domains: [[0, 2], [1]]
        freqs: {0: [450000, 850000], 1: [450000, 1100000]}
        kernel: {version: !call:devlib.target.KernelVersion {version_string: "4.19"}}
        nrg-model: !!python/object:lisa.energy_model.EnergyModel
            cpu_nodes:
            - &id0 !!python/object:lisa.energy_model.EnergyModelNode
                cpu: 0
                active_states: !!omap
                - 450000: !!python/object/new:lisa.energy_model.ActiveState [236.1, 42]
                - 850000: !!python/object/new:lisa.energy_model.ActiveState [446.0, 119]
                parent: *id0
"""


def test_plat_info(tmp_path: Path) -> None:
    path = put(tmp_path / "plat_info.yml", PLATFORM)
    machine = of(path, tmp_path)
    assert [cluster[2:] for cluster in machine.clusters] == [(2, 850, 0), (1, 1100, 1)]
    text = made(path).text
    assert "cores = [0, 2] # CPUs 0,2" in text
    dangerous = PLATFORM + "        os: !!python/object/apply:os.mkdir [made-by-yaml]\n"
    made(put(path, dangerous))
    assert not Path("made-by-yaml").exists()


Tree = dict[str, "Tree | bytes"]


def blob(root: Tree) -> bytes:
    """A device tree in the flat format, version 17 (Devicetree Specification 0.4, chapter 5)."""
    names = bytearray()

    def node(name: str, tree: Tree) -> bytes:
        title = name.encode() + b"\0"
        out = struct.pack(">I", 1) + title + b"\0" * (-len(title) % 4)
        for key, value in tree.items():
            if isinstance(value, bytes):
                out += struct.pack(">III", 3, len(value), len(names)) + value + b"\0" * (-len(value) % 4)
                names.extend(key.encode() + b"\0")
        for key, value in tree.items():
            if not isinstance(value, bytes):
                out += node(key, value)
        return out + struct.pack(">I", 2)

    structure = node("", root) + struct.pack(">I", 9)
    total = 56 + len(structure) + len(names)
    header = (0xD00DFEED, total, 56, 56 + len(structure), 40, 17, 16, 0, len(names), len(structure))
    return struct.pack(">10I", *header) + bytes(16) + structure + names


def cells(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}I", *numbers)


def board() -> Tree:
    """Two A53 and one A72 with tables of both versions."""
    points: Tree = {"compatible": b"operating-points-v2\0", "opp-shared": b"", "phandle": cells(1)}
    for mhz, uv in ((600, 800_000), (1200, 1_000_000)):
        points[f"opp-{mhz}"] = {"opp-hz": struct.pack(">Q", mhz * 10**6), "opp-microvolt": cells(uv)}
    points["opp-1400"] = {"opp-hz": struct.pack(">Q", 14 * 10**8), "status": b"disabled\0"}
    little: Tree = {
        "compatible": b"arm,cortex-a53\0",
        "capacity-dmips-mhz": cells(500),
        "next-level-cache": cells(9),
    }
    cpus: Tree = {
        "cpu@0": {**little, "operating-points-v2": cells(1), "dynamic-power-coefficient": cells(100)},
        "cpu@1": {**little, "operating-points-v2": cells(1)},
        "cpu@100": {
            "compatible": b"arm,cortex-a72\0",
            "capacity-dmips-mhz": cells(1000),
            "operating-points": cells(900_000, 850_000, 1_800_000, 1_100_000),
            "dynamic-power-coefficient": cells(400),
        },
        "cpu@101": {"compatible": b"arm,cortex-a72\0", "status": b"fail\0"},
        "l2-cache": {"cache-level": cells(2), "cache-size": cells(1 << 19), "phandle": cells(9)},
    }
    zone: Tree = {"trips": {"hot": {"temperature": cells(80_000), "type": b"passive\0"}}}
    return {"model": b"A board\0", "cpus": cpus, "opp-table": points, "thermal-zones": {"soc": zone}}


def test_device_trees(tmp_path: Path) -> None:
    path = tmp_path / "board.dtb"
    path.write_bytes(blob(board()))
    machine = of(path, tmp_path)
    assert machine.clusters == [("little", "cortex-a53", 2, 1200, 0), ("big", "cortex-a72", 1, 1800, 1)]
    # 500 x 1200 / (1000 x 1800) of 1024; 100 uW/MHz/V2 x 1200 MHz x 1 V2.
    assert machine.energy_model(0) == [(600, 170.5, 38.4), (1200, 341.0, 120.0)]
    assert machine.energy_model(1)[-1][2] == pytest.approx(400 * 1800 * 1.1**2 / 1000, abs=0.01)
    text = made(path).text
    assert "l2_kib = 512" in text
    assert "heat: passive at 80 C in soc" in text
    assert "power = { dynamic_uw_per_mhz_v2 = 100 }" in text


def test_this_computer_can_be_named(tmp_path: Path) -> None:
    machine = Catalog.shipped().machine("this")
    assert machine.cores == os.cpu_count() or machine.cores > 0
    assert "by ampsched machine from this computer; not known: " in machine.description
    result = ampsched.compare("this:" + f"{machine.clusters[0][0]}=1", "sync-2", ["cfs"])
    assert result.notes[-1].startswith("this:")
    assert "this computer as it is now" not in ampsched.compare("2B2S", "sync-2", ["cfs"]).notes[-1]


def damaged(content: bytes, seed: int) -> bytes:
    """The content with a small change."""
    chance = random.Random(seed)
    at, kind = chance.randrange(len(content)), seed % 5
    some = bytes(chance.randrange(256) for _ in range(chance.choice((1, 4, 40))))
    match kind:
        case 0:
            return content[:at]
        case 1:
            return content[:at] + some + content[at + len(some) :]
        case 2:
            return content[:at] + some + content[at:]
        case 3:
            return content[:at] + b"9" * 30 + content[at + 1 :]
        case _:
            return content[:at] + content[at + chance.randrange(400) :]


def refusal(path: Path, tmp_path: Path) -> str:
    """Why a source is refused; empty if it is not, and what comes out can be loaded."""
    try:
        of(path, tmp_path)
    except InputError as error:
        return str(error)
    return ""


def sources() -> dict[str, bytes]:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, text in phone().items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return {
        "phone.txt": collected(phone()).encode(),
        "laptop.txt": collected(laptop()).encode(),
        "phone.tar.gz": gzip.compress(packed.getvalue()),
        "phone.tar": packed.getvalue(),
        "lscpu.txt": SUMMARY.encode(),
        "hw.xml": HWLOC.encode(),
        "plat_info.yml": PLATFORM.encode(),
        "board.dtb": blob(board()),
    }


@pytest.mark.parametrize("name", sources())
def test_damaged_sources_are_read_or_refused_in_a_line(name: str, tmp_path: Path) -> None:
    path, content = tmp_path / name, sources()[name]
    for seed in range(20):
        path.write_bytes(damaged(content, seed))
        error = refusal(path, tmp_path)
        assert "\n" not in error, seed
        assert "/tmp/" not in error.replace(str(tmp_path), ""), seed
        assert len(error) < 600, seed


@pytest.mark.parametrize("content", [b"", b"much", b"\xff\xfe\0", b"9" * 70_000, b"-1", b"0-9999999"])
def test_each_damaged_file_of_a_tree_is_left_out_by_name_or_refused(content: bytes, tmp_path: Path) -> None:
    root = write(tmp_path / "root", phone())
    for name in [name for name in phone() if "/cpu0/" in name or "/cpu" not in name or "energy" in name]:
        whole = (root / name).read_bytes()
        (root / name).write_bytes(content)
        error = refusal(root, tmp_path)
        assert not error or error.startswith("root: "), (name, error)
        (root / name).write_bytes(whole)
    (root / CPU / "online").unlink()
    (root / CPU / "online").mkdir()
    assert "an energy model alone does not say it" in made(root).text


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"hello", r"x: is none of what is understood: a saved tree of /sys \(folder, tar\), what"),
        (
            b"ampsched computer 1\n",
            r"x: has none of the files that say what CPUs there are \(see --collector\)$",
        ),
        (b"\x1f\x8bjunk", r"x: is no whole archive"),
        (b"\xd0\x0d\xfe\xed", r"x: is no whole device tree"),
        (b"<topology>", r"x: is no XML: "),
        (b"<topology/>", r'x: has no processing units \(objects of type "PU"\)$'),
        (b'{"lscpu": []}', r"x: lscpu's output does not say which CPUs are on-line"),
        (b'{"cpus": [{}]}', r'x: lscpu\'s table has no column "cpu" with numbers of CPUs$'),
        (b"platform-info: {}", r"x: names no CPUs \(cpu-capacities, freq-domains, cpus-count\)$"),
        (b"platform-info: [", r"x: is no YAML that can be read: "),
    ],
)
def test_what_cannot_be_read_is_refused(content: bytes, expected: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(InputError, match=expected):
        made(tmp_path / "x")


def test_a_folder_without_any_of_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"has no sys/devices/system/cpu/online and no energy_model: is it a saved"
    ):
        made(tmp_path)


def test_the_command(ampsched_here: Ampsched, tmp_path: Path) -> None:
    printed = ampsched_here("machine")
    assert printed.code == 0, printed.err
    assert printed.out.startswith('name = "this"\n')
    source, out = put(tmp_path / "phone.txt", collected(phone())), tmp_path / "my.toml"
    finished = ampsched_here("machine", str(source), "-o", str(out))
    assert finished.code == 0, finished.err
    assert "little: CPUs 0-3, cortex-a53, up to 1766 MHz, capacity 385, power\n" in finished.out
    assert "not known: costs of switching, migration and waking: estimates (affects programs" in finished.out
    assert finished.out.endswith(f"written: {out}\n")
    used = ampsched_here("simulate", "-m", str(out), "-w", "sync-2", "--energy")
    assert used.code == 0, used.err
    assert ampsched_here("machine", "--collector").out == saved.collector()
    here = ampsched_here("simulate", "-m", "this", "-w", "sync-2")
    assert "note: this: the computer that this runs on, as it is now: " in here.out
    assert ampsched_here("describe", "this").out.startswith("machine this: ")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("none.txt",), "none.txt: cannot be read: No such file or directory"),
        (("this", "-o", "x.json"), "--out x.json does not end with .toml"),
        (("this", "-o", "/proc/none.toml"), "/proc/"),
    ],
)
def test_wrong_commands(ampsched_here: Ampsched, arguments: tuple[str, ...], expected: str) -> None:
    finished = ampsched_here("machine", *arguments)
    assert finished.code == 2
    assert expected in finished.err
    assert finished.err.count("\n") == 1


def test_stand_ins_are_shipped_and_only_stand_in_for_what_is_not() -> None:
    shipped = {entry.name for entry in Catalog.shipped().entries("core_type")}
    assert {*LIKE.values(), *IN_ORDER, *OUT_OF_ORDER, *SAME.values()} <= shipped
    assert not LIKE.keys() & shipped
