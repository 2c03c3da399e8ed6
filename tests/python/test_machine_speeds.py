"""Kernels believe the capacities that a computer states; they make nothing faster but types that stand for others."""

import json
from pathlib import Path

import pytest
from computers import CPU, Files, collected
from conftest import Ampsched
from test_machine_file import made as made_of
from test_machine_file import put

import ampsched
from ampsched import Machine
from ampsched.catalog import Catalog
from ampsched.machine_file.making import Made

A53, A72, A73, A75, A76, UNKNOWN = (
    0x41 << 24 | part << 4 for part in (0xD03, 0xD08, 0xD09, 0xD0A, 0xD0B, 0xFFF)
)
LOOP = {"tasks": {"one": {"loop": 10, "run": 1000}}, "global": {"calibration": 100}}


def computer(*clusters: tuple[int, int]) -> Files:
    """Two cores of each cluster, which are told apart by part number and capacity, all at 2 GHz."""
    files = {f"{CPU}/online": f"0-{2 * len(clusters) - 1}"}
    for cpu in range(2 * len(clusters)):
        midr, capacity = clusters[cpu // 2]
        files |= {
            f"{CPU}/cpu{cpu}/cpu_capacity": str(capacity),
            f"{CPU}/cpu{cpu}/regs/identification/midr_el1": f"{midr:#018x}",
            f"{CPU}/cpu{cpu}/cpufreq/cpuinfo_max_freq": "2000000",
            f"{CPU}/cpu{cpu}/topology/core_cpus_list": str(cpu),
        }
    return files


def made(tmp_path: Path, *clusters: tuple[int, int]) -> Made:
    return made_of(put(tmp_path / "computer.txt", collected(computer(*clusters))))


def machine(tmp_path: Path, text: str) -> Machine:
    return Catalog.shipped().machine(put(tmp_path / "made.toml", text))


def capacities(of: Machine) -> list[float]:
    return [of.energy_model(place)[-1][1] for place in range(len(of.clusters))]


def makespans(of: Machine, path: Path, workload: str) -> list[float]:
    """Of a workload on one core of each cluster alone."""
    names = [name for name, *_ in of.clusters]
    parts = [":".join([str(path), *(f"{each}={int(each == name)}" for each in names)]) for name in names]
    return [ampsched.simulate(part, workload, "cfs").makespan_ns for part in parts]


def loop_speeds(tmp_path: Path, own: Machine) -> list[float]:
    """Of rt-app's loop, which stays in the first cache, as that with which capacities are measured."""
    (tmp_path / "loop.json").write_text(json.dumps(LOOP))
    times = makespans(own, tmp_path / "made.toml", str(tmp_path / "loop.json"))
    return [1024 * min(times) / time for time in times]


@pytest.mark.parametrize(
    "clusters",
    [
        ((UNKNOWN, 100), (A76, 1024)),  # slower than all that is shipped
        ((A53, 300), (UNKNOWN, 1024)),  # beside a core that is known
        ((UNKNOWN, 446), (UNKNOWN + 16, 1024)),
    ],
)
def test_an_unknown_core_is_as_fast_as_is_stated(
    tmp_path: Path, clusters: tuple[tuple[int, int], ...]
) -> None:
    own = machine(tmp_path, made(tmp_path, *clusters).text)
    stated = [capacity for _, capacity in clusters]
    assert capacities(own) == pytest.approx(stated)
    assert loop_speeds(tmp_path, own) == pytest.approx(stated, rel=0.11)


@pytest.mark.parametrize("capacity", [1, 250, 370, 700])
def test_a_known_core_keeps_its_speed_and_kernels_believe_the_capacity(tmp_path: Path, capacity: int) -> None:
    text = made(tmp_path, (A53, capacity), (A76, 1024)).text
    assert "relative_speed" not in text
    assert f"capacity = {capacity}.0 # stated: cpu_capacity, which kernels believe; 395 simulated" in text
    own = machine(tmp_path, text)
    assert capacities(own) == pytest.approx([capacity, 1024])
    assert loop_speeds(tmp_path, own) == pytest.approx([395, 1024], abs=0.5)


def test_every_program_has_the_factor(tmp_path: Path) -> None:
    text = made(tmp_path, (UNKNOWN, 100), (A76, 1024)).text
    (line,) = [line for line in text.splitlines() if line.startswith("relative_speed")]
    key, _, origin = line.partition(" # ")
    assert origin.startswith("stated by the kernel: capacity 100 of 1024; ")
    factor = float(key.removeprefix("relative_speed = "))
    own, plain = machine(tmp_path, text), text.replace(key, "")
    for program in ("blackscholes", "dedup", "fft"):
        times = makespans(own, tmp_path / "made.toml", f"{program}:n=1")
        machine(tmp_path, plain)
        before = makespans(own, tmp_path / "made.toml", f"{program}:n=1")
        machine(tmp_path, text)
        assert before[0] / times[0] == pytest.approx(factor, rel=1e-3)
        assert before[1] == times[1]


def test_classes_follow_what_is_stated(tmp_path: Path) -> None:
    # By the core model the first one is faster.
    found = made(tmp_path, (A72, 930), (A75, 1024))
    assert [cluster.class_.value for cluster in found.facts.clusters] == [0, 1]
    assert capacities(machine(tmp_path, found.text)) == pytest.approx([930, 1024])


def test_commands_show_both_capacities(tmp_path: Path, ampsched_here: Ampsched) -> None:
    source, out = tmp_path / "computer.txt", tmp_path / "made.toml"
    source.write_text(collected(computer((A53, 250), (A73, 500), (A76, 1024))))
    printed = ampsched_here("machine", str(source), "-o", str(out))
    assert "little: CPUs 0-1, cortex-a53, up to 2000 MHz, capacity 250 (simulated: 395)\n" in printed.out
    described = ampsched_here("describe", str(out)).out
    assert "  capacity: 250 of 1024, for linux and eas\n" in described
