"""Frequencies among which a guest chooses: what it is told, what the clock is told, what is refused."""

import struct
from pathlib import Path

import pytest

from ampsched import Catalog
from ampsched.vm import VmError
from ampsched.vm.exact import Exact
from ampsched.vm.exact.frequencies import (
    CHOICE,
    GOVERNORS,
    IS_READY,
    LATENCY,
    PAGE_BYTES,
    POWERS,
    STATE,
    TABLE,
    Frequencies,
    frequencies,
    start_script,
)
from ampsched.vm.exact.qemu import Boot, architecture
from ampsched.vm.kernel import Kernel

SHIPPED = Catalog.shipped()
REGION = 0x9FE0_0000


def words(page: bytes, place: int, count: int = 1) -> list[int]:
    return list(struct.unpack_from(f"<{count}I", page, place))


def test_the_table_is_that_of_the_machine_s_file() -> None:
    machine = SHIPPED.machine("exynos5422")
    for cluster, told in enumerate(frequencies(machine, REGION)):
        assert told.address == REGION + cluster * PAGE_BYTES
        assert sorted(told.mhz) == machine.frequencies_mhz(cluster)
        page = told.registers(latency_us=50)
        assert len(page) == PAGE_BYTES
        rows = words(page, TABLE, len(told.mhz) + 1)
        assert rows == sorted(rows, reverse=True)
        assert rows[-1] == rows[-2], "the end of the table"
        assert words(page, POWERS, len(told.mhz)) == [
            round(power * 1000) for _, _, power in sorted(machine.energy_model(cluster), reverse=True)
        ]
        assert words(page, CHOICE) == [0], "the highest"
        assert words(page, STATE) == [IS_READY]
        assert words(page, LATENCY) == [50]


def test_a_full_table_needs_no_end() -> None:
    told = Frequencies(REGION, tuple(range(132, 100, -1)), (0,) * 32)
    page = told.registers(latency_us=1)
    assert words(page, TABLE, 33) == [*told.mhz, 0]


def test_the_clock_has_a_rate_for_each_frequency() -> None:
    guest = Exact(SHIPPED.machine("hikey960"), architecture="aarch64", governor="schedutil")
    lines = guest.clock_settings().splitlines()
    rates = [line.split() for line in lines if line.startswith("rates")]
    classes = [line.split() for line in lines if line.startswith("class")]
    assert [int(place, 16) for _, place, *_ in rates] == [REGION + CHOICE, REGION + PAGE_BYTES + CHOICE]
    for (_, _, *kips), (_, highest, *_), cluster in zip(rates, classes, (0, 1), strict=True):
        falling = sorted(guest.machine.frequencies_mhz(cluster), reverse=True)
        assert kips[0] == highest
        for each, mhz in zip(kips, falling, strict=True):
            assert int(each) == pytest.approx(int(highest) * mhz / falling[0], abs=1)


def test_qemu_puts_the_table_where_the_clock_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ampsched.vm.exact.qemu.device_tree", lambda *_: b"tree")
    guest = Exact(SHIPPED.machine("hikey960"), architecture="aarch64", governor="schedutil", quantum_us=2.5)
    kernel = Kernel(tmp_path / "vmlinuz", None, "6.18")
    monkeypatch.setattr("ampsched.vm.archive.Archive.folder", lambda *_: tmp_path)
    boot = Boot(
        guest.archive,
        architecture("aarch64"),
        kernel,
        guest.clusters(),
        guest.memory_mb,
        guest.quantum_us,
        Path("/lib/clock.so"),
        guest.cpu_model(),
    )
    words_said = boot.command(tmp_path)
    assert f"loader,file={tmp_path}/frequencies,addr={REGION:#x},force-raw=on" in words_said
    pages = (tmp_path / "frequencies").read_bytes()
    assert len(pages) == 2 * PAGE_BYTES
    assert words(pages, PAGE_BYTES + TABLE) == [2362]
    assert words(pages, LATENCY) == [3]


def test_what_cannot_be_told_is_refused() -> None:
    with pytest.raises(VmError, match=r'unknown governor of Linux "eco" \(known: schedutil, performance'):
        Exact(SHIPPED.machine("2B2S"), architecture="aarch64", governor="eco")
    with pytest.raises(VmError, match=r"governor schedutil: only arm64 guests .*--arch arm64"):
        Exact(SHIPPED.machine("2B2S"), governor="schedutil")
    fast = Exact(SHIPPED.machine("hybrid-8P16E"), architecture="aarch64", governor="schedutil")
    with pytest.raises(VmError, match=r"cluster p has \d+ MHz: a guest can be told of 4095 MHz at most"):
        fast.clock_settings()


@pytest.mark.parametrize("governor", GOVERNORS)
def test_modules_are_loaded_before_they_are_asked_for(governor: str) -> None:
    lines = start_script(governor, "/m").splitlines()
    loaded = [line.removeprefix("insmod /m/").removesuffix(".ko") for line in lines[:-1]]
    assert loaded == ["mediatek-cpufreq-hw", *([GOVERNORS[governor]] if GOVERNORS[governor] else [])]
    assert f"echo {governor} >$policy/scaling_governor" in lines[-1]
