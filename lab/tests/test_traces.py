"""Traces of real chips: what is judged, and the page."""

import json
from pathlib import Path

import pytest

from ampsched_lab.traces import judge, report
from ampsched_lab.traces.data import FOLDER, ROOT, traces


def test_misplaced_is_weighed_by_time_and_what_is_not_predicted_is_wrong() -> None:
    real = {"a": {0: 30, 1: 10}, "b": {1: 60}}
    assert judge.misplaced(real, {name: judge.shares(each) for name, each in real.items()}) == 0
    assert judge.misplaced(real, {"a": {0: 0.75, 1: 0.25}, "b": {0: 1.0}}) == pytest.approx(0.6)
    assert judge.misplaced(real, {"a": {0: 0.25, 1: 0.75}, "b": {1: 1.0}}) == pytest.approx(0.2)
    assert judge.misplaced(real, {"b": {1: 1.0}}) == pytest.approx(0.4)
    own, others = judge.trivial("x", {"x": real, "y": {"a": {0: 1}}})
    assert own.misplaced == pytest.approx(0.4 * 0.45 + 0.6 * 0.3)
    assert others.misplaced == pytest.approx(0.4 * 0.25 + 0.6)


def test_the_page_is_that_of_what_was_judged(tmp_path: Path) -> None:
    report.write(tmp_path / "traces.md")
    page = (tmp_path / "traces.md").read_text("utf-8")
    assert page == (ROOT / "docs/reports/models/traces.md").read_text("utf-8"), "make -C lab traces"


def test_a_trace_is_judged_as_it_was() -> None:
    """The ramp anew: all take `make -C lab traces`."""
    kept = json.loads((FOLDER / "judged.json").read_text("utf-8"))
    ramp = next(trace for trace in traces() if trace.name == "juno-ramp")
    _, rows = judge.judge(ramp)
    for row in rows:
        before = next(each for each in kept if (each["trace"], each["policy"]) == (row.trace, row.policy))
        assert before["misplaced"] == pytest.approx(row.misplaced)
        assert before["cpu_error"] == pytest.approx(row.cpu_error)
