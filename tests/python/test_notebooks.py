"""The example notebooks run, and their pages show what they print."""

from pathlib import Path

import pytest
from conftest import ROOT
from tools import notebooks

import ampsched

SOURCES = sorted(notebooks.SOURCES.glob("*.py"))


@pytest.mark.filterwarnings("default")  # of Jupyter's own libraries
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_a_notebook_runs_and_its_page_shows_what_it_prints(source: Path) -> None:
    shown = source.with_suffix(".md").read_text(encoding="utf-8")
    assert notebooks.page(source) == shown, f"make bless ONLY=notebooks writes {source.stem}.md anew"


def test_the_site_shows_all_notebooks() -> None:
    site = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    assert SOURCES
    assert [source.stem for source in SOURCES if f"notebooks/{source.stem}.md" not in site] == []


NAME = "<script>alert(1)</script>"


def test_results_show_themselves_and_escape_names() -> None:
    result = ampsched.compare("2B2S", "sync-1", ["cfs", "static"])
    outcome, timeline = ampsched.simulate("2B2S", "sync-1"), ampsched.timeline("2B2S", "sync-1")
    graph = ampsched.TaskGraph.read("x.csv", f"a,1,{NAME},\nb,1,,a\n")
    schedule = ampsched.run_tasks(graph, "1x2,1x1", "heft")
    machine = ampsched.Catalog.shipped().machine("2B2S")
    for each, fact in {
        result: f"{result.summary()[0].h_antt.mean:.3f}",
        outcome: f"{outcome.makespan_ns / 1e6:,.2f}",
        timeline: "busy %",
        schedule: f"{schedule.makespan_s:g} s",
        machine: "cortex-a57",
    }.items():
        text = each._repr_html_()
        assert fact in text
        assert "<script" not in text
        assert "\n\n" not in text, "an empty line would end the HTML in Markdown"
        assert len(repr(each).splitlines()) <= 30


def test_many_rows_are_cut_and_counted() -> None:
    result = ampsched.compare(
        ["2B2S", "2B4S", "4B2S", "4B4S"], ["sync-1", "ferret", "sync-2"], ["cfs", "static", "rr"]
    )
    assert "6 more rows" in result._repr_html_()


def test_a_timeline_is_a_flat_frame_that_adds_up() -> None:
    found = ampsched.timeline("2B2S", "sync-2", "colab", noise="idle")
    frame = found.to_polars()
    assert frame.columns == ["core", "app", "thread", "start_ns", "end_ns"]
    for core, outcome in enumerate(found.outcome.cores):
        turns = frame.filter(frame["core"] == core).sort("start_ns")
        assert (turns["start_ns"][1:] >= turns["end_ns"][:-1]).all(), "one at a time"
        threads = turns.filter(turns["app"] != "system")
        # The system's interrupts are part of turns; what switching takes lies before them.
        ran_ns = (threads["end_ns"] - threads["start_ns"]).sum()
        assert outcome.busy_ns - outcome.overhead_ns <= ran_ns <= outcome.busy_ns
    assert found.outcome.to_dict() == ampsched.simulate("2B2S", "sync-2", "colab", noise="idle").to_dict()
