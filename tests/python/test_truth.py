"""The truth check's programs run, and each has the threads of the simulated program beside it.

Only the form is tested here. How well the figures agree is measured by `make truth`.
"""

import dataclasses
import subprocess
from datetime import date
from pathlib import Path

import pytest
from truth import measure, report, simulated
from truth.scenarios import SCENARIOS, WAKEUP, Scenario

SOURCES = Path(__file__).resolve().parents[2] / "truth/programs"


def tiny(scenario: Scenario) -> Scenario:
    """The scenario with a ten-thousandth of the work in as few rounds as possible."""
    spins = {name: max(1, count // 10_000) for name, count in scenario.spins.items()}
    few = {"rounds": 3, "items": 5, "period-us": 500, "step-us": 100}
    numbers = {name: few.get(name, count) for name, count in scenario.numbers.items()}
    return dataclasses.replace(scenario, spins=spins, numbers=numbers)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the compiled programs."""
    folder = tmp_path_factory.mktemp("truth")
    for name in {scenario.program for scenario in [WAKEUP, *SCENARIOS]}:
        sources = [SOURCES / f"{name}.c", SOURCES / "truth.c"]
        subprocess.run(["cc", "-O1", "-std=gnu11", "-pthread", "-o", folder / name, *sources], check=True)
    return folder


@pytest.mark.parametrize("scenario", [tiny(each) for each in SCENARIOS], ids=lambda scenario: scenario.name)
def test_both_sides_run_the_same_threads(scenario: Scenario, programs: Path) -> None:
    allowed = sorted(measure.os.sched_getaffinity(0))
    real = measure.run_once(programs, scenario, [allowed[0], allowed[-1]])
    ours = simulated.simulate(programs, scenario, real.ns_per_iteration)
    assert len(real.threads) == len(ours.threads)
    for one, other in zip(real.threads, ours.threads, strict=True):
        assert one.name.split()[0] == other.name.split(".")[0].split("-nice")[0]
    assert sum(real.shares()) == pytest.approx(1)
    assert sum(ours.shares()) == pytest.approx(1)
    machine = simulated.machine_with_wakeup(programs, 20_000)
    late = simulated.simulate(programs, scenario, real.ns_per_iteration, machine)
    pairs = [report.Pair(scenario, real, ours, late)]
    text = report.tables(pairs, measure.host(), 20_000, date(2026, 1, 1), 1)
    assert scenario.name in text


def test_the_wakeup_is_what_the_turns_do_not_explain(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wakeups = 2 * WAKEUP.numbers["rounds"]
    took_ns = wakeups * (WAKEUP.spins["work"] + 7_000)
    monkeypatch.setattr(measure, "measure", lambda *_: [run_of([1, 1], turnaround_ns=took_ns)])
    assert measure.wakeup_ns(programs, [0, 1], 1, 0.0) == pytest.approx(7_000)
    monkeypatch.undo()
    assert measure.run_once(programs, tiny(WAKEUP), [0, 0]).turnaround_ns > 0


def run_of(shares: list[int], switches: int = 0, turnaround_ns: int = 100) -> measure.Run:
    """A run with threads of which only the shares differ."""
    threads = [measure.Thread(f"t {i}", 100, share, share, switches, 0) for i, share in enumerate(shares)]
    return measure.Run(turnaround_ns, 1.0, threads, 0.0)


def test_errors_are_those_of_the_simulation() -> None:
    real, ours, late = run_of([50, 50], 10, 200), run_of([60, 40], 30, 210), run_of([50, 50], 10, 220)
    pair = report.Pair(SCENARIOS[0], real, ours, late)
    assert pair.turnaround_error == pytest.approx(0.05)
    assert pair.turnaround_error_with_wakeup == pytest.approx(0.1)
    assert pair.share_error == pytest.approx(0.1)
    assert pair.switch_factor == pytest.approx(3)


def test_medians_are_taken_figure_by_figure() -> None:
    runs = [run_of([1, 9], 5, 300), run_of([2, 7], 6, 100), run_of([3, 8], 4, 200)]
    middle = measure.median_run(runs)
    assert (middle.turnaround_ns, middle.voluntary) == (200, 10)
    assert [thread.window_ns for thread in middle.threads] == [2, 8]


def test_tables_replace_only_what_is_between_the_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    report.replace_tables(page, r"new \1")
    assert page.read_text() == f"before\n{report.BEGIN}\n\nnew \\1\n\n{report.END}\nafter\n"
