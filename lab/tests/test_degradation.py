"""The experiment on errors and staleness of speed-ups, in small, and the committed page."""

from pathlib import Path

import polars as pl
import pytest
from conftest import ROOT

from ampsched_lab.prediction import degradation

COMMITTED = ROOT / "docs/reports/prediction"


@pytest.fixture(scope="module")
def points() -> list[degradation.Point]:
    return degradation.run(jobs=2, repeats=2, names=("rand-1",))


def test_every_error_sampling_and_source_is_run_under_every_policy(points: list[degradation.Point]) -> None:
    for series, values in (("error", degradation.ERRORS), ("sampling_ms", degradation.SAMPLINGS_MS)):
        for policy, found in degradation.curve(points, series).items():
            assert tuple(point.x for point in found) == values, policy
    sources = {(point.policy, point.x) for point in points if point.series == "source"}
    policies = (degradation.REFERENCE, *degradation.POLICIES)
    assert sources == {(policy, source) for policy in policies for source in degradation.SOURCES}


def test_no_error_is_the_oracle_and_cfs_does_not_care(points: list[degradation.Point]) -> None:
    value = {(point.series, point.policy, point.x): point.value for point in points}
    for policy in degradation.POLICIES:
        assert value["error", policy, 0.0] == value["source", policy, "oracle"]
    assert len({value["source", "cfs", source] for source in degradation.SOURCES}) == 1
    assert value["error", "colab", 0.5] != value["error", "colab", 0.0]


def test_policies_look_as_often_as_the_sampling_says() -> None:
    assert degradation.sampled_policy("colab", 2) == "colab:epoch_ms=2"
    assert degradation.sampled_policy("colab", 50) == "colab:epoch_ms=10"
    assert degradation.sampled_policy("hsp", 50) == "hsp:sample_ms=50:tick_ms=10"


def test_tables_and_figures(points: list[degradation.Point], tmp_path: Path) -> None:
    lines = degradation.table(points, "error", "error").splitlines()
    assert lines[0] == "| error | wash | colab | camp | hsp | prop-sp |"
    assert len(lines) == 2 + len(degradation.ERRORS)
    for name in ("a.svg", "b.svg"):
        degradation.draw(points, "sampling_ms", "ms", tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_the_committed_page_shows_the_committed_numbers() -> None:
    page = (COMMITTED / "degradation.md").read_text(encoding="utf-8")
    for row in pl.read_csv(COMMITTED / "degradation.csv").rows(named=True):
        assert f"{row['h_antt']:.3f} ± {(row['high'] - row['low']) / 2:.3f}" in page, row
