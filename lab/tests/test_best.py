"""The rule by which a parameter of the best policy was chosen, its mixes, and its report's arithmetic."""

import re
from pathlib import Path

import pytest

from ampsched import compare
from ampsched._core import Workload
from ampsched.policy import PolicySpec
from ampsched_lab.best import choice, on_prop_sp, papers, rows
from ampsched_lab.best.choice import candidate, chosen, others
from ampsched_lab.best.graphs import BESIDE, graph_mixes
from ampsched_lab.best.mixes import COUNT, SLEEPER_COUNT, Role, mixes, sleeper_mixes
from ampsched_lab.best.rows import Changes, changes, row_of
from ampsched_lab.best.runs import SECTIONS, Section, own, run
from ampsched_lab.best.variants import ablations


def contents(workloads: list[Workload]) -> list[str]:
    return [each.content() for each in workloads]


def test_mixes_are_the_same_every_time_and_those_for_other_purposes_differ() -> None:
    roles: tuple[Role, ...] = ("train", "test", "fresh")
    sets = [contents(mixes(role)) for role in roles]
    assert sets == [contents(mixes(role)) for role in roles]
    assert [len(each) for each in sets] == [COUNT[role] for role in roles]
    together = {content for each in sets for content in each}
    assert len(together) == sum(COUNT.values())


def test_mixes_with_sleepers_have_some_that_wake_up_in_time_or_late() -> None:
    train, fresh = sleeper_mixes("train"), sleeper_mixes("fresh")
    assert len(train) == len(fresh) == SLEEPER_COUNT
    assert not {*contents(train)} & {*contents(fresh)}
    assert contents(train) == contents(sleeper_mixes("train"))
    section = Section("sleepers", ("2B2S",), lambda: fresh[:1], lambda: ["cfs", "abreast"])
    for row in run(section, 1, str):
        assert row.late_ms is not None
        assert 0 <= row.late_ms < 1000


def test_graphs_of_tasks_are_the_same_every_time_alone_and_beside_another_program() -> None:
    def without_folders(role: Role) -> list[str]:
        return [re.sub(r'[^"]*/(?=\w+-graph-)', "", content) for content in contents(graph_mixes(role))]

    fresh = without_folders("fresh")
    assert fresh == without_folders("fresh")
    assert not {*fresh} & {*without_folders("train")}
    sizes = {(each.name.endswith(BESIDE), len(each.apps)) for each in graph_mixes("fresh")}
    assert sizes == {(False, 1), (True, 2)}


def test_energy_is_kept_where_it_is_counted() -> None:
    for governor, is_counted in (("performance", True), ("none", False)):
        section = Section("energy", ("exynos5422",), lambda: ["sync-1"], lambda: ["cfs"], governor=governor)
        (row,) = run(section, 1, str)
        assert (row.edp is not None) == is_counted


def test_a_version_is_the_policy_alone() -> None:
    assert own(SECTIONS[0]).policies() == ["cfs", "abreast"]
    rows_of = [on_prop_sp.Row("4sth", name, 1, 1, 1) for name in ("cfs", "abreast", "abreast:without=1")]
    kept = papers.own(papers.Measured(tuple(rows_of), (), ()))
    assert [row.policy for row in kept.prop_sp] == ["abreast"]
    other = papers.Measured((*rows_of[:1], on_prop_sp.Row("4sth", "abreast", 2, 2, 2)), (), ())
    assert [row.asp for row in papers.with_own(other, kept).prop_sp] == [1, 1]


def test_changes_are_geometric_means_of_ratios() -> None:
    summary = compare(["2B2S", "4B4S"], "sync-1", ["cfs", "rr"], limits=False).summary()
    ratios = [
        summary[1].h_antt.mean / summary[0].h_antt.mean,
        summary[3].h_antt.mean / summary[2].h_antt.mean,
    ]
    found = changes([row_of("colab", row) for row in summary])
    assert found["rr"].h_antt == pytest.approx((ratios[0] * ratios[1]) ** 0.5 - 1)
    assert list(found) == ["rr"]


def of(unfairness: dict[str, float]) -> dict[str, Changes]:
    return {name: Changes(0, 0, 0, value) for name, value in unfairness.items()}


def test_the_least_value_is_chosen_that_is_as_fair_as_any_other_policy() -> None:
    fair = dict.fromkeys(others(), -0.2) | {"acfs": -0.31}
    found = of({**fair, **{candidate(value): -0.1 * value for value in choice.CANDIDATES}})
    assert chosen(found) == 4
    unfair = of({**fair, **{candidate(value): 0 for value in choice.CANDIDATES}})
    with pytest.raises(ValueError, match="no value up to 8"):
        chosen(unfair)


def test_every_ablation_is_a_choice_of_the_parameter() -> None:
    assert list(ablations()) == ["demand", "gain", "turns", "roaming", "periods", "pull"]
    for policy in ablations().values():
        assert PolicySpec.of(policy).name == "abreast"


def test_rows_are_kept(tmp_path: Path) -> None:
    (row, _) = compare("2B2S", "sync-1", ["cfs", "rr"], limits=False).summary()
    kept = row_of(SECTIONS[0].name, row)
    rows.write([kept], tmp_path / "runs.parquet")
    (read,) = rows.read(tmp_path / "runs.parquet")
    assert read.policy == "cfs"
    assert read.h_antt == pytest.approx(kept.h_antt, rel=1e-5)
