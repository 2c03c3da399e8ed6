"""What is changed to see what claims depend on."""

from pathlib import Path

import polars
import pytest

import ampsched
from ampsched.policy import PolicySpec
from ampsched_lab.papers.chronaki import setup as chronaki
from ampsched_lab.papers.chronaki.conditions import FED_BY_CATS, GREATER_RATIOS
from ampsched_lab.papers.registry import EXPERIMENTS
from ampsched_lab.shared.conditions import LENGTH_300, Condition, sharing
from ampsched_lab.shared.constants import constants, with_other_constants
from ampsched_lab.shared.machines import changed_machine
from ampsched_lab.shared.workloads import changed_workload, equally_long


def test_programs_can_be_made_equally_long() -> None:
    workload = ampsched.Catalog.shipped().workload("comp-4")
    changed = equally_long(workload, 300.0)
    for app in range(len(changed.apps)):
        alone = ampsched.simulate("4B0S", changed.alone(app), "cfs")
        # Waits for times, and costs, are not longer.
        assert alone.makespan_ns == pytest.approx(300e6, rel=0.03)
    assert len(changed.apps) == len(workload.apps)
    with pytest.raises(ValueError, match=r"factors from 1e-9 to 1e9 are needed"):
        workload.with_work([1.0])


def test_a_condition_changes_nothing_that_it_does_not_state() -> None:
    workload = ampsched.Catalog.shipped().workload("fft:n=4")
    assert Condition("nothing").of(workload) is workload
    assert Condition("as policies", policies={"a": "cfs"}).changes_policies_only
    assert not Condition("longer", length_ms=1.0).changes_policies_only


def test_parameters_reach_the_programs_that_have_them() -> None:
    plain = ampsched.Catalog.shipped().workload("prop-sp-1psh-1hpm")
    changed = changed_workload("prop-sp-table3", "prop-sp-1psh-1hpm", {"dynamic": 1, "nobody_has_this": 2})
    assert changed.content() != plain.content()
    assert changed_workload("prop-sp-table3", "prop-sp-1psh-1hpm", {}).content() == plain.content()


def test_threads_that_share_the_memory_are_slower() -> None:
    condition = sharing(12_800, 1, ("class = 0", "class = 1"))
    machine = changed_machine("2B2S", condition.lines)
    shared, alone = (
        ampsched.simulate(where, "ocean_cp:n=4", "cfs").makespan_ns for where in (machine, "2B2S")
    )
    assert shared > alone


def test_task_programs_can_be_fed_by_another_policy() -> None:
    def time_ns(condition: Condition) -> int:
        cores = chronaki.Cores(2, 2)
        work = chronaki.workload("fluidanimate", chronaki.TASK, cores.all, condition)
        return ampsched.simulate(chronaki.machine(cores), work, "static").makespan_ns

    assert time_ns(FED_BY_CATS) != time_ns(Condition("nothing"))
    with pytest.raises(ValueError, match=r'unknown task policy "catz" \(did you mean "cats"\?\)'):
        ampsched.Catalog.shipped().workload("fft:n=4").with_task_policy("catz")


def test_stated_ratios_can_be_changed() -> None:
    def ratio(condition: Condition) -> float:
        times = []
        for cores in (chronaki.Cores(0, 1), chronaki.Cores(1, 0)):
            work = chronaki.workload("swaptions", chronaki.STATIC, 1, condition)
            times.append(ampsched.simulate(chronaki.machine(cores), work, "static").makespan_ns)
        return times[0] / times[1]

    stated = chronaki.RATIOS["swaptions"]
    assert ratio(Condition("nothing")) == pytest.approx(stated, rel=1e-3)
    assert ratio(GREATER_RATIOS) == pytest.approx(1 + (stated - 1) * 4 / 3, rel=1e-3)
    with pytest.raises(ValueError, match="from 0 to 10 is needed, not -1"):
        ampsched.Catalog.shipped().workload("fft:n=4").with_net_ratios(-1.0)


def test_all_versions_of_a_program_get_as_much_work() -> None:
    def time_s(method: chronaki.Method, cores: chronaki.Cores) -> float:
        work = chronaki.workload("swaptions", method, cores.all, LENGTH_300)
        return ampsched.simulate(chronaki.machine(cores), work, "static").makespan_ns / 1e9

    four_big, one_little = chronaki.FOUR[-1], chronaki.ONE_LITTLE
    assert time_s(chronaki.STATIC, four_big) == pytest.approx(0.3, rel=1e-3)
    little = 0.3 * 4 * chronaki.RATIOS["swaptions"]
    assert time_s(chronaki.STATIC, one_little) == pytest.approx(little, rel=0.02)
    assert time_s(chronaki.TASK, one_little) == pytest.approx(little, rel=0.02)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_constant_is_tried_and_judged(experiment: str) -> None:
    rows = constants(experiment)
    assert rows
    for row in rows:
        assert row.ours not in row.tried, row
        for condition in row.conditions({}):
            for policy in condition.policies.values():
                PolicySpec.of(policy)
    report = Path(__file__).parents[2] / "docs" / "reports" / experiment
    judged = set(polars.read_parquet(report / "conditions.parquet")["condition"])
    assert {each.name for each in with_other_constants(experiment)} <= judged
