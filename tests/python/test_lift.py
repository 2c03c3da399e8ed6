"""Programs made of recordings: what is recognised, that the work stays, and that they go on."""

import json
from functools import cache
from pathlib import Path

import pytest
from conftest import Ampsched

from ampsched import InputError, simulate
from ampsched.recording import Lifted, lift, save
from ampsched.recording.imports import import_file

RECORDINGS = Path(__file__).resolve().parents[2] / "lab" / "calibration" / "recordings"

# Per recording: numbers of objects of kinds, and the group that shares work with its number.
KNOWN = {
    "swaptions": ({}, ("worker", "n")),
    "blackscholes": ({}, ("worker", "n")),
    "fft": ({"barrier": 1}, ("worker", "n - 1")),
    "radix": ({"barrier": 2}, ("worker", "n - 1")),
    "fluidanimate": ({"barrier": 1}, ("worker", "n")),
    "water_nsq": ({"barrier": 3}, ("worker", "n - 1")),
    "bodytrack": ({"barrier": 4, "gate": 1, "pool": 3}, ("worker", "n")),
    "freqmine_250k": ({"barrier": 1, "pool": 2}, ("worker", "n - 1")),
}


@cache
def lifted(name: str) -> Lifted:
    return lift(import_file(RECORDINGS / f"{name}.npz.zst"))


@pytest.mark.parametrize("name", KNOWN)
def test_structure_and_work_of_recorded_programs(name: str) -> None:
    objects, (group, count) = KNOWN[name]
    found = lifted(name)
    report = found.report
    assert report["level"] == "full", report["notes"]
    for kind, number in objects.items():
        assert sum(row["kind"] == kind for row in report["objects"]) == number, kind
    assert {row["name"]: row["count"] for row in report["groups"]}[group] == count
    assert report["literal_share"] < 0.02
    assert report["lifted_ns"] == pytest.approx(report["recorded_ns"], rel=0.01)
    assert found.check is not None
    for row in report["groups"]:
        if row["recorded_ns"] > 0.01 * report["recorded_ns"]:
            assert found.check.group_ns[row["name"]] == pytest.approx(row["recorded_ns"], rel=0.03)


def test_a_pipeline_becomes_queues() -> None:
    found = lifted("ferret_400q")
    assert sum(row["kind"] == "queue" for row in found.report["objects"]) == 5
    assert sorted(row["count"] for row in found.report["groups"]) == ["1", "1", "1", "n", "n", "n", "n"]
    assert found.report["literal_share"] == 0.0
    assert found.report["lifted_ns"] == pytest.approx(found.report["recorded_ns"], rel=0.01)
    assert found.check is not None
    # The recording filled its two cores, so its time can be trusted: 4.56 s.
    assert found.check.makespan_ns == pytest.approx(4.56e9, rel=0.1)


@pytest.mark.parametrize("name", ["fft", "bodytrack", "ferret_400q"])
@pytest.mark.parametrize("params", ["", ":n=2", ":n=8", ":scale=0.5"])
def test_other_numbers_and_sizes_go_on(name: str, params: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.toml"
    path.write_text(lifted(name).toml)
    for policy in ("cfs", "colab"):
        assert simulate("2B2S", f"{path}{params}", policy).makespan_ns > 0


def test_per_thread_scaling_adds_work(tmp_path: Path) -> None:
    recording = import_file(RECORDINGS / "swaptions.npz.zst")
    times = {}
    for scaling in ("fixed-total", "per-thread"):
        path = tmp_path / f"{scaling}.toml"
        path.write_text(lift(recording, scaling=scaling, check=False).toml)
        times[scaling] = simulate("sym-2", f"{path}:n=8", "cfs").makespan_ns
    assert times["per-thread"] == pytest.approx(2 * times["fixed-total"], rel=0.02)


def test_speedup_and_profile_are_in_the_text() -> None:
    recording = import_file(RECORDINGS / "swaptions.npz.zst")
    toml = lift(recording, like="ferret", speedup=2.25, check=False).toml
    assert '[profiles.recorded]\nlike = "ferret"\nratio = 2.25\n' in toml


def test_wrong_choices_are_refused() -> None:
    recording = import_file(RECORDINGS / "swaptions.npz.zst")
    with pytest.raises(InputError, match="no-such"):
        lift(recording, like="no-such")
    with pytest.raises(InputError, match=r"speed-up 0\.5"):
        lift(recording, speedup=0.5)


def test_command(ampsched_here: Ampsched, tmp_path: Path) -> None:
    recording, program = tmp_path / "fft.ampr", tmp_path / "fft.toml"
    save(import_file(RECORDINGS / "fft.npz.zst"), recording)
    ended = ampsched_here("lift", str(recording), "-o", str(program))
    assert ended.code == 0, ended.err
    assert "mutex and condition, 7 rounds of 4 threads" in ended.out
    assert "in the program (" in ended.out
    assert program.read_text().startswith('name = "fft"')
    ended = ampsched_here("lift", str(recording), "--json")
    assert json.loads(ended.out)["report"]["level"] == "full"
