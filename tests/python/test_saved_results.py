"""``ampsched report`` and ``--html``: what is no result is refused in one line, and nothing is lost."""

import json
from pathlib import Path

import pytest
from conftest import Ampsched
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ampsched
from ampsched._core import InputError
from ampsched.report import Asked, comparing, html, saved, single

BAD = {
    "": "is no JSON",
    "{": "is no JSON: line 1",
    "3": "is not the JSON of a command that compares",
    "[]": "is not the JSON of a command that compares",
    "{}": "is not the JSON of a command that compares",
    '{"policies": [], "summary": [], "runs": [], "notes": [], "caveats": []}': "damaged, or of another version",
    '{"policies": 1, "summary": 2, "runs": 3, "notes": 4, "caveats": 5}': "damaged, or of another version",
    '[{"policy": "x", "makespan_s": "long", "lower_bound_s": 1, "utilisation": []}]': "damaged, or of another version",
    "[" * 100_000: "nested too deeply",
}


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:20] or "empty")
def test_what_is_no_result_is_refused_in_one_line(ampsched_here: Ampsched, tmp_path: Path, text: str) -> None:
    path, page = tmp_path / "x.json", tmp_path / "x.html"
    path.write_text(text)
    ended = ampsched_here("report", str(path), "--html", str(page))
    assert ended.code == 2
    assert ended.err.startswith(f"error: {path}: ")
    assert BAD[text] in ended.err
    assert ended.err.count("\n") == 1
    assert not page.exists()


def test_a_folder_of_something_else_is_refused(ampsched_here: Ampsched, tmp_path: Path) -> None:
    ended = ampsched_here("report", str(tmp_path), "--html", str(tmp_path / "x.html"))
    assert ended.code == 2
    assert "it lacks report.md or claims.csv" in ended.err


def test_a_page_that_cannot_be_written_leaves_the_old_one_and_the_answer(
    ampsched_here: Ampsched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "x.html"
    old = '<meta name="generator" content="ampsched 0.0">'
    page.write_text(old)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", str(page))

    monkeypatch.setattr("ampsched.report.page.write_text", full)
    ended = ampsched_here("compare", "-m", "2B2S", "-w", "sync-1", "-p", "cfs", "--html", str(page))
    assert ended.code == 2
    assert "H_ANTT" in ended.out, "the tables were printed before"
    assert ended.err == f"error: {page}: No space left on device\n"
    assert page.read_text() == old


RESULT = json.loads(json.dumps(ampsched.compare("2B2S", "sync-1", ["cfs", "static"], repeat=2).to_dict()))
LEAF = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("<&é\0", max_size=3) | st.just([]) | st.just({})
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_results_are_pages_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    """Whatever single value is replaced."""
    values = json.loads(json.dumps(RESULT))
    place = values
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if not (isinstance(place[key], dict | list) and place[key]) or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(LEAF)
    path = tmp_path / "x.json"
    path.write_text(json.dumps(values))
    try:
        text = html(saved.page(path))
    except InputError as error:
        text = str(error)
    assert text.startswith(("<!DOCTYPE html>", str(path)))


def test_pages_are_the_same_each_time() -> None:
    outcome = ampsched.simulate("2B2S", "sync-1", "colab")
    make = [
        lambda: comparing.page(RESULT, Asked()),
        lambda: single.page(outcome.to_dict(), Asked(), ampsched.timeline("2B2S", "sync-1", "colab")),
    ]
    for each in make:
        assert html(each()) == html(each())


def test_the_answer_says_how_sure_it_is() -> None:
    once = comparing.page(ampsched.compare("2B2S", "sync-2", ["linux", "wash"], repeat=1).to_dict(), Asked())
    assert once.answer.startswith("Simulated on 2B2S: for sync-2 no difference from linux can be shown")
    assert "chance is not known of one draw" in once.certainty
    often = comparing.page(ampsched.compare("2B2S", "sync-2", ["linux", "wash"], repeat=5).to_dict(), Asked())
    assert often.answer.startswith("Simulated on 2B2S: wash is better in simulation for sync-2 than linux")
    assert "by chance ±" in often.certainty
    assert "How far the model is off here was not measured" in often.certainty
    pairs = ampsched.compare(["2B2S", "2B4S"], "sync-1", ["linux", "wash"], repeat=2)
    assert comparing.page(pairs.to_dict(), Asked()).answer.startswith(
        ("Stay with linux", "Simulated: no policy is surely better")
    )
    same = comparing.page(
        ampsched.compare("2B2S", "sync-2", ["cfs", "cfs:latency_ms=0"], repeat=2).to_dict(), Asked()
    )
    assert same.answer.startswith("Simulated on 2B2S: stay with cfs")


def test_many_turns_are_joined_and_keep_their_time() -> None:
    from ampsched.report import parts

    found = ampsched.timeline("2B2S", "sync-2", "colab")
    wide = parts.timeline_chart(found, "x").data["spans"]
    before = parts.TURNS_MAX
    parts.TURNS_MAX = 300
    try:
        chart = parts.timeline_chart(found, "x")
    finally:
        parts.TURNS_MAX = before
    spans = chart.data["spans"]
    assert len(spans) <= 310 < len(wide)
    assert "joined" in chart.note
    for core in range(4):
        busy = [sum(end - start for at, start, end, *_ in each if at == core) for each in (wide, spans)]
        assert busy[0] == pytest.approx(busy[1], rel=1e-3)


def test_latencies_are_shown_if_a_result_has_them() -> None:
    values = json.loads(json.dumps(RESULT))
    for run in values["runs"]:
        for key in ("p50_ns", "p95_ns", "p99_ns", "max_ns"):
            run.pop(f"latency_{key}", None)
    assert all(section.title != "Wake-up latency" for section in comparing.page(values, Asked()).sections)
    for run in values["runs"]:
        run.update(
            latency_p50_ns=1_000_000,
            latency_p95_ns=2_000_000,
            latency_p99_ns=3_000_000,
            latency_max_ns=4_000_000,
        )
    base = {"policy": "cfs", "thread": None, "of": "latency"}
    buckets = [{**base, "upper_ns": 900, "count": 3}, {**base, "upper_ns": 1_000_001, "count": 1}]
    buckets += [
        {**base, "upper_ns": 5, "count": 9, "thread": "t"},
        {**base, "upper_ns": 5, "count": 9, "of": "frame"},
    ]
    pages = comparing.page(values, Asked(), buckets)
    table, chart = next(section for section in pages.sections if section.title == "Wake-up latency").blocks
    assert [cell.text for cell in table.rows[0].cells[2:]] == ["1.000", "2.000", "3.000", "4.000"]
    shares = dict(zip(chart.data["bounds"], chart.data["series"][0]["shares"], strict=True))
    assert {bound: share for bound, share in shares.items() if share} == {"0.001": 75.0, "2": 25.0}
