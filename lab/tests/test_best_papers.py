"""The policy abreast on the sets of other papers: what is run, counted and judged."""

import json

import pytest

from ampsched.markdown import page
from ampsched_lab.best import on_chronaki, on_hfee, on_prop_sp
from ampsched_lab.best.choice import POLICY
from ampsched_lab.best.papers import Measured
from ampsched_lab.papers.chronaki.setup import FOUR, GTS, LINUX, TASK
from ampsched_lab.papers.hfee.setup import WORKLOADS
from ampsched_lab.papers.prop_sp.runs import PROP_SP
from ampsched_lab.papers.prop_sp.setup import SMALL

ONE = range(1, 2)
MIX = "4sth"
PROGRAM = "swaptions"
HFEE = on_hfee.HFEE
FULL_SPEED, SLOW, UNFAIR = (f"{POLICY}, performance", f"{POLICY}, 800 MHz", f"{POLICY}, 600 MHz")


@pytest.fixture(scope="module")
def prop_sp() -> tuple[on_prop_sp.Row, ...]:
    return on_prop_sp.measure(2, {MIX: SMALL}, seeds=ONE)


@pytest.fixture(scope="module")
def chronaki() -> tuple[on_chronaki.Row, ...]:
    return on_chronaki.measure(2, [PROGRAM], [FOUR[1]], ONE)


def test_every_shipped_policy_and_variant_runs_a_mix_once(prop_sp) -> None:
    names = [row.policy for row in prop_sp]
    assert len(names) == len(set(names))
    assert {*on_prop_sp.others(), *on_prop_sp.ours()} == set(names)
    assert list(on_prop_sp.by_fairness().values()).count(POLICY) == 1


def test_sections_show_what_was_measured(prop_sp, chronaki) -> None:
    text = page(*on_prop_sp.section(prop_sp), *on_chronaki.section(chronaki))
    [own] = (row for row in prop_sp if row.policy == POLICY)
    assert f"| {MIX} | {own.asp:.2f} / {own.unfairness:.2f} |" in text
    assert f"| `{POLICY}` | {own.asp:.3f} | {own.unfairness:.3f} |" in text
    assert f"| {PROGRAM} | loop dynamic |" in text


def test_what_was_measured_can_be_written_and_read_again(prop_sp, chronaki) -> None:
    measured = Measured(prop_sp, (on_hfee.Row("w1", HFEE, 0.5, 1.0, 2.0, 2.0),), chronaki)
    assert Measured.of(json.loads(json.dumps(measured.record()))) == measured


def test_better_than_prop_sp_needs_both_a_higher_asp_and_no_more_unfairness() -> None:
    def better(asp: float, unfairness: float) -> bool:
        rows = [
            on_prop_sp.Row(MIX, PROP_SP, 2.0, 1.1, 1.0),
            on_prop_sp.Row(MIX, POLICY, asp, unfairness, 1.0),
        ]
        return on_prop_sp.Results(rows).better(POLICY, PROP_SP) == [MIX]

    assert better(2.1, 1.1)
    assert not better(2.0, 1.0)
    assert not better(2.1, 1.2)


def test_only_others_that_are_better_in_both_dominate() -> None:
    values = {POLICY: (2.0, 1.2), f"{POLICY}:fairness=2": (3.0, 1.0), "camp": (2.1, 1.2), "acfs": (1.9, 1.0)}

    def dominating() -> list[str]:
        rows = [on_prop_sp.Row(MIX, name, *both, 1.0) for name, both in values.items()]
        return on_prop_sp.Results(rows).dominating(MIX, POLICY)

    assert dominating() == []
    values["acfs"] = (2.1, 1.1)
    assert dominating() == ["acfs"]


def test_hfee_s_workloads_run_under_its_schedulers_and_ours() -> None:
    governed = [each for each in on_hfee.ours() if each.name == FULL_SPEED]
    under = [each for each in on_hfee.paper_schedulers() if each.name == HFEE]
    found = on_hfee.measure(2, [*under, *governed], ONE)
    assert len(found) == 2 * len(WORKLOADS)
    [judged] = on_hfee.judged(found)
    assert on_hfee.Results(found).best() == FULL_SPEED
    assert not judged.met, "at the highest frequency it takes more energy than HFEE"


def hfee_rows(slow_edp: float) -> list[on_hfee.Row]:
    values = {HFEE: (0.6, 100.0), FULL_SPEED: (0.8, 110.0), SLOW: (0.7, slow_edp), UNFAIR: (0.5, 10.0)}
    return [
        on_hfee.Row(mix, name, uniformity, edp, 1.0, edp)
        for mix in WORKLOADS
        for name, (uniformity, edp) in values.items()
    ]


def test_the_clock_is_chosen_on_other_workloads_among_those_as_uniform_as_hfee() -> None:
    rows = hfee_rows(slow_edp=80.0)
    assert set(on_hfee.Results(rows).by_the_others().values()) == {SLOW}
    assert [each.met for each in on_hfee.judged(rows)] == [True]
    assert [each.met for each in on_hfee.judged(hfee_rows(slow_edp=90.0))] == [False]
    # Best where it is judged alone: that must not choose it.
    lucky = [row for row in rows if (row.mix, row.scheduler) != ("w1", FULL_SPEED)]
    lucky.append(on_hfee.Row("w1", FULL_SPEED, 0.8, 1.0, 1.0, 1.0))
    assert on_hfee.Results(lucky).by_the_others()["w1"] == SLOW


def test_threads_are_judged_by_their_time_over_that_of_tasks(chronaki) -> None:
    found = on_chronaki.Results(chronaki)
    cases = {(row.version, row.policy): row.time_s for row in chronaki}
    tasks = cases[TASK.name, TASK.policy]
    for policy in (POLICY, GTS.policy, LINUX.policy):
        own = cases[on_chronaki.THREADS, policy]
        assert found.gap(policy, [PROGRAM]) == pytest.approx(own / tasks - 1.0)
    [judged] = on_chronaki.judged(chronaki)
    assert judged.met == (cases[on_chronaki.THREADS, POLICY] < cases[on_chronaki.THREADS, GTS.policy])
    swapped = {POLICY: GTS.policy, GTS.policy: POLICY}
    others = [
        on_chronaki.Row(row.program, row.version, swapped.get(row.policy, row.policy), 2, 2, row.time_s)
        for row in chronaki
    ]
    assert on_chronaki.judged(others)[0].met != judged.met
