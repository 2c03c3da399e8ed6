"""The limit and the optimum from Python and the command line."""

import json
from pathlib import Path

import pytest

from ampsched import InputError, compare, limit, optimum
from ampsched.catalog import Catalog
from ampsched.cli import main
from ampsched.cli.limiting import timeline
from ampsched.limits import NO_LIMIT

SMALL = """
[[threads]]
name = "t"
count = 3
body = [{ run_us = 3000, profile = "dedup" }]
"""
PART = "2B2S:big=1:little=1"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def test_no_policy_beats_the_limit_of_a_comparison() -> None:
    result = compare(["2B2S", "4B4S"], ["sync-1", "comm-1"], ["linux", "colab", "max-fair"], repeat=2)
    for run in result.runs:
        assert run.limit is not None
        assert run.metrics.h_antt >= run.limit.h_antt > 0
        assert run.metrics.h_stp <= run.limit.h_stp
        assert run.outcome.makespan_ns >= run.limit.makespan_ns
        for app, least_ns in zip(run.outcome.apps, run.limit.turnaround_ns, strict=True):
            assert app.turnaround_ns >= least_ns


def test_a_summary_says_how_far_each_policy_is_from_the_limit() -> None:
    for row in compare("2B2S", "sync-1", ["linux", "colab"], repeat=1).summary():
        assert row.distance is not None
        assert row.h_antt_limit is not None
        assert row.distance.h_antt == pytest.approx(row.h_antt.mean / row.h_antt_limit - 1)
        assert 0 <= row.distance.h_stp < 1


def test_the_limit_alone_is_that_of_a_comparison() -> None:
    run = compare("2B2S", "sync-1", ["cfs"], seed=7, repeat=1).runs[0]
    assert limit("2B2S", "sync-1", seed=7) == run.limit


def test_a_limit_that_says_nothing_of_repeated_programs_is_not_told(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The least that may be drawn is nothing: `compare --repetitions 3` told an H_STP of 737142332 at most."""
    repeated = compare("2B2S", "ferret", ["linux", "camp"], repeat=1, repetitions=3)
    assert [(row.h_stp_limit, row.distance) for row in repeated.summary()] == [(None, None)] * 2
    assert NO_LIMIT in repeated.notes
    with pytest.raises(InputError, match="repetitions = 3: no limit"):
        limit("2B2S", "ferret", repetitions=3)
    with pytest.raises(SystemExit) as ended:
        main(["limit", "-m", "2B2S", "-w", "ferret", "-p", "linux", "--repetitions", "3"])
    assert (ended.value.code, f"repetitions = 3: {NO_LIMIT}" in capsys.readouterr().err) == (2, True)
    # Amounts that are always the same are known.
    for row in compare("2B2S", small, ["linux", "camp"], repeat=1, repetitions=3).summary():
        assert row.distance is not None
        assert 0 <= row.distance.h_antt < 10
        assert 0 <= row.distance.h_stp < 1
    assert NO_LIMIT not in compare("2B2S", "ferret", ["linux"], repeat=1, limits=False, repetitions=3).notes


def test_an_optimum_lies_between_the_limit_and_the_policies(small: Path) -> None:
    found = optimum(PART, small, simulations=500)
    policies = compare(PART, small, ["cfs", "linux", "colab"]).summary()
    assert found.limit <= found.value <= 1.01 * min(row.h_antt.mean for row in policies)
    assert found == optimum(PART, small, simulations=500), "it is reproducible"


def test_a_timeline_shows_every_thread(small: Path) -> None:
    lines = timeline(Catalog.shipped().machine(PART), optimum(PART, small, simulations=50))
    big, little = lines[0].split()[-1], lines[1].split()[-1]
    assert len(big) == len(little) == 64
    assert set(big + little) >= set("ABC")


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"objective": "speed"}, r'unknown objective "speed" \(known: h_antt, h_stp, makespan'),
        ({"simulations": 0}, "simulations = 0"),
        ({"tolerance": 2.0}, "tolerance = 2"),
        ({"quantum_us": 0.0}, "quantum_us = 0"),
        ({"repetitions": 2}, "not looked for with repeated programs"),
    ],
)
def test_what_cannot_be_searched_is_refused(small: Path, settings: dict[str, object], what: str) -> None:
    with pytest.raises(InputError, match=what):
        optimum(PART, small, **settings)  # type: ignore[arg-type]


def test_too_many_threads_are_refused(tmp_path: Path) -> None:
    large = tmp_path / "large.toml"
    large.write_text(SMALL.replace("count = 3", "count = 7"))
    with pytest.raises(InputError, match="at most 6 threads on 4 cores, not 7 on 4"):
        optimum("2B2S", large)


def test_the_command_prints_bounds_and_the_schedule(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["limit", "-m", PART, "-w", str(small), "-p", "cfs,colab", "--optimum", "--simulations", "50"]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    assert "limit" in shown
    assert "best schedule found: H_ANTT" in shown
    with pytest.raises(SystemExit):
        main([*arguments, "--format", "json"])
    values = json.loads(capsys.readouterr().out)
    assert values["optimum"]["value"] >= values["limit"]["h_antt"]


def test_a_limit_says_how_siblings_count(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(machine: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["limit", "-m", machine, "-w", str(small), "-p", "cfs"])
        assert ended.value.code == 0
        return capsys.readouterr().out

    assert "each of two threads of a core counts as a whole one" in told("i7-1360p")
    assert "counts as a whole one" not in told("2B2S")
