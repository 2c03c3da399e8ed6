"""Results along a parameter, and names that tell files apart."""

import json
import re
import shutil
from pathlib import Path

import pytest
from conftest import Ampsched

import ampsched
from ampsched import InputError
from ampsched.naming import told_apart
from ampsched.over import Over
from ampsched.parameters import Parameters


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("n=1..4", "1 2 3 4"),
        ("n=1..16/5", "1 6 11 16"),
        ("n=1..9x2", "1 2 4 8"),
        ("n=0.5..1:3", "0.5 0.75 1"),
        ("n=1,4..5", "1 4 5"),
    ],
)
def test_ranges_have_these_values(text: str, values: str) -> None:
    assert Over.of(text).values == tuple(values.split())


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("n", "is not of the form"),
        ("n=16..1", "is empty"),
        ("n=1..100000", "number of values = 100000 is not within 2 to 1000"),
        ("n=0.5..1", "is not between whole numbers"),
        ("n=1..4x1", "factor = 1 is not above 1"),
        ("n=1,1", "names 1 twice"),
        ("n=a", "is no number and no range"),
        ("m=1..4", "there are n, queries of ferret; big, little of 2B2S; latency_ms"),
        ("quries=1..4", 'unknown parameter "quries" (did you mean "queries"?)'),
        (
            "cfs:nope=1,2",
            'of cfs "nope" (there are latency_ms, min_granularity_ms, wakeup_granularity_ms of cfs)',
        ),
        ("cfs:latency=1,2", 'unknown parameter of cfs "latency" (did you mean "latency_ms"?)'),
        ("big@=600,800", '"big@" cannot be varied: big of 2B2S has one clock, 2000 MHz'),
    ],
)
def test_what_is_no_range_or_parameter_is_refused(text: str, what: str) -> None:
    with pytest.raises(InputError, match=re.escape(what)):
        ampsched.compare("2B2S", "ferret", ["cfs"], over=text)


def test_a_parameter_is_a_column_and_has_a_best_value_under_each_policy() -> None:
    found = ampsched.compare("2B2S", "ferret", ["cfs", "rr"], over="n=1,4", repeat=2)
    assert found.to_polars()["workload:n"].unique().sort().to_list() == [1.0, 4.0]
    assert [row["workload:n"] for row in found.rows()] == [1.0, 1.0, 4.0, 4.0]
    (panel,) = found.panels()
    assert "turnaround is best at n = 4 under cfs" in found.told(panel)[0]


def test_no_amount_of_work_is_the_best() -> None:
    found = ampsched.compare(
        "2B2S", "ferret", ["cfs", "rr"], over="queries=5,10", repeat=1, core_order="as-is"
    )
    (panel,) = found.panels()
    assert panel.changes_work
    assert [line.is_curve for line in panel.lines] == [True, True]
    (told,) = found.told(panel)
    assert "is best at" not in told
    alone = ampsched.compare("2B2S", "ferret", ["cfs"], over="queries=5,10", repeat=1, core_order="as-is")
    assert alone.told(alone.panels()[0]) == []


def test_a_trace_is_of_one_value(ampsched_here: Ampsched, tmp_path: Path) -> None:
    trace = str(tmp_path / "x.pftrace")
    made = ampsched_here(
        "compare", "-m", "2B2S", "-w", "ferret", "-p", "cfs", "--over", "n=1,2", "--trace", trace
    )
    assert made.code == 2
    assert "leave out --over n=1,2" in made.err


def test_verdicts_have_the_same_word_in_every_format(ampsched_here: Ampsched) -> None:
    arguments = ["compare", "-m", "2B2S", "-w", "sync-2", "-p", "linux,wash", "--repeat", "1"]
    (verdict,) = json.loads(ampsched_here(*arguments, "--json").out)["verdicts"]
    assert verdict["word"] == "not known"
    assert "(not known)" in verdict["text"][0]
    assert verdict["text"][0] in ampsched_here(*arguments).out
    assert verdict["text"][0] in ampsched_here(*arguments, "--format", "csv").out


def test_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    source = Path(ampsched.__file__).parent / "data/programs/ferret.toml"
    files = [tmp_path / folder / "x.toml" for folder in "ab"]
    for file in files:
        file.parent.mkdir()
        shutil.copy(source, file)
    found = ampsched.compare("2B2S", [str(file) for file in files], ["cfs"], repeat=1)
    assert [workload for _, workload in found.mixes()] == ["ferret (a/x.toml)", "ferret (b/x.toml)"]
    assert told_apart(["x", "x"], ["a/x.toml", "./a/x.toml"]) == ["x", "x"]


def test_usual_values_stand_beside_stated_ones() -> None:
    labels = {"machine": ["exynos5422:big=2", "exynos5422"], "workload": ["ferret"], "policy": ["cfs"]}
    found = Parameters.of(labels)  # type: ignore[arg-type]
    assert found.values("exynos5422", "ferret") == {"machine:big": 4.0}


def test_a_sweep_does_not_mix_two_files_of_one_name(tmp_path: Path) -> None:
    text = (Path(ampsched.__file__).parent / "data/programs/ferret.toml").read_text()
    files = [tmp_path / "a.toml", tmp_path / "b.toml"]
    for number, file in enumerate(files):
        file.write_text(text.replace("queries = 40", f"queries = {40 + number}"))
    with pytest.raises(InputError, match="is the name of two different files"):
        ampsched.sweep("2B2S", [str(file) for file in files], ["cfs"], jobs=1)
