"""The rule by which a parameter of the best policy was chosen, its mixes, and its report's arithmetic."""

from pathlib import Path

import pytest

from ampsched import compare
from ampsched.experiments.best import choice, rows
from ampsched.experiments.best.choice import candidate, chosen, others
from ampsched.experiments.best.mixes import COUNT, mixes
from ampsched.experiments.best.rows import Changes, changes, row_of
from ampsched.experiments.best.runs import SECTIONS
from ampsched.experiments.best.variants import ablations
from ampsched.policy import PolicySpec


def test_mixes_are_the_same_every_time_and_training_and_test_mixes_differ() -> None:
    train, test = mixes("train"), mixes("test")
    assert [each.content() for each in train] == [each.content() for each in mixes("train")]
    assert (len(train), len(test)) == (COUNT["train"], COUNT["test"])
    assert not {each.content() for each in train} & {each.content() for each in test}


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
    assert list(ablations()) == ["demand", "gain", "turns", "weights", "pull"]
    for policy in ablations().values():
        assert PolicySpec.of(policy).name == "abreast"


def test_rows_are_kept(tmp_path: Path) -> None:
    (row, _) = compare("2B2S", "sync-1", ["cfs", "rr"], limits=False).summary()
    kept = row_of(SECTIONS[0].name, row)
    rows.write([kept], tmp_path / "runs.parquet")
    (read,) = rows.read(tmp_path / "runs.parquet")
    assert read.policy == "cfs"
    assert read.h_antt == pytest.approx(kept.h_antt, rel=1e-5)
