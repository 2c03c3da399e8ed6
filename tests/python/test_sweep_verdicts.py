"""What a sweep says first: which policy is best, by how much and how sure that is."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import polars
import pytest
from conftest import ROOT, Ampsched

import ampsched

TIMED = '{"global": {"duration": 1}, "tasks": {"t": {"instance": 6, "loop": -1, "run": 1000, "sleep": 100}}}'
QUESTIONS: dict[str, tuple[str, str, list[str], dict[str, Any]]] = {
    "several programs": ("2B2S", "sync-2", ["linux", "wash", "colab"], {}),
    "one program": ("2B2S", "ferret", ["linux", "colab"], {}),
    "a duration": (
        "2B2S",
        "timed.json",
        ["cfs", "static"],
        {"core_order": "as-is"},
    ),
    "a recording": (
        "2B2S",
        str(ROOT / "docs/reports/recordings/exact/barriers-uneven.ampr"),
        ["linux", "colab"],
        {"core_order": "as-is"},
    ),
    "a policy's parameter": ("2B2S", "sync-1", ["linux", "colab"], {"over": "colab:decay=0.5..1:3"}),
    "threads": ("2B2S", "ferret", ["linux", "rr"], {"over": "n=1..4x2"}),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_same_question_has_the_verdict_of_compare(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("timed.json").write_text(TIMED)
    machine, workload, policies, more = QUESTIONS[name]
    compared = ampsched.compare(machine, workload, policies, repeat=2, limits=False, jobs=1, **more)
    swept = ampsched.sweep(machine, workload, policies, repeat=2, jobs=1, **more)
    verdicts = swept.verdicts()
    assert [each.place[:2] for each in verdicts.judged] == compared.mixes()
    for each in verdicts.judged:
        assert each.verdict == compared.verdict(*each.place[:2])
        assert each.sentences() == compared.sentences(*each.place[:2])
    along = [line for panel in compared.panels() for line in compared.told(panel)]
    assert [line for panel in verdicts.panels() for line in verdicts.told_along(panel)] == along
    one = compared.sentences(*compared.mixes()[0]) if len(compared.mixes()) == 1 else []
    assert verdicts.told() == [*one, *along]


def test_the_verdict_over_all_is_the_ranking_and_says_where_it_is_another() -> None:
    found = ampsched.sweep(["2B2S", "2B4S"], ["sync-1", "sync-2"], ["linux", "wash"], repeat=2, jobs=1)
    verdicts = found.verdicts()
    overall = verdicts.overall()
    assert overall is not None
    verdict, _ = overall
    change = found.change("wash")
    assert verdict.best == "wash"
    assert (verdict.change.mean, verdict.change.low) == pytest.approx((change.mean, change.low))
    first, by, *places = verdicts.told()
    assert first.startswith("Simulated on 2B2S, 2B4S: ")
    assert f"{100 * change.mean:+.1f} %" in by
    told = {each.name: each.verdict.word for each in verdicts.judged}
    assert "first" in told.values()
    assert any(
        line.startswith("no policy can be shown to be better than linux: sync-1 on 2B2S") for line in places
    )
    assert len(verdicts.told()) <= 2 + 6


def test_a_failed_seed_is_in_no_verdict() -> None:
    found = ampsched.sweep("2B2S", "sync-1", ["cfs", "rr", "static"], repeat=2, jobs=1)
    is_one = (polars.col("policy") == "rr") & (polars.col("seed") == 2)
    failed = polars.when(is_one).then(polars.lit("failed")).otherwise(polars.col("error")).alias("error")
    (judged,) = dataclasses.replace(found, frame=found.frame.with_columns(failed)).verdicts().judged
    assert list(judged.draws) == ["cfs", "static"]


def test_a_sweep_over_a_parameter_is_told_in_text_json_and_html(
    ampsched_here: Ampsched, tmp_path: Path
) -> None:
    page, out = tmp_path / "p.html", str(tmp_path / "r")
    arguments = ["sweep", "-m", "2B2S", "-w", "ferret", "-p", "cfs,rr", "--over", "n=1,2", "-r", "2"]
    told = json.loads(ampsched_here(*arguments, "--jobs", "1", "--out", out, "--json").out)
    ended = ampsched_here(*arguments, "--out", out, "--html", str(page))
    assert [row["workload:n"] for row in told["summary"]] == [1, 1, 2, 2]
    assert [line["policy"] for line in told["curves"][0]["lines"]] == ["cfs", "rr"]
    text = page.read_text("utf-8")
    for line in told["told"]:
        assert line in ended.out
        assert line[1:] in text
    assert 'data-form="curves"' in text
    (tmp_path / "saved.json").write_text(json.dumps(told))
    assert ampsched_here("report", str(tmp_path / "saved.json"), "--html", str(page)).code == 0
    assert 'data-form="curves"' in page.read_text("utf-8")
    refused = ampsched_here(*arguments, "--sample", "3")
    assert (refused.code, "over does not go with a sample" in refused.err) == (2, True)


def test_no_size_is_the_best_of_a_sweep() -> None:
    found = ampsched.sweep("2B2S", "ferret", ["cfs", "rr"], over="queries=5,10", repeat=1, jobs=1)
    (told,) = found.verdicts().told()
    assert told.startswith(("ferret on 2B2S: not known", "ferret on 2B2S: no policy"))


def test_another_metric_decides_if_it_is_asked_for() -> None:
    found = ampsched.sweep("2B2S", "sync-1", ["cfs", "static"], repeat=2, jobs=1)
    (judged,) = found.verdicts("makespan_ns").judged
    ms = found.frame.filter(policy="cfs").group_by("seed").agg(polars.col("makespan_ns").mean() / 1e6)
    assert sorted(judged.draws["cfs"]) == pytest.approx(sorted(ms["makespan_ns"]))
    assert " ms" in judged.sentences()[1] or " s" in judged.sentences()[1]
    with pytest.raises(ampsched.InputError, match="energy_j"):
        found.verdicts("energy_j")


@pytest.mark.parametrize("margin", [0.5, 0.0])
def test_a_margin_says_who_is_no_worse(margin: float) -> None:
    found = ampsched.sweep("2B2S", "sync-1", ["cfs", "rr"], repeat=2, jobs=1, margin=margin)
    compared = ampsched.compare(
        "2B2S", "sync-1", ["cfs", "rr"], repeat=2, margin=margin, limits=False, jobs=1
    )
    assert found.verdicts().judged[0].verdict.alike == compared.verdict("2B2S", "sync-1").alike


def test_a_page_of_options_tells_them_apart(ampsched_here: Ampsched, tmp_path: Path) -> None:
    page = tmp_path / "p.html"
    line = "sweep -m 2B2S -w sync-1 -p cfs,rr --noise none --noise idle --core-order as-is --jobs 1 --html"
    assert ampsched_here(*line.split(), str(page)).code == 0
    text = page.read_text("utf-8")
    assert "Each workload and machine" in text
    assert text.count("<td>idle</td>") == 3
