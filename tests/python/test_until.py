"""`compare` of programs that are stopped at a time, and what errors of baselines say."""

import json
from pathlib import Path

import pytest

import ampsched
from ampsched import InputError

ENDLESS = (
    '{ "tasks" : { "t" : { "instance" : 2, "run" : 1000, "timer" : { "ref" : "u", "period" : 16000 } } } }'
)


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    file = tmp_path / "endless.json"
    file.write_text(ENDLESS)
    return file


def test_h34_10_compare_stops_programs_at_a_time(endless: Path) -> None:
    """34.10: as if the program stated that duration."""
    result = ampsched.compare("hikey960", endless, ["linux", "eas"], until_ms=200)
    stated = json.loads(ENDLESS) | {"global": {"duration": 1}}
    endless.write_text(json.dumps(stated))
    longer = ampsched.compare("hikey960", endless, ["linux", "eas"])
    for run, of_longer in zip(result.runs, longer.runs, strict=True):
        assert run.timed == (True,)
        assert run.outcome.makespan_ns == 200_000_000
        assert run.outcome.totals.instructions < of_longer.outcome.totals.instructions
    assert "until 200 ms" in result.notes
    assert (
        ampsched.compare("hikey960", endless, ["linux"], until_ms=5000).runs[0].outcome.makespan_ns == 10**9
    )


def test_h34_10_a_time_after_the_end_changes_nothing() -> None:
    """34.10: programs that end before are compared as ever."""
    plain, until = (ampsched.compare("2B2S", "sync-1", ["cfs", "colab"], until_ms=ms) for ms in (None, 1e6))
    assert [run.metrics for run in plain.runs] == [run.metrics for run in until.runs]


def test_h34_10_ends_that_contradict_each_other_are_refused(endless: Path) -> None:
    """34.10: one line each."""
    with pytest.raises(InputError, match="until_ms = 5 and repetitions = 2 contradict each other"):
        ampsched.compare("2B2S", endless, ["cfs"], until_ms=5, repetitions=2)
    with pytest.raises(InputError, match="until_ms"):
        ampsched.compare("2B2S", endless, ["cfs"], until_ms=0)


def test_h34_10_errors_of_baselines_name_no_policy(endless: Path) -> None:
    """34.10: nobody has asked for cfs; and a limit below 1 s is not 0."""
    with pytest.raises(InputError, match="repeats for ever") as caught:
        ampsched.compare("hikey960", endless, ["linux", "eas"])
    assert caught.value.__notes__ == ["alone, as the measure of what others add"]
    with pytest.raises(InputError, match=r"after 0\.0001 s") as caught:
        ampsched.compare("2B2S", "sync-1", ["linux"], limit_s=0.0001)
    assert "cfs" not in "".join(caught.value.__notes__)
