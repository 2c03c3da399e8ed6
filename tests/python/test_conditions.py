"""What is changed to see what claims depend on."""

import pytest

import ampsched
from ampsched.experiments.conditions import Condition, sharing
from ampsched.experiments.machines import changed_machine
from ampsched.experiments.workloads import changed_workload, equally_long


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
