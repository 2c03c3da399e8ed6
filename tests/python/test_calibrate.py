"""Calibration: kinds of cores from sysfs, machine files, counters, and what cannot be measured."""

import os
import struct
from pathlib import Path

import pytest
from conftest import Ampsched

from ampsched import _core
from ampsched._core import CoreKind, InputError, core_kinds, format_cpus, parse_cpus
from ampsched.calibration import calibrate as command
from ampsched.calibration import measure as measuring
from ampsched.calibration.machine import classes, measured_facts
from ampsched.calibration.measure import Window, counter_table, mean_speeds, measure, speeds
from ampsched.calibration.perf_event import EVENTS, Count, attributes, counting
from ampsched.catalog import Catalog
from ampsched.counters import read_counters, vocabulary
from ampsched.machine_file.facts import Fact, MachineFacts
from ampsched.machine_file.writing import machine_text
from ampsched.recording import core_speeds

BIG = CoreKind("cortex-a57-0", "cortex-a57", [0, 1], 2000)
LITTLE = CoreKind("cortex-a53-1", "cortex-a53", [2, 3], 1200)
NOTHING = MachineFacts("here", "the kernel", [], Fact("nothing", ""), Fact("machine", ""), {})


def put(path: Path, text: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def test_kinds_of_cores_come_from_the_files_of_linux(tmp_path: Path) -> None:
    for cpu in range(4):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{cpu}"
        # Implementer 0x41, parts 0xd07 (A57) and 0xd03 (A53).
        put(
            folder / "regs/identification/midr_el1", "0x00000000411fd070" if cpu < 2 else "0x00000000410fd034"
        )
        put(folder / "cpu_capacity", 1024 if cpu < 2 else 446)
        put(folder / "cpufreq/cpuinfo_max_freq", 2_000_000 if cpu < 2 else 1_200_000)
    assert core_kinds({0, 1, 2, 3}, tmp_path) == [BIG, LITTLE]
    assert [kind.cpus for kind in core_kinds({2, 1}, str(tmp_path))] == [[1], [2]]
    put(tmp_path / "sys/devices/system/cpu/cpu2/cpu_capacity", "much")
    with pytest.raises(InputError, match=r'cpu2/cpu_capacity: "much" is not a whole number$'):
        core_kinds({2}, tmp_path)


def test_kinds_of_cores_are_values(tmp_path: Path) -> None:
    unknown = core_kinds({0, 1}, tmp_path)
    assert unknown == [CoreKind("generic-0", "generic", [0, 1])]
    assert [(kind.mhz, kind.pmu, kind.is_known) for kind in [*unknown, BIG]] == [
        (None, None, False),
        (2000, None, True),
    ]
    assert {BIG: 1}[CoreKind("cortex-a57-0", "cortex-a57", [0, 1], 2000)] == 1
    assert "cortex-a57-0" in repr(BIG)
    assert BIG != LITTLE


def test_lists_of_cpus() -> None:
    assert parse_cpus("--cpus", "8,0-3\n") == [0, 1, 2, 3, 8]
    assert format_cpus([8, 0, 1]) == "0-1,8"
    with pytest.raises(InputError, match=r'^--cpus: "3-1" of "3-1" is not a CPU or a range of CPUs'):
        parse_cpus("--cpus", "3-1")


def test_classes_follow_the_speeds() -> None:
    assert classes({"a": 1.0, "b": 0.4, "c": 1.01}) == {"b": 0, "a": 1, "c": 1}
    assert classes({"a": 1.0}) == {"a": 0}


def test_machine_files_can_be_simulated(tmp_path: Path) -> None:
    of_class, speeds = {BIG.name: 1, LITTLE.name: 0}, {BIG.name: 1.0, LITTLE.name: 0.4}
    text = machine_text("board", "A board", measured_facts(NOTHING, [BIG, LITTLE], of_class, speeds))
    assert "class = 0 # measured: speed 0.400 of the first kind's, mean over kernels\n" in text
    path = tmp_path / "machine.toml"
    path.write_text(text)
    machine = Catalog.shipped().machine(path)
    assert [cluster[1:] for cluster in machine.clusters] == [
        ("cortex-a57", 2, 2000, 1),
        ("cortex-a53", 2, 1200, 0),
    ]


def test_event_attributes_are_laid_out_as_the_kernel_reads_them() -> None:
    kind, size, config, *_, flags, _, _, _ = struct.unpack("=IIQQQQQIIQ", attributes(0, 1, 10))
    assert (kind, size, config) == (0, 64, 10 << 32 | 1)
    assert flags == 1 | 1 << 5 | 1 << 6
    assert set(EVENTS) <= {counter.name for counter in vocabulary()}


def test_counting_gives_counts_or_nothing() -> None:
    before = set(os.listdir("/proc/self/fd"))
    with counting(None) as counts:
        _core.Kernel("integer").run(100_000)
    assert set(os.listdir("/proc/self/fd")) == before
    for count in counts.values():
        assert count.value >= 0
        assert 0 < count.running_share <= 1
    if "instructions" in counts:
        assert counts["instructions"].value > 100_000


def test_kernels_run_on_each_kind_and_leave_the_affinity_as_it_was() -> None:
    allowed = os.sched_getaffinity(0)
    kind = CoreKind("generic-0", "generic", [min(allowed)])
    steps: list[tuple[int, int]] = []
    windows = measure([kind], 0.1, 2, lambda done, total: steps.append((done, total)))
    names = [name for name, _ in _core.kernels()]
    assert [window.kernel for window in windows] == [name for name in names for _ in range(2)]
    assert all(window.duration_s > 0 and window.rounds > 0 for window in windows)
    assert steps[-1] == (len(names), len(names))
    assert os.sched_getaffinity(0) == allowed
    assert speeds(windows).height == len(names)


def made_up(kind: CoreKind, cycles: float) -> list[Window]:
    """Windows of all kernels on cores that need so many cycles per round, more from kernel to kernel."""
    windows = []
    for place, (name, _) in enumerate(_core.kernels()):
        for number in range(2):
            own = cycles * (1 + 0.1 * place) if cycles > 1 else 1 + 0.03 * place
            counts = {
                "instructions": Count(1e6, 1.0),
                "cycles": Count(1e6 * own, 1.0),
                "branches": Count(1e4 * (1 + place), 1.0),
            }
            windows.append(Window(name, kind, number, 1_000_000, own * 1e-3, counts))
    return windows


def test_a_model_is_trained_where_there_are_two_speeds_and_counters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows = [*made_up(BIG, 1.0), *made_up(LITTLE, 2.0)]
    monkeypatch.setattr(command, "core_kinds", lambda cpus: [BIG, LITTLE])
    monkeypatch.setattr(command, "known_facts", lambda kinds: NOTHING)
    monkeypatch.setattr(command, "measure", lambda *arguments: windows)
    found = command.calibrate(tmp_path / "board")
    assert [path.name for path in found.files] == [
        "machine.toml",
        "speeds.csv",
        "counters.parquet",
        "model.json",
    ]
    models = _core.Models.parse("model.json", found.files[-1].read_text())
    assert models.name == "board"
    assert found.missing == (
        "voltages, power, and costs of switching and migration: estimates stand in machine.toml",
    )
    relative = mean_speeds(found.speeds)
    assert relative[BIG.name] == 1.0
    assert relative[LITTLE.name] < 0.5


def test_cpu_time_on_slow_cores_is_less_work_where_the_kernel_states_no_capacity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On such a 4B4S, 318 ms were said of a program that took 114 ms: all cores counted as equally fast."""
    windows = [*made_up(BIG, 1.0), *made_up(LITTLE, 2.0)]
    monkeypatch.setattr(core_speeds, "_CPUS", tmp_path)
    monkeypatch.setattr(core_speeds, "core_kinds", lambda cpus: [LITTLE, BIG])
    monkeypatch.setattr(measuring, "measure", lambda *arguments: windows)
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    first, second, third, fourth, offline = core_speeds.core_speeds()
    assert (first, second, offline) == (1, 1, 1)
    assert third == fourth == mean_speeds(speeds(windows))[LITTLE.name] < 0.5
    # Favoured cores are no kind of their own, so nothing is measured.
    monkeypatch.setattr(
        core_speeds, "core_kinds", lambda cpus: [BIG, CoreKind("big-1", "cortex-a57", [2, 3], 1900)]
    )
    assert core_speeds.core_speeds() == [1, 1, 1, 1, 1]
    for cpu in range(5):
        put(tmp_path / f"cpu{cpu}/cpu_capacity", 1024 if cpu < 2 else 512)
    assert core_speeds.core_speeds() == [1, 1, 0.5, 0.5, 0.5]


def test_without_a_pmu_speeds_are_still_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = [
        Window(window.kernel, window.kind, window.number, window.rounds, window.duration_s, {})
        for window in [*made_up(BIG, 1.0), *made_up(LITTLE, 2.0)]
    ]
    monkeypatch.setattr(command, "core_kinds", lambda cpus: [BIG, LITTLE])
    monkeypatch.setattr(command, "known_facts", lambda kinds: NOTHING)
    monkeypatch.setattr(command, "measure", lambda *arguments: windows)
    found = command.calibrate(tmp_path)
    assert [path.name for path in found.files] == ["machine.toml", "speeds.csv", "counters.parquet"]
    assert found.missing[0].startswith("counters and a model: no PMU, or perf_event_open is not allowed")
    table = read_counters(tmp_path / "counters.parquet")
    assert table["counter"].unique().to_list() == ["task_clock_ns"]
    assert counter_table(windows).equals(table)


def test_calibrate_by_command(ampsched_here: Ampsched, tmp_path: Path) -> None:
    out = tmp_path / "here"
    finished = ampsched_here("calibrate", "--out", str(out), "--window-ms", "0.1", "--windows", "1")
    assert finished.code == 0, finished.err
    assert "chase-64m" in finished.out
    assert "not measured: voltages" in finished.out.replace("\n", " ")
    used = ampsched_here("simulate", "-m", str(out / "machine.toml"), "-w", "fft")
    assert used.code == 0, used.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--window-ms", "0"), "--window-ms 0 is not above 0 and at most 10000"),
        (("--windows", "0"), "--windows 0 is not within 1 to 1000"),
        (("--out", "/proc/none"), "/proc/none"),
    ],
)
def test_bad_input(ampsched_here: Ampsched, arguments: tuple[str, ...], expected: str) -> None:
    finished = ampsched_here("calibrate", *arguments)
    assert finished.code == 2
    assert expected in finished.err
    assert finished.err.count("\n") == 1
