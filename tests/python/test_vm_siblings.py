"""Guests whose cores have two threads, and kernels that are told which cores to use first: what QEMU is given."""

import re
import struct
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ampsched import Catalog
from ampsched.vm import VmError
from ampsched.vm.archive import Archive
from ampsched.vm.exact import Done, Exact, Work, record, record_calls
from ampsched.vm.exact.devicetree import addition
from ampsched.vm.exact.priorities import table
from ampsched.vm.exact.qemu import Boot, architecture
from ampsched.vm.exact.siblings import places, topology
from ampsched.vm.kernel import Kernel

HYBRID = Catalog.shipped().machine("i7-1360p")
"""Four cores of two threads, 0 to 7, then eight of one."""
SMALL = HYBRID.part(["p=3", "e0=1", "e1=0"])
"""One core of two threads, one whose second thread was left out, one of one thread."""


def test_a_machine_names_its_siblings() -> None:
    speed = HYBRID.siblings[0][2]
    assert 0.5 < speed < 1
    assert HYBRID.siblings == [(cpu, cpu + 1, speed) for cpu in (0, 2, 4, 6)]
    assert SMALL.siblings == [(0, 1, speed)]
    assert Catalog.shipped().machine("2B2S").siblings == []


def test_every_core_has_room_for_two_threads() -> None:
    pairs = [(1, 2, 0.6), (3, 4, 0.6)]
    assert places(6, pairs) == [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0)]
    assert topology(4, [], "max") == ("4", [])
    smp, words = topology(4, [(0, 1, 0.6)], "max")
    assert smp == "1,sockets=1,cores=3,threads=2,maxcpus=6"
    assert [word for word in words if word != "-device"] == [
        f"max-x86_64-cpu,socket-id=0,core-id={core},thread-id={thread}"
        for core, thread in ((0, 1), (1, 0), (2, 0))
    ]


def cpu_lines(guest: Exact) -> list[str]:
    return [line for line in guest.clock_settings().splitlines() if line.startswith(("cpu", "siblings"))]


def test_the_clock_is_told_who_shares_a_core() -> None:
    siblings = f"siblings 0 1 {round(SMALL.siblings[0][2] * 1e6)}"
    assert cpu_lines(Exact(SMALL)) == ["cpu 0 0", "cpu 0 1", "cpu 0 2", "cpu 1 4", siblings]
    alone = ["cpu 0", "cpu 0", "cpu 0", "cpu 1"]
    assert cpu_lines(Exact(SMALL, architecture="aarch64")) == [*alone, siblings]
    assert cpu_lines(Exact(SMALL, shares_cores=False)) == alone


def test_a_device_tree_tells_threads() -> None:
    text = addition(Exact(SMALL, architecture="aarch64").clusters())
    assert re.findall(r"cluster\d|core\d|thread\d|cpu@\d(?=\}>)", text) == [
        *("cluster0", "core0", "thread0", "cpu@0", "thread1", "cpu@1", "core1", "cpu@2"),
        *("cluster1", "core0", "cpu@3"),
    ]


class Fetched(Archive):
    """An archive from which nothing needs to be fetched."""

    def folder(self, name: str) -> Path:
        return self.cache / name


def command(guest: Exact, folder: Path) -> str:
    kernel = Kernel(folder / "vmlinuz", folder / "config", "6.18")
    boot = Boot(
        Fetched(folder),
        architecture(guest.architecture),
        kernel,
        guest.clusters(),
        512,
        50,
        Path("/lib/clock.so"),
        "max,+x",
        guest.priorities,
    )
    return " ".join(boot.command(folder))


def test_qemu_gets_threads_only_for_machines_that_have_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = command(Exact(HYBRID), tmp_path)
    assert "-cpu max,+x,-monitor,+topoext " in text
    assert " possible_cpus=16" in text
    assert text.count("max-x86_64-cpu,socket-id=0") == 15
    assert "acpitable" not in text
    text = command(Exact(HYBRID, shares_cores=False), tmp_path)
    assert "-smp 16 " in text
    assert not re.search("topoext|possible_cpus|x86_64-cpu", text)
    monkeypatch.setattr("ampsched.vm.exact.qemu.device_tree", lambda *_: b"tree")
    text = command(Exact(HYBRID, architecture="aarch64"), tmp_path)
    assert "-smp 16 " in text
    assert not re.search("topoext|possible_cpus|x86_64-cpu", text)


def blocks(code: bytes) -> dict[str, bytes]:
    """What stands in the scopes of a table, by their paths (ACPI 6.5, 20.2.4: lengths, 20.2.2: names)."""
    found, at = {}, 0
    while at < len(code):
        assert code[at] == 0x10
        more = code[at + 1] >> 6
        length = code[at + 1] & (0xF if more else 0x3F)
        length += sum(code[at + 2 + i] << 4 + 8 * i for i in range(more))
        content = code[at + 2 + more : at + 1 + length]
        assert content[:1] == b"\\"
        count, head = (content[2], 3) if content[1] == 0x2F else (1, 1)
        end = head + 4 * count
        found[content[head:end].decode()] = content[end:]
        at += 1 + length
    return found


@pytest.mark.parametrize(("changes", "indexes"), [({}, (0, 1, 2, 4)), ({"shares_cores": False}, range(4))])
def test_a_table_names_the_best_cores(
    changes: dict[str, bool], indexes: tuple[int, ...], tmp_path: Path
) -> None:
    guest = Exact(SMALL, priorities=True, **changes)
    text = command(guest, tmp_path)
    assert " amd_pstate=active" in text
    assert f"-acpitable file={tmp_path}/priorities" in text
    written = (tmp_path / "priorities").read_bytes()
    assert written == table(guest.clusters())
    assert written[:4] == b"SSDT"
    assert struct.unpack_from("<I", written, 4) == (len(written),)
    assert sum(written) % 256 == 0
    found = blocks(written[36:])
    assert found.pop("_SB_").startswith(b"\x14")
    assert list(found) == [f"_SB_CPUSC{index:03X}" for index in indexes]
    # A package of 23 elements: how many, which revision, then the highest performance.
    best = {path: content[content.index(b"\x0a\x17\x0a\x03\x0a") + 5] for path, content in found.items()}
    fast, slow = (cluster.speed for cluster in guest.clusters())
    assert list(best.values()) == [255, 255, 255, round(255 * slow / fast)]


def test_only_x86_has_priorities() -> None:
    with pytest.raises(VmError, match=r"^priorities of cores: only x86-64 guests have them"):
        Exact(SMALL, priorities=True, architecture="aarch64")
    with pytest.raises(VmError, match=r"^priorities of cores: Linux 7.3 does not take them here"):
        Exact(SMALL, "7.3", priorities=True)
    assert replace(Exact(SMALL), priorities=True).priorities


def test_recordings_give_each_thread_a_core_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPU time counts as work there."""
    seen = []

    def run(guest: Exact, *_: object, **__: object) -> Done:
        seen.append(guest)
        return Done(None, "", "", True, None, None)

    monkeypatch.setattr(sys.modules[record.__module__], "run", run)
    for way in (record, record_calls):
        assert way(Exact(HYBRID), Work(["true"]))[1] is None
    assert len(seen) == 2
    assert not any(guest.siblings() for guest in seen)
