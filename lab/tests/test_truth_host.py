"""Simulations beside this computer's own kernel: what is told apart, and a page of figures that are known."""

from dataclasses import replace
from pathlib import Path

import pytest

from ampsched.policy import PolicySpec
from ampsched_lab.truth.host import run
from ampsched_lab.truth.host.measure import FOREIGN_MAX, Host, Run
from ampsched_lab.truth.host.report import Pair, disturbed, text_of
from ampsched_lab.truth.host.scenarios import SCENARIOS, arguments, cpus_of
from ampsched_lab.truth.pairs.machine import FIELDS, Costs

HOST = Host("6.18.44", 250, "none", "some CPU", is_virtual=True)
REAL = Run(turnaround_ns=1_000_000_000, ns_per_iteration=1.0, switches=300, foreign=0.01)


@pytest.mark.parametrize(
    ("kernel", "preemption", "policy"),
    [
        ("6.18.44", "none", "linux:kernel=6.18:hz=250:lazy=0"),
        ("6.19.1", "lazy", "linux:kernel=6.18:hz=250:lazy=1"),
        ("6.17", "lazy", "linux:kernel=6.6:hz=250:lazy=1"),
        ("5.10.200", "voluntary", "linux:kernel=4.14:hz=250:lazy=0"),
        ("9.1", "full", "linux:kernel=7.3:hz=250:lazy=0"),
    ],
)
def test_a_kernel_is_simulated_by_the_last_generation_before_it(
    kernel: str, preemption: str, policy: str
) -> None:
    assert run.policy_of(replace(HOST, kernel=kernel, preemption=preemption)) == policy
    assert PolicySpec.of(policy).name == "linux"


def test_a_kernel_that_is_older_than_all_generations_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"2\.6 is older"):
        run.policy_of(replace(HOST, kernel="2.6"))


def test_programs_of_c_get_the_numbers_of_their_scenario() -> None:
    pinned, *_, sleepers = SCENARIOS
    assert arguments(pinned.programs[0], [2, 3])[:4] == ["--cpus", "2,3", "--work", "800000000"]
    assert cpus_of(pinned.programs[0], [2, 3]) == [2]
    assert cpus_of(sleepers.programs[0], [2, 3]) == [2, 3]


def test_every_scenario_can_be_simulated(tmp_path: Path) -> None:
    costs = Costs({("iteration", 0): 0.001, ("start of a program", 0): 1000.0}, HOST.tick_ns)
    for scenario in SCENARIOS:
        found = run.simulate(tmp_path, scenario, costs, 0.001, run.policy_of(HOST))
        assert found.turnaround_ns > 0, scenario.name


def test_medians_are_taken_figure_by_figure() -> None:
    runs = [replace(REAL, turnaround_ns=ns, switches=count) for ns, count in ((5, 1), (7, 3), (9, 2))]
    assert run.median_of(runs) == replace(REAL, turnaround_ns=7, switches=2)


def test_the_page_tells_errors_and_who_was_disturbed() -> None:
    pair = Pair(SCENARIOS[0], REAL, replace(REAL, turnaround_ns=1_060_000_000, switches=150), REAL)
    costs = Costs({("turn, another CPU", 0): 4200.0}, HOST.tick_ns)
    text = text_of([pair], HOST, costs, "linux", "2026-01-02", 5)
    assert "| 1,000 | 1,060 | +6.0% | +0.0% | 300 | 150 | 0.50 |" in text
    assert "Turnaround within 5% (aim: all): 0 of 1; on average 6.0% off." in text
    assert all(f"`{field}`" in text for field in FIELDS)
    assert "at most 2% of" in disturbed([pair])
    noisy = replace(pair, real=replace(REAL, foreign=FOREIGN_MAX + 0.05))
    assert "`hogs-one-cpu` (7%)" in disturbed([noisy, pair])
