"""What is handed out anew in replays: not where that misses the recording and doing what was done does not."""

import json
from pathlib import Path

import pytest
from by_hand import Event, Thread, written

from ampsched import Catalog
from ampsched._core import InputError
from ampsched.recording import Recording, check
from ampsched.recording.conditions import Conditions, pose
from ampsched.recording.files import load
from ampsched.recording.replay import MISS_MAX, Replayed, replayed
from ampsched.recording.speedups import Speedup

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "lab/data/settings/recordings"
FILE = Path("by-hand.ampr")
LITTLE, MUCH = 1 - MISS_MAX / 2, 1 - 2 * MISS_MAX


def busy() -> Recording:
    """A thread that works."""
    work = 400.0
    return written(
        [Thread("main", [Event("start", 0), Event("sleep", work, work=work), Event("exit", work)])]
    )


def taking(monkeypatch: pytest.MonkeyPatch, parts: dict[str, float]) -> None:
    """Lets replays take such a part of their time, by who does what."""

    def faster(
        catalog: Catalog, recording: Recording, path: Path, *, sharing: str = "handed-out"
    ) -> Replayed:
        return replayed(catalog, recording, path, speed=1 / parts[sharing])

    monkeypatch.setattr(check, "replayed", faster)


def posed(recording: Recording, params: dict[str, float] | None = None) -> Conditions:
    return pose(Catalog.shipped(), recording, FILE, Speedup(2.0, "stated"), params)


def test_what_misses_is_not_handed_out_if_keeping_work_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    taking(monkeypatch, {"handed-out": MUCH, "none": LITTLE})
    recording = busy()
    found = check.reproduce(recording, FILE, Catalog.shipped())
    assert found.sharing == "none"
    assert found.error == pytest.approx(LITTLE - 1, abs=0.01)
    note = (
        "each thread does what it did: with work handed out anew the replay takes 0.32 s on the recording's own "
        "cores, the program took 0.4 s"
    )
    assert found.notes == (note,)
    conditions = posed(recording)
    assert note in conditions.notes
    # What somebody states counts.
    assert note not in posed(recording, {"sharing": 1.0}).notes


@pytest.mark.parametrize("kept", [MUCH, 1.5])
def test_it_stays_handed_out_if_both_miss(kept: float, monkeypatch: pytest.MonkeyPatch) -> None:
    taking(monkeypatch, {"handed-out": MUCH, "none": kept})
    found = check.reproduce(busy(), FILE, Catalog.shipped())
    assert (found.sharing, found.notes) == ("handed-out", ())
    assert found.error == pytest.approx(MUCH - 1, abs=0.01)


def test_it_stays_handed_out_if_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    taking(monkeypatch, {"handed-out": LITTLE, "none": 1.0})
    found = check.reproduce(busy(), FILE, Catalog.shipped())
    assert (found.sharing, found.notes) == ("handed-out", ())
    assert posed(busy()).notes == ()


def test_a_recording_that_does_not_tell_its_cores_is_posed_all_the_same() -> None:
    recording = busy()
    recording = recording.with_info(json.dumps(json.loads(recording.info) | {"wall_ns": 0}))
    with pytest.raises(InputError):
        check.reproduce(recording, FILE, Catalog.shipped())
    assert posed(recording).notes == ()


HANDED_OUT = "are taken by who is free"


@pytest.mark.parametrize(
    ("program", "is_handed_out"),
    [("queue", True), ("taken", True), ("pipeline", True), ("wavefront", False), ("crack", False)],
)
def test_recorded_programs_of_known_structure(program: str, is_handed_out: bool) -> None:
    """Queues and dynamic loops are handed out, rows of wavefronts and equal shares are not; either fits."""
    for path in sorted(KEPT.glob(f"4B4S-{program}-8.ampr")):
        recording = load(path)
        conditions = pose(Catalog.shipped(), recording, path, Speedup(2.0, "stated"))
        assert any(note.endswith(HANDED_OUT) for note in conditions.notes) == is_handed_out
        found = check.reproduce(recording, path, Catalog.shipped())
        assert found.sharing == "handed-out"
        assert abs(found.error) <= MISS_MAX


def test_the_writer_of_a_pipeline_takes_no_filter_s_work() -> None:
    path = KEPT / "4B4S-pipeline-8.ampr"
    conditions = pose(Catalog.shipped(), load(path), path, Speedup(2.0, "stated"))
    assert "jobs of 6 threads are taken by who is free" in conditions.notes
