"""The COLAB experiment: workloads, claims, determinism, and the committed report."""

from dataclasses import fields
from pathlib import Path

import polars
import pytest

from ampsched._core import InputError
from ampsched.api import compare, simulate
from ampsched_lab.papers.colab import setup
from ampsched_lab.papers.colab.conditions import (
    BLIND_LINUX,
    CONDITIONS,
    LITTLE_800,
    NO_PULL,
    ONLY_PULL,
    names_under,
)
from ampsched_lab.papers.colab.measurements import Facts
from ampsched_lab.papers.colab.report import CLAIMS, reproduce
from ampsched_lab.papers.colab.runs import Part
from ampsched_lab.papers.registry import RULES
from ampsched_lab.shared.conditions import AS_JUDGED, Condition
from ampsched_lab.shared.normalised import LINUX, Case, Normalised
from ampsched_lab.shared.reproduction import Reproduction

REPORT = Path(__file__).parents[2] / "docs" / "reports" / "colab"


@pytest.fixture(scope="module")
def figure_4() -> Reproduction:
    return reproduce("fig4", jobs=2, repeats=3, max_repeats=50)


def test_workloads_have_the_threads_of_table_4() -> None:
    for name in setup.workloads():
        outcome = simulate("2B2S", name, "rr")
        assert sum(app.threads for app in outcome.apps) == setup.threads_of(name), name
        assert (len(outcome.apps) == 2) == (name in setup.TWO_PROGRAMS), name


def test_groups_of_figures_8_and_9() -> None:
    few = {
        (machine, name)
        for machine in setup.MACHINES
        for name in setup.workloads()
        if setup.few_threads(Case(machine, name))
    }
    assert ("2B4S", "sync-1") in few
    assert ("2B2S", "sync-1") not in few
    assert ("4B4S", "rand-5") in few
    assert len(setup.TWO_PROGRAMS) == 13


def test_cases_of_claims() -> None:
    def names(text: str) -> set[tuple[str, str]]:
        fits = setup.cases_of(text)
        all_names = (*setup.SINGLES, *setup.workloads(), *setup.TEX)
        return {
            (machine, name) for machine in setup.MACHINES for name in all_names if fits(Case(machine, name))
        }

    assert len(names("single on 2B2S")) == 12
    assert len(names("all")) == 26 * 4
    assert len(names("draft")) == 38 * 4
    assert names("draft 3,draft 6") == {case for case in names("draft") if case[1][4] in "36"}
    assert names("two programs,four programs") == names("all")
    assert names("comm-1 on 2B2S,4B4S") == {("2B2S", "comm-1"), ("4B4S", "comm-1")}
    assert names("few threads on 2B4S") == {case for case in names("few threads") if case[0] == "2B4S"}
    with pytest.raises(InputError, match=r'unknown workload or group "snyc" .*"sync"'):
        names("snyc")
    with pytest.raises(InputError, match=r'unknown machine "2B3S"'):
        names("sync on 2B3S")


def test_facts_tell_where_programs_of_several_threads_ran() -> None:
    """Linux 3.16 gives one of two threads to each cluster, `cfs` both to the first."""
    runs = compare("2B2S", "single-water_nsquared", [setup.BASELINE.policy, RULES, "wash", "colab"]).runs
    facts = Facts.of(runs)
    assert facts.same_big == pytest.approx(1.0, abs=0.01)
    assert (facts.split_linux, facts.big_linux) == (1.0, 0.0)
    assert (facts.split_rules, facts.big_rules) == (0.0, 0.5)


def test_linux_is_whatever_stands_for_it() -> None:
    comparison = compare("2B2S", "sync-1", [setup.BASELINE.policy, RULES])
    [case] = Normalised(comparison).cases
    for policy, other in ((setup.BASELINE.policy, RULES), (RULES, setup.BASELINE.policy)):
        values = Normalised(comparison, policy)
        assert values.values(case, LINUX, "h_stp") == Normalised(comparison).values(case, policy, "h_stp")
        assert values.values(case, other, "h_stp") != values.values(case, LINUX, "h_stp")


def test_every_claim_of_the_paper_has_a_row() -> None:
    ids = {claim.id for claim in CLAIMS.all}
    for number in range(1, 24):
        assert any(each.rstrip("abcdef'") == f"C{number}" for each in ids), f"C{number}"
    for number in range(3, 12):
        assert any(each.rstrip("abcdefghijklm'") == f"T{number}" for each in ids), f"T{number}"


def test_each_condition_changes_one_thing() -> None:
    names = [condition.name for condition in CONDITIONS]
    assert len(set(names)) == len(names)
    assert Condition("as judged") == CONDITIONS[0]
    changeable = {each.name for each in fields(Condition)} - {"name"}
    for condition in CONDITIONS[1:]:
        changes = [name for name in changeable if getattr(condition, name) != getattr(AS_JUDGED, name)]
        assert len(changes) == (2 if condition is BLIND_LINUX else 1), condition.name


def test_a_condition_is_run_on_changed_machines_with_what_takes_a_policy_s_place() -> None:
    part = Part(("2B2S",), ("sync-1",))
    plain = Normalised(part.run_under(AS_JUDGED, 2, range(1, 2), ignore), **names_under(AS_JUDGED))
    [case] = plain.cases
    assert case == Case("2B2S", "sync-1")
    for condition in (NO_PULL, ONLY_PULL, BLIND_LINUX, LITTLE_800):
        runs = part.run_under(condition, 2, range(1, 2), ignore)
        changed = Normalised(runs, **names_under(condition))
        same = {
            name: changed.values(case, name, "h_antt") == plain.values(case, name, "h_antt")
            for name in (LINUX, "wash", "colab")
        }
        assert same == {
            LINUX: condition in (NO_PULL, ONLY_PULL),
            "wash": condition is not LITTLE_800,
            "colab": condition is BLIND_LINUX,
        }, condition.name


def ignore(_done: int, _of: int) -> None:
    """Progress that nobody sees."""


def test_results_do_not_depend_on_the_number_of_processors(tmp_path: Path) -> None:
    for jobs in (1, 2):
        reproduce("fig4", jobs=jobs, repeats=1).write(tmp_path / str(jobs))
    names = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert "report.md" in names
    assert "fig4.svg" in names
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
