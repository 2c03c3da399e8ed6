"""Wake-up latency, periods and results by class of cores, as Python and the command line have them."""

import json
from pathlib import Path

import pytest

import ampsched
from ampsched.timeliness import Distribution

PLAYER = """
name = "player"
[timers.frame]
[[threads]]
name = "decode"
class = "fifo"
priority = 10
body = [{ loop = 50, body = [{ timer_us = 10000, timer = "frame" }, { occupy_us = 4000, profile = "dedup.compress" }] }]
[[threads]]
name = "other"
class = "fifo"
priority = 20
start_us = 9000
body = [{ occupy_us = 3000, profile = "dedup.compress" }]
"""


@pytest.fixture
def player(tmp_path: Path) -> Path:
    file = tmp_path / "player.toml"
    file.write_text(PLAYER)
    return file


def test_frames_have_a_row_per_program_and_thread(player: Path) -> None:
    """The other thread has the core from 9 to 12 ms at the longest: each wake-up but one finds a core free."""
    outcome = ampsched.simulate("sym-2", player, "eevdf", seed=1)
    latency = outcome.latency_to_polars()
    assert latency["thread"].to_list() == [None, "decode", "other"]
    program, decode, other = latency.to_dicts()
    assert program["count"] == decode["count"] == 50
    assert (other["count"], other["max_ns"]) == (0, 0)
    periods = outcome.periods_to_polars()
    assert periods["thread"].to_list() == [None, "decode"]
    row = periods.to_dicts()[1]
    # The loop ends after the 50th period's work without waiting for the timer again: 49 have ended.
    assert (row["periods"], row["missed"]) == (49, 0)
    assert row["response_max_ns"] == 10_000_000 - row["slack_min_ns"]
    assert row["frame_p50_ns"] == pytest.approx(10_000_000, rel=0.008)
    assert latency["max_ns"].max() == outcome.latency.max_ns <= outcome.threads[0].ready_ns


def test_buckets_of_histograms_add_up(player: Path) -> None:
    outcome = ampsched.simulate("sym-2", player, "eevdf", seed=1)
    frame = outcome.histograms_to_polars()
    for row in outcome.latency_to_polars().to_dicts():
        thread = frame["thread"].eq_missing(row["thread"])
        own = frame.filter(thread & (frame["of"] == "latency") & (frame["program"] == row["program"]))
        assert own["count"].sum() == row["count"]
    assert set(frame["of"]) == {"latency", "response", "frame"}


def test_comparisons_have_latency_with_intervals_and_histograms_of_programs() -> None:
    result = ampsched.compare("2B2S", "sync-1", ["eevdf", "colab"], repeat=2)
    row = result.summary()[1]
    runs = result.select("2B2S", "sync-1", "colab")
    assert row.latency_p99_ms.n == 2
    assert all(run.outcome.latency.p99_ns <= run.outcome.latency.max_ns for run in runs)
    assert row.missed is None
    frame = result.histograms_to_polars()
    assert frame["thread"].null_count() == frame.height > 0
    latency = result.latency_to_polars()
    programs = latency.filter(latency["thread"].is_null())
    total = sum(run.outcome.latency.count for run in result.runs)
    assert frame["count"].sum() == total > 0
    assert programs["count"].sum() == total
    assert result.periods_to_polars().height == 0
    told = result.to_dict()
    assert told["summary"][0]["latency_p99_change"]["mean"] == 0.0
    assert {"latency_p99_ns", "missed"} <= told["runs"][0].keys()
    json.dumps(told)


def test_a_machine_of_three_classes_has_three() -> None:
    outcome = ampsched.simulate("tensor", "sync-2", "eevdf")
    assert [each.name for each in outcome.classes] == ["little", "middle", "big"]
    frame = outcome.to_polars()
    for number, each in enumerate(outcome.classes):
        used_ns = sum(thread.class_ns[number] for thread in outcome.threads)
        assert used_ns == frame[f"{each.name}_ns"].sum() == each.busy_ns
    clusters = outcome.clusters_to_polars()
    assert clusters["busy_ns"].sum() == sum(core.busy_ns for core in outcome.cores)
    residency = outcome.residency_to_polars()
    for number, core in enumerate(outcome.cores):
        assert residency.filter(core=number)["busy_ns"].sum() == core.busy_ns
    assert all(each.busy_ns for each in outcome.classes)
    used = [each.name for each in outcome.classes if each.busy_ns]
    assert set(residency["core_class"]) == set(used)
    assert outcome.classes_to_polars()["name"].to_list() == ["little", "middle", "big"]


def test_cores_have_residencies_if_frequencies_change() -> None:
    outcome = ampsched.simulate("exynos5422", "sync-1", "eevdf", governor="schedutil")
    residency = outcome.residency_to_polars()
    assert residency.height > len(outcome.cores)
    for number, core in enumerate(outcome.cores):
        assert residency.filter(core=number)["busy_ns"].sum() == core.busy_ns


def test_a_distribution_is_read_as_it_is_told() -> None:
    told = {
        "count": 2,
        "p50_ns": 1,
        "p95_ns": 3,
        "p99_ns": 3,
        "max_ns": 3,
        "upper_ns": [1, 3],
        "counts": [1, 1],
    }
    assert Distribution.from_dict(told).row() == {name: told[name] for name in list(told)[:5]}
