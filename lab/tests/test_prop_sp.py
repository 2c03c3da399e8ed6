"""Prop-SP's Figure 1 and its claims by the analytical model; the command that shows them."""

import json
from pathlib import Path

import pytest
from conftest import Ampsched

from ampsched.analytic import POLICIES, TABLE_1, Mix, predict, predict_all, table_1
from ampsched_lab.papers.prop_sp.figures import COLOURS, MARKERS, Point, draw, figure_1
from ampsched_lab.papers.prop_sp.measurements import Model
from ampsched_lab.papers.prop_sp.report import CLAIMS
from ampsched_lab.papers.prop_sp.runs import Results
from ampsched_lab.shared.claims.comparisons import Verdict
from ampsched_lab.shared.claims.judging import judge

# Paper's value, ours, verdict: the numbers from the tables of the nine workloads.
EXPECTED: dict[str, tuple[str, str, Verdict]] = {
    "P1a": ("all", "9 of 9", "reproduced"),
    "P1b": ("all", "8 of 9", "direction only"),
    "P2a": ("up to -20 %", "-20.4 % (W2)", "reproduced"),
    "P2b": ("W2", "W2", "reproduced"),
    "P3a": ("all", "8 of 9", "direction only"),
    "P3b": ("all", "8 of 9", "direction only"),
    "P3c": ("up to -47 %", "-45.8 % (W1)", "direction only"),
    "P4a": ("all", "8 of 9", "direction only"),
    "P4b": ("all", "7 of 9", "direction only"),
    "P5": ("0 to 10 %", "0.0 to 9.5 %", "reproduced"),
    "P6a": ("very close", "-1.0 %", "reproduced"),
    "P6b": ("very close", "-4.7 % (W6)", "not reproduced"),
}


def points(*policies: str) -> dict[tuple[str, str], Point]:
    return {(each.workload, each.policy): each for each in figure_1(policies=policies or None).points}


def test_claims() -> None:
    claims = [claim for claim in CLAIMS.of("fig1") if claim.id in EXPECTED]
    judged = judge(claims, Model.with_simulation(Results(())))
    ours = {each.claim.id: (each.claim.published, each.result.text, each.result.verdict) for each in judged}
    assert ours == EXPECTED
    for each in judged:
        if each.claim.id == "P3c":
            continue  # The paper names no workload, so that only the sign is judged.
        missed = each.result.verdict != "reproduced"
        assert missed == bool(each.cause), "every miss of a model without randomness has a cause"


def test_figure_1_is_normalised_over_all_workloads() -> None:
    figure = points()
    assert list(figure) == [(name, policy) for name in TABLE_1 for policy in POLICIES]
    assert figure["W2", "hsp"].asp_normalised == 1.0
    assert figure["W5", "hsp"].unfairness_normalised == 1.0
    # 3.0255 / 4.8 and (1.2123 - 1) / 2.4
    assert figure["W9", "prop-sp"].asp_normalised == pytest.approx(0.63032, abs=2e-5)
    assert figure["W9", "prop-sp"].unfairness_normalised == pytest.approx(0.08846, abs=3e-5)
    alone = points("prop-sp")
    assert alone["W9", "prop-sp"] == figure["W9", "prop-sp"], "the scale is that of all policies"


def test_nothing_to_normalise_by() -> None:
    for point in figure_1([Mix("m", (1.0, 1.0))]).points:
        assert (point.asp_normalised, point.unfairness_normalised) == (1.0, 0.0)


def test_every_policy_has_its_looks() -> None:
    for looks in (COLOURS, MARKERS):
        assert list(looks) == list(POLICIES)


def test_figures_have_the_same_bytes_every_time(tmp_path: Path) -> None:
    for suffix, head in ((".svg", b"<?xml"), (".png", b"\x89PNG")):
        files = [tmp_path / f"{number}{suffix}" for number in (1, 2)]
        for file in files:
            draw(figure_1(), file)
        assert files[0].read_bytes() == files[1].read_bytes()
        assert files[0].read_bytes().startswith(head)


@pytest.mark.parametrize("mix", [Mix("m", (1.0, 1.0)), Mix("m", (3.0,), 1, 0), Mix("m", (9.0, 8.0), 1, 1)])
def test_figures_of_few_points(tmp_path: Path, mix: Mix) -> None:
    """Nothing near fairness, or nothing else: no warning, which the tests take for an error."""
    draw(figure_1([mix], ["hsp"]), tmp_path / "f.svg")
    assert (tmp_path / "f.svg").stat().st_size > 1000


def test_command_prints_what_python_computes(ampsched_here: Ampsched) -> None:
    ended = ampsched_here("analytic")
    assert ended.code == 0
    assert max(map(len, ended.out.splitlines())) <= 80
    for name in TABLE_1:
        assert f"{name}: speed-ups" in ended.out
        for each in predict_all(table_1(name)):
            row = next(
                line.split() for line in ended.out.split(f"{name}:")[1].splitlines() if each.policy in line
            )
            assert row[-2:] == [f"{each.asp:.4f}", f"{each.unfairness:.4f}"]
            assert row[1:3] == [f"{value:.3f}" for value in each.fast_shares[:2]]


def test_command_as_json(ampsched_here: Ampsched) -> None:
    ended = ampsched_here("analytic", "-w", "W9,W1", "-p", "rr,opt-unfairness", "--json")
    mixes = json.loads(ended.out)["mixes"]
    assert [mix["name"] for mix in mixes] == ["W9", "W1"]
    assert [each["policy"] for each in mixes[0]["policies"]] == ["rr", "opt-unfairness"]
    assert mixes[0]["policies"][1]["unfairness"] == predict(table_1("W9"), "opt-unfairness").unfairness


def test_command_with_own_programs(ampsched_here: Ampsched) -> None:
    machine = ("--fast", "1", "--slow", "2")
    ended = ampsched_here("analytic", "--speedups", "3, 2,1.5", "--weights", "1,2,4", *machine, "--json")
    (mix,) = json.loads(ended.out)["mixes"]
    assert (mix["speedups"], mix["weights"], mix["fast"], mix["slow"]) == ([3, 2, 1.5], [1, 2, 4], 1, 2)
    shares = next(each["fast_shares"] for each in mix["policies"] if each["policy"] == "prop-sp")
    assert shares == pytest.approx([1 / 3, 1 / 3, 1 / 3])
