"""Completion times alone: CT_fast and CT_slow of Prop-SP."""

from itertools import product
from pathlib import Path

import pytest

import ampsched
from ampsched import analytic, metrics

IDEAL = "opteron-2FC-2SC-ideal"
# Left out: where HSP must choose between equal speed-ups. The model's choice holds for ever, the simulated one is made
# anew whenever a program ends.
HSP_TIES = {("hsp", "W5"), ("hsp", "W7")}
COMPARED = [pair for pair in product(("hsp", "rr", "prop-sp"), analytic.TABLE_1) if pair not in HSP_TIES]
# Two threads on the fast cores, or one each, between barriers: the distribution of fast cores matters.
PARALLEL = """
[params]
n = 4
[barriers.b]
[[threads]]
name = "t"
count = "n"
body = [ { loop = 20, body = [ { run_us = "400000 / n", profile = "swaptions" }, { barrier = "b" } ] } ]
"""


def test_a_single_thread_is_best_on_a_fast_core() -> None:
    (reference,) = ampsched.references(IDEAL, "cpu-bound")
    assert (reference.app, reference.best) == ("cpu-bound", "fast cores")
    assert (reference.fast_ns, reference.slow_ns) == pytest.approx((10_000_000_000, 23_000_000_000), abs=1)


def test_stated_ratios_hold_on_slow_cores_alone() -> None:
    for name, speedups in analytic.TABLE_1.items():
        measured = ampsched.references(IDEAL, f"prop-sp-{name.lower()}")
        ratios = [each.slow_ns / each.fast_ns for each in measured]
        assert ratios == pytest.approx(speedups, rel=1e-6), name


def test_the_best_way_is_the_fastest(tmp_path: Path) -> None:
    (tmp_path / "parallel.toml").write_text(PARALLEL)
    workload = ampsched.Catalog.shipped().workload(tmp_path / "parallel.toml")
    (reference,) = ampsched.references(IDEAL, workload)
    machine = ampsched.Catalog.shipped().machine(IDEAL)
    times = {
        policy: ampsched.simulate(machine, workload, policy).makespan_ns
        for policy in ("prop-sp:even=0", "prop-sp:even=1")
    } | {"fast cores": ampsched.simulate(machine.only_big(), workload).makespan_ns}
    assert reference.fast_ns == min(times.values()) == times[reference.best]
    assert len(set(times.values())) > 1
    assert reference.slow_ns == ampsched.simulate(machine.only_little(), workload).makespan_ns
    # The slow machine has only the two slow cores, not four.
    assert machine.only_little().cores == 2
    (given,) = ampsched.references(IDEAL, workload, schemes=["cfs"])
    assert given.fast_ns == min(ampsched.simulate(machine, workload).makespan_ns, times["fast cores"])


def test_repetitions_and_seeds_reach_the_runs_alone() -> None:
    once, other, thrice = (
        ampsched.references("opteron-2FC-10SC", "ferret", seed=seed, repetitions=repetitions)
        for seed, repetitions in ((1, None), (2, None), (1, 3))
    )
    assert len({once[0].slow_ns, other[0].slow_ns, thrice[0].slow_ns}) == 3


@pytest.mark.parametrize("jobs", [-1])
def test_bad_jobs_are_refused(jobs: int) -> None:
    with pytest.raises(ampsched.InputError, match="jobs = -1 is below 0"):
        ampsched.references(IDEAL, "cpu-bound", jobs=jobs)


@pytest.mark.parametrize(("policy", "name"), COMPARED)
def test_the_simulator_agrees_with_the_analytical_model(policy: str, name: str) -> None:
    """Two models of the same: shares of time by formula, and threads that change places by the policy's rules."""
    workload = f"prop-sp-{name.lower()}"
    simulated = {"hsp": "hsp", "rr": "rr-amp", "prop-sp": "prop-sp:static=1"}[policy]
    apps = ampsched.simulate(IDEAL, workload, simulated, repetitions=3).apps
    alone = ampsched.references(IDEAL, workload)
    sched_ns = [app.turnaround_ns for app in apps]
    asp = metrics.asp(sched_ns, [each.slow_ns for each in alone])
    unfairness = metrics.unfairness(metrics.slowdowns(sched_ns, [each.fast_ns for each in alone]))
    expected = analytic.predict(analytic.table_1(name), policy)
    assert asp == pytest.approx(expected.asp, rel=0.02)
    assert unfairness == pytest.approx(expected.unfairness, rel=0.02)
