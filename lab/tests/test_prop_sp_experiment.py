"""The experiment of Prop-SP: protocol, claims, determinism, and the committed report."""

from pathlib import Path

import polars
import pytest

from ampsched.statistics import Estimate
from ampsched_lab.papers.prop_sp import report, setup
from ampsched_lab.papers.prop_sp.measurements import Model
from ampsched_lab.papers.prop_sp.runs import (
    PARTS,
    Part,
    Results,
    Row,
    model_errors,
    pareto_front,
    with_predictions,
)
from ampsched_lab.papers.prop_sp.setup import IDEAL, MODEL_POLICIES
from ampsched_lab.shared.claims.judging import judge
from ampsched_lab.shared.claims.tables import claim_records, claims_section

REPORT = Path(__file__).parents[2] / "docs" / "reports" / "prop-sp"


@pytest.fixture(scope="module")
def model() -> Results:
    return PARTS["fig1"].run(jobs=2, seeds=range(1, 2))


def test_simulations_without_costs_are_within_two_percent_of_the_model(model: Results) -> None:
    """Slowdowns and ASP of W1 to W9 under HSP, RR and Prop-SP."""
    for (mix, policy), errors in model_errors(model, IDEAL).items():
        assert max(errors) < 0.02, (mix, policy, errors)
    claims = [claim for claim in report.CLAIMS.of("fig1") if claim.id.startswith("S-")]
    judged = judge(claims, Model.with_simulation(model))
    assert [each.result.verdict for each in judged] == ["reproduced"] * 3


def test_the_committed_report_is_what_comes_out(model: Results) -> None:
    committed = polars.read_parquet(REPORT / "runs.parquet").filter(part="fig1", seed=1)
    found = {(row["machine"], row["mix"], row["policy"]): row for row in committed.iter_rows(named=True)}
    assert len(found) == len(model.rows)
    for row in model.rows:
        expected = found[row.machine, row.mix, row.policy]
        assert row.asp == pytest.approx(expected["asp"], rel=1e-9)
        assert list(row.slowdowns) == pytest.approx(expected["slowdowns"], rel=1e-9)


def test_results_do_not_depend_on_jobs() -> None:
    part = Part(((setup.LARGE, "1psh-1psl"),), ("prop-sp", "a-dwrr"))
    one, two = (part.run(jobs, range(1, 2)) for jobs in (1, 2))
    assert one == two


def test_predictions_reach_the_dynamic_policies_only() -> None:
    part = Part(((setup.SMALL, "4sth"),), ("rr-amp", "prop-sp:static=1", *setup.DYNAMIC))
    exact = part.run(jobs=2, seeds=range(1, 2))
    again = with_predictions(part, exact, jobs=2)
    changed = {policy: exact.of("4sth", policy) != again.of("4sth", policy) for policy in part.policies}
    assert changed["prop-sp"]
    assert not changed["rr-amp"]
    assert not changed["prop-sp:static=1"]
    assert len(again.rows) == len(exact.rows)


def test_claims_without_speedups_have_no_prediction() -> None:
    claims = report.CLAIMS.of("fig2")[:2]
    without, with_ = judge(claims[:1], results()), judge(claims[1:], results(), results())
    lines = claims_section([*without, *with_]).splitlines()
    assert lines[-2].endswith("|  |")
    assert lines[-1].endswith(f"{with_[0].result.text} |")
    records = claim_records([*without, *with_])
    assert [record["predicted"] for record in records] == [None, with_[0].result.text]
    assert "predicted" not in claim_records(without)[0]


def test_parts_run_every_mix_of_table_3() -> None:
    assert len(setup.SINGLE_THREADED) == 9
    assert len(setup.MULTITHREADED) == 8, "one row of the table is lost"
    assert {mix for _, mix in PARTS["fig2"].mixes} == set(setup.MIXES)
    assert set(MODEL_POLICIES.values()) <= set(PARTS["fig1"].policies)


def results(**by_policy: tuple[float, float]) -> Results:
    """Every mix with the same ASP and unfairness of each policy; underscores stand for hyphens."""
    rows = []
    for mix, machine in setup.MIXES.items():
        for policy in setup.POLICIES:
            key = policy.replace("-", "_").replace(":static=1", "_static")
            asp, unfairness = by_policy.get(key, (2.0, 1.1))
            rows += [Row(machine, mix, policy, seed, (1.0, unfairness), asp, unfairness) for seed in (1, 2)]
    return Results(tuple(rows))


def verdicts(measured: Results) -> dict[str, str]:
    return {each.claim.id: each.result.verdict for each in judge(report.CLAIMS.of("fig2"), measured)}


def test_claims_of_figure_2_can_hold_and_fail() -> None:
    as_published = verdicts(results(hsp=(2.05, 2.0), camp=(2.05, 2.0)))
    assert as_published["P8a"] == as_published["P8b"] == as_published["P10b"] == "reproduced"
    assert as_published["P10c"] == as_published["P11a"] == "reproduced"
    otherwise = verdicts(results(hsp=(1.0, 1.0), camp=(1.0, 1.0), prop_sp=(3.0, 2.0)))
    assert otherwise["P8a"] == otherwise["P8b"] == otherwise["P10b"] == "not reproduced"
    assert otherwise["P10c"] == otherwise["P11a"] == otherwise["P11b"] == "not reproduced"


def test_the_pareto_front_holds_who_is_not_beaten_in_both() -> None:
    points = {"fast": (3.0, 2.0), "fair": (1.0, 1.0), "between": (2.0, 1.5), "beaten": (2.0, 1.6)}
    assert pareto_front(points) == {"fast", "fair", "between"}


def test_the_committed_report_shows_what_was_measured() -> None:
    text = (REPORT / "report.md").read_text()
    claims = polars.read_csv(REPORT / "claims.csv")
    for row in claims.iter_rows(named=True):
        assert f"| {row['id']} | {row['claim']} | {row['paper']} | {row['ours']} | {row['verdict']} |" in text
    for figure in ("fig1", "fig1-simulated", "fig2-single", "fig2-multi", "pareto"):
        assert (REPORT / f"{figure}.svg").exists()
        assert f"]({figure}.svg)" in text


def test_priorities_are_told_by_the_slowdowns_of_both_pairs() -> None:
    row = Row(setup.SMALL, "nice-5", "cfs", 1, (1.0, 1.2, 2.0, 2.2), 1.0, 2.0)
    assert report._pairs([row]) == "1.100 / 2.100"


def test_means_over_mixes() -> None:
    measured = results(hsp=(3.0, 4.0))
    assert measured.mean_asp(("4sth", "1psh-1psl"), "hsp").mean == 3.0
    change = measured.unfairness_change(("4sth",), "hsp", "camp")
    assert isinstance(change, Estimate)
    assert change.mean == pytest.approx(4.0 / 1.1 - 1.0)
