"""The COLAB experiment: verdict rule, workloads, determinism, and the committed report."""

from pathlib import Path

import polars
import pytest

from ampsched.api import simulate
from ampsched.comparison import Comparison
from ampsched.experiments import colab, colab_claims
from ampsched.experiments.claims import judge_change, judge_count
from ampsched.experiments.colab_report import reproduce_colab
from ampsched.experiments.normalised import Case
from ampsched.experiments.reproduction import Reproduction
from ampsched.statistics import Estimate

REPORT = Path(__file__).parents[2] / "docs" / "reports" / "colab"


@pytest.fixture(scope="module")
def figure_4() -> Reproduction:
    return reproduce_colab("fig4", jobs=2, repeats=3)


@pytest.mark.parametrize(
    ("ours", "paper", "verdict"),
    [
        ((-0.11, -0.12, -0.10), -0.11, "reproduced"),
        ((-0.09, -0.10, -0.08), -0.11, "reproduced"),
        ((-0.20, -0.21, -0.19), -0.11, "direction only"),
        ((-0.02, -0.05, 0.01), -0.15, "not reproduced"),
        ((0.05, 0.04, 0.06), -0.05, "not reproduced"),
        ((0.45, 0.44, 0.46), 0.58, "reproduced"),
        ((0.02, 0.01, 0.03), 0.0, "reproduced"),
        ((-0.04, -0.05, -0.03), 0.0, "not reproduced"),
    ],
)
def test_verdict_of_a_change(ours: tuple[float, float, float], paper: float, verdict: str) -> None:
    assert judge_change(Estimate(*ours, n=3), paper).verdict == verdict


@pytest.mark.parametrize(
    ("ours", "verdict"), [((7, 9), "reproduced"), ((5, 9), "direction only"), ((4, 9), "not reproduced")]
)
def test_verdict_of_a_count(ours: tuple[int, int], verdict: str) -> None:
    assert judge_count(ours, (7, 9)).verdict == verdict


def test_workloads_have_the_threads_of_table_4() -> None:
    for name in colab.workloads():
        outcome = simulate("2B2S", name, "rr")
        assert sum(app.threads for app in outcome.apps) == colab.threads_of(name), name
        assert (len(outcome.apps) == 2) == (name in colab.TWO_PROGRAMS), name


def test_groups_of_figures_8_and_9() -> None:
    few = {
        (machine, name)
        for machine in colab.MACHINES
        for name in colab.workloads()
        if colab.few_threads(Case(machine, name))
    }
    assert ("2B4S", "sync-1") in few
    assert ("2B2S", "sync-1") not in few
    assert ("4B4S", "rand-5") in few
    assert len(colab.TWO_PROGRAMS) == 13


def test_every_claim_of_the_paper_has_a_row() -> None:
    empty = Comparison(colab.TEX_POLICIES, ())
    ids = {claim.id for rows in colab_claims.ROWS.values() for claim in rows(empty)}
    for number in range(1, 24):
        assert any(each.rstrip("abcdef'") == f"C{number}" for each in ids), f"C{number}"
    for number in range(3, 12):
        assert any(each.rstrip("abcdefghijklm'") == f"T{number}" for each in ids), f"T{number}"
    assert set(colab_claims.CAUSES) <= ids


def test_results_do_not_depend_on_the_number_of_processors(tmp_path: Path) -> None:
    for jobs in (1, 2):
        reproduce_colab("fig5", jobs=jobs, repeats=1).write(tmp_path / str(jobs))
    names = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert "report.md" in names
    assert "fig5.svg" in names
    for name in names:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes(), name


def test_the_committed_report_is_what_the_command_makes(figure_4: Reproduction) -> None:
    committed = polars.read_csv(REPORT / "claims.csv", infer_schema_length=None)
    ours = polars.DataFrame(figure_4.records(), infer_schema_length=None)
    theirs = committed.filter(polars.col("id").is_in(ours["id"].to_list()))
    assert theirs["ours"].to_list() == ours["ours"].to_list()
    assert theirs["verdict"].to_list() == ours["verdict"].to_list()
    assert theirs["predicted"].to_list() == ours["predicted"].to_list()
    assert ours["predicted"].to_list() != ours["ours"].to_list()
    report = (REPORT / "report.md").read_text(encoding="utf-8")
    table = figure_4.markdown().split("## fig4", 1)[1].strip()
    assert table in report
