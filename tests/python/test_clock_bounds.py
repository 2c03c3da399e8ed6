"""Bounds of clocks: of a machine by its name, and those of a trace in its replays."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import Ampsched

import ampsched
from ampsched import InputError
from ampsched.catalog import Catalog
from ampsched.held_clocks import with_held_clocks
from ampsched.live.machine import with_machine
from ampsched.recording import save
from ampsched.recording.imports import import_file
from ampsched.vm.exact import Exact

MACHINE = "exynos5422"
Limits = tuple[float, int, int, int]
"""When in ms, CPU, lowest and highest clock in MHz."""


def clocks(machine: Any, workload: Any = "sync-1", **settings: Any) -> dict[str, set[int]]:
    """At which clocks clusters were."""
    outcome = ampsched.simulate(machine, workload, "linux", **settings)
    return {cluster.name: {mhz for mhz, _ in cluster.residency} for cluster in outcome.clusters}


def trace(path: Path, limits: Sequence[Limits] = (), mhz: Sequence[tuple[float, int, int]] = ()) -> Path:
    """Thread 7 runs on CPU 4 for 1 ms every 10 ms, ten times; clocks: when, of which CPU, MHz."""
    lines: list[tuple[float, str]] = []
    for at_ms in range(0, 100, 10):
        names = (
            "prev_comm=a prev_pid={} prev_prio=120 prev_state={} ==> next_comm=a next_pid={} next_prio=120"
        )
        lines.append((at_ms, "sched_switch: " + names.format(0, "R", 7)))
        lines.append((at_ms + 1, "sched_switch: " + names.format(7, "S", 0)))
    for at_ms, cpu, low, high in limits:
        text = f"cpu_frequency_limits: min={low}000 max={high}000 cpu_id={cpu}"
        lines.append((at_ms, text))
    lines += [(at_ms, f"cpu_frequency: state={value}000 cpu_id={cpu}") for at_ms, cpu, value in mhz]
    rows = (f"a-7 [004] d..2 {1 + at_ms / 1e3:.6f}: {text}" for at_ms, text in sorted(lines))
    path.write_text("\n".join(rows) + "\n")
    return path


def recording(path: Path, machine: str = MACHINE) -> Path:
    """The trace, imported."""
    found = path.with_suffix(".ampr")
    save(import_file(path, traced=Catalog.shipped().machine(machine)), found)
    return found


@pytest.mark.parametrize(
    "governor", ["schedutil", "ondemand", "conservative", "interactive", "performance", "powersave"]
)
def test_governors_keep_within_bounds(governor: str) -> None:
    found = clocks(f"{MACHINE}:big@750-1650:little@-900", governor=governor)
    assert min(found["big"]) >= 800
    assert max(found["big"]) <= 1600
    assert max(found["little"]) <= 900
    assert clocks(f"{MACHINE}:big@1000-1000", governor=governor)["big"] == {1000}


def test_without_a_governor_clocks_are_the_highest_that_bounds_allow() -> None:
    assert clocks(f"{MACHINE}:big@-1650") == {"big": {1600}, "little": {1400}}
    whole, bounded = (ampsched.simulate(name, "sync-1", "linux") for name in (MACHINE, f"{MACHINE}:big@-800"))
    assert bounded.makespan_ns > whole.makespan_ns


def test_bounds_leave_capacities_and_work_alone() -> None:
    catalog = Catalog.shipped()
    whole, bounded, capped = (
        catalog.machine(f"{MACHINE}{part}") for part in ("", ":big@600-1000", ":big=4@1000")
    )
    assert bounded.energy_model(1)[-1] == whole.energy_model(1)[-1]
    assert bounded.energy_model(1) == [point for point in whole.energy_model(1) if point[0] >= 600]
    assert capped.energy_model(1)[-1][0] == 1000
    assert bounded.bounds() == [None, (600, 1000)]
    assert capped.bounds() == [None, None]
    # What a program states in time it takes at the highest clock, so half the clock takes it twice the time.
    times = [
        ampsched.simulate(machine, "cpu-bound", "linux").makespan_ns
        for machine in (
            catalog.machine(f"{MACHINE}:little=0:big@-1000"),
            catalog.machine(f"{MACHINE}:little=0"),
        )
    ]
    assert times[0] == pytest.approx(2 * times[1], rel=0.02)


@pytest.mark.parametrize("policy", ["linux", "linux:kernel=6.18", "eas", "gts", "hpm", "abreast"])
def test_all_policies_run_within_bounds(policy: str) -> None:
    machine = f"{MACHINE}:big@600-1600:little@300-900"
    outcome = ampsched.simulate(machine, "sync-1", policy, governor="schedutil", energy=True, check=True)
    little, big = ({mhz for mhz, _ in cluster.residency} for cluster in outcome.clusters)
    assert little <= set(range(300, 1000, 100))
    assert big <= set(range(600, 1700, 100))


def test_a_bounded_clock_draws_what_that_clock_draws() -> None:
    bounded, chosen = (
        ampsched.simulate(f"{MACHINE}{part}", "sync-1", "linux", governor=governor, energy=True)
        for part, governor in (
            (":big@1000-1000:little@700-700", "none"),
            ("", "big=userspace:mhz=1000,little=userspace:mhz=700"),
        )
    )
    assert bounded.makespan_ns == pytest.approx(chosen.makespan_ns, rel=0.01)
    assert bounded.energy_j == pytest.approx(chosen.energy_j, rel=0.01)


def test_what_cannot_be_is_named(ampsched_here: Ampsched) -> None:
    for part, text in {
        "big@1610-1690": "cluster big has no frequency from 1610 MHz on up to 1690 MHz: they are 200, 300,",
        "big@1600-800": "has no frequency",
        "big@x-": "is not of the form CLUSTER=CORES",
        "bog@-800": 'there is no cluster "bog" (known: little, big)',
    }.items():
        ended = ampsched_here("simulate", "-m", f"{MACHINE}:{part}", "-w", "sync-1")
        assert ended.code == 2
        assert text in ended.err
        assert ended.err.count("\n") == 1
    machine = Catalog.shipped().machine(f"{MACHINE}:big@-1600")
    with pytest.raises(InputError, match="a guest is told of all clocks of cluster big up to 2000 MHz"):
        Exact(machine)
    with pytest.raises(InputError, match="this computer's kernel bounds clocks"):
        with_machine(["run", "-m", f"{MACHINE}:big@-1600"])


def test_limits_of_a_trace_hold_in_its_replay(tmp_path: Path) -> None:
    limits = [(0, 4, 400, 800), (0, 0, 500, 1400), (70, 4, 800, 2000)]
    file = recording(trace(tmp_path / "t.txt", limits, [(0, 4, 800)]))
    info = json.loads(import_file(tmp_path / "t.txt", traced=Catalog.shipped().machine(MACHINE)).info)
    little, big = info["clocks"]
    assert (big["limits"]["min_khz"], big["limits"]["max_khz"]) == (400_000, 800_000)
    assert big["limits"]["share"] == pytest.approx(70 / 91)
    assert little["limits"] == {"min_khz": 500_000, "max_khz": 1_400_000, "share": 1.0}
    other = (
        "other limits of the clock of cores 4-7: replays keep 400 to 800 MHz, which held for 77% of the time"
    )
    assert other in info["unknown"]
    catalog = Catalog.shipped()
    workload = catalog.workload(str(file))
    held = with_held_clocks(catalog.machine(MACHINE), workload, is_governed=True)
    assert held.machine.name == MACHINE
    assert held.machine.bounds() == [(500, 1400), (400, 800)]
    assert f"{MACHINE}:little@500-:big@400-800 ({MACHINE}:little@- allows all)" in held.note
    for governor in ("performance", "schedutil"):
        found = clocks(MACHINE, str(file), governor=governor)
        assert found["big"] <= {400, 500, 600, 700, 800}
        assert min(found["little"]) >= 500
    assert clocks(MACHINE, str(file)) == {"little": {1400}, "big": {2000}}
    assert clocks(f"{MACHINE}:little@-", str(file), governor="performance")["big"] == {2000}


def test_who_does_not_keep_the_limits_of_a_trace_says_why(tmp_path: Path) -> None:
    file = str(recording(trace(tmp_path / "t.txt", [(0, 4, 400, 800)])))
    catalog = Catalog.shipped()
    workload = catalog.workload(file)

    def why(machine: str, *, is_governed: bool = True) -> str:
        on = catalog.machine(machine)
        held = with_held_clocks(on, workload, is_governed)
        assert held.machine is on
        return held.note

    assert why("juno").endswith("juno is not the machine with 4 x cortex-a7, 4 x cortex-a15")
    assert why(f"{MACHINE}:big=2").endswith("is not the machine with 4 x cortex-a7, 4 x cortex-a15")
    assert why(f"{MACHINE}:big@-").endswith(f"{MACHINE}:big@- states bounds itself")
    assert "no governor sets clocks" in why(MACHINE, is_governed=False)
    other = str(recording(trace(tmp_path / "u.txt", [(0, 4, 400, 900)])))
    mix = tmp_path / "mix.toml"
    mix.write_text(f'[workloads.mix]\napps = [{{ program = "{file}" }}, {{ program = "{other}" }}]\n')
    workload = catalog.workload(f"{mix}:mix")
    assert "programs of several traces tell different ones" in why(MACHINE)
    plain = tmp_path / "plain.ampr"
    save(import_file(tmp_path / "t.txt"), plain)
    workload = catalog.workload(str(plain))
    assert why(MACHINE) == ""


def test_without_limits_the_lowest_clock_seen_is_one_and_the_highest_is_none(tmp_path: Path) -> None:
    path = trace(tmp_path / "t.txt", (), [(0, 4, 600), (30, 4, 1000)])
    found = import_file(path, traced=Catalog.shipped().machine(MACHINE))
    info = json.loads(found.info)
    assert [clock["seen_khz"] for clock in info["clocks"]] == [None, [600_000, 1_000_000]]
    text = (
        "limits of the clock of cores 4-7 (cpu_frequency_limits): replays keep it from the lowest seen on, 600 MHz, "
        "and may go above the highest seen, 1000 MHz"
    )
    assert text in info["unknown"]
    file = str(recording(path))
    assert clocks(MACHINE, file, governor="performance")["big"] == {2000}
    assert min(clocks(MACHINE, file, governor="powersave")["big"]) == 600


def test_limits_between_two_clocks_go_to_the_next_as_in_the_kernel(tmp_path: Path) -> None:
    file = str(recording(trace(tmp_path / "t.txt", [(0, 4, 1610, 1690), (0, 0, 9000, 9000)])))
    catalog = Catalog.shipped()
    held = with_held_clocks(catalog.machine(MACHINE), catalog.workload(file), is_governed=True)
    assert held.machine.bounds() == [(1400, 1400), (1700, 1700)]


def test_limits_that_were_told_late_do_not_stand_for_all(tmp_path: Path) -> None:
    found = import_file(
        trace(tmp_path / "t.txt", [(80, 4, 400, 800)], [(5, 4, 1000)]),
        traced=Catalog.shipped().machine(MACHINE),
    )
    (_, big) = json.loads(found.info)["clocks"]
    assert (big["limits"], big["seen_khz"]) == (None, [1_000_000, 1_000_000])


def test_commands_say_how_clocks_are_bounded(ampsched_here: Ampsched, tmp_path: Path) -> None:
    file = str(recording(trace(tmp_path / "t.txt", [(0, 4, 400, 800)])))
    text = f"clocks are bounded as in the trace: {MACHINE}:big@400-800"
    simulated = ampsched_here("simulate", "-m", MACHINE, "-w", file, "--governor", "schedutil")
    assert f"note: {text}" in simulated.out
    assert "note: bounds of clocks are not those" in ampsched_here("simulate", "-m", "juno", "-w", file).out
    compared = ampsched.compare(MACHINE, file, ["linux", "gts"], governor="schedutil", core_order="as-is")
    assert any(note.startswith(text) for note in compared.notes)
    line = (
        "advise",
        file,
        "-m",
        MACHINE,
        "-p",
        "gts",
        "--repeat",
        "1",
        "--anyway",
        "--governor",
        "schedutil",
    )
    advised = ampsched_here(*line)
    assert f"\n{text}" in advised.out
    assert text in " ".join(json.loads(ampsched_here(*line, "--format", "json").out)["notes"])


def test_what_idle_states_leave_unknown_is_named(tmp_path: Path) -> None:
    path = trace(tmp_path / "t.txt")
    text = "what leaving idle states took"
    machine = Catalog.shipped().machine(MACHINE)
    assert text not in " ".join(json.loads(import_file(path, traced=machine).info)["unknown"])
    path.write_text(path.read_text() + "<idle>-0 [004] d..2 1.092000: cpu_idle: state=1 cpu_id=4\n")
    assert text in " ".join(json.loads(import_file(path, traced=machine).info)["unknown"])


def test_bounds_and_several_values_are_not_one_part() -> None:
    """``big=1/2@600-1000`` was taken for ``big=1`` and ``big=2@600-1000``."""
    for text in ("exynos5422:big=1/2@600-1000", "exynos5422:big=2@600-1000/1600"):
        with pytest.raises(InputError, match=r"cannot be one part; list machines: a,b"):
            ampsched.sweep(text, "sync-1", ["cfs"])
