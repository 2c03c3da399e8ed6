"""Every report begins with three sentences and one figure, made from its own data."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import polars
import pytest
from conftest import ROOT

from ampsched.markdown import wrapped
from ampsched_lab.best import measured
from ampsched_lab.best import report as best
from ampsched_lab.optimum import report as optimum
from ampsched_lab.papers import claims
from ampsched_lab.prediction import degradation
from ampsched_lab.shared.summary import opening

sys.path[:0] = [str(ROOT / "tests/attack"), str(ROOT / "lab/calibration/prediction")]
import attack  # noqa: E402
import opening as prediction  # noqa: E402
import records  # noqa: E402

from ampsched_lab.campaign.store import Store  # noqa: E402
from ampsched_lab.cores import report as cores  # noqa: E402
from ampsched_lab.gain import report as gain  # noqa: E402
from ampsched_lab.gain.results import Results  # noqa: E402
from ampsched_lab.kernels import report as kernels  # noqa: E402
from ampsched_lab.recordings import exact, lifted, native  # noqa: E402
from ampsched_lab.recordings import opening as recordings  # noqa: E402
from ampsched_lab.shared import summaries  # noqa: E402
from ampsched_lab.storms import report as storms  # noqa: E402

REPORTS = ROOT / "docs/reports"
TOLD_BY_PEOPLE = {"attack/found.md"}
"""Pages beside reports."""
PAGES = sorted(
    name for path in REPORTS.rglob("*.md") if (name := str(path.relative_to(REPORTS))) not in TOLD_BY_PEOPLE
)
END = re.compile(r"(?<=[.!?])\**\s+(?=[*`]*[A-Z0-9])")


def blocks(name: str) -> list[str]:
    """Blocks of a page without comments."""
    text = re.sub(r"<!--.*?-->\n*", "", (REPORTS / name).read_text("utf-8"))
    return [block for block in text.split("\n\n") if block.strip()]


@pytest.mark.parametrize("name", PAGES)
def test_a_report_begins_with_three_sentences_and_one_figure(name: str) -> None:
    title, paragraph, figure, *_ = blocks(name)
    assert title.startswith("# ")
    assert len(END.split(paragraph)) == 3, paragraph
    found = re.fullmatch(r"!\[.+\]\(([\w.-]+\.svg)\)", figure.strip())
    assert found, figure
    assert (REPORTS / name).with_name(found[1]).exists()


def of_prediction() -> str:
    page = (REPORTS / "prediction/report.md").read_text("utf-8")
    return prediction.answer(prediction.rows_of(page.splitlines()), 10, 85)


def of_degradation() -> str:
    rows = polars.read_csv(REPORTS / "prediction/degradation.csv").rows(named=True)
    return degradation.answer([degradation.Point.of(row) for row in rows])


def of_optimum() -> str:
    return optimum.text(optimum.read(REPORTS / "optimum"))


def of_best() -> str:
    found = measured.read(REPORTS / "best")
    return best.text(found, measured.read_first(REPORTS / "best", found))


def of_storms() -> str:
    entries = storms.read(REPORTS / "storms")
    return storms.answer([entries[cell] for cell in sorted(entries)])


def of_attack() -> str:
    files = (REPORTS / f"attack/{part}.json" for part in attack.PARTS)
    return records.answer([records.read(file) for file in files if file.exists()])


def of_recordings() -> str:
    forms = {native: native.Row, exact: exact.Row, lifted: lifted.Row}
    found = (recordings.kept(REPORTS / "recordings" / each.FILE, form) for each, form in forms.items())
    return recordings.answer(*found)


def of_live() -> str:
    names = (gain.KERNEL, *gain.PEERS, *gain.OURS)
    return gain.answer(Results.read(Store(ROOT / "lab/data/live"), list(gain.MACHINES), names))


def of_cores(folder: Path) -> str:
    results = cores.Results.read(Store(ROOT / "lab/data/cores"), folder, folder, folder)
    return cores.answer(results, "many-cores.svg")


DATA: dict[str, Callable[[], str]] = {
    "prediction/report.md": of_prediction,
    "prediction/degradation.md": of_degradation,
    "best/report.md": of_best,
    "optimum/report.md": of_optimum,
    "kernels/report.md": lambda: kernels.answer(kernels.read(REPORTS / "kernels")),
    "storms/report.md": of_storms,
    "attack/report.md": of_attack,
    "recordings/report.md": of_recordings,
    "live/report.md": of_live,
    "claims.md": lambda: claims.answer({name: claims.claims_of(name) for name in claims.EXPERIMENTS}),
}


@pytest.mark.parametrize("name", DATA)
def test_the_sentences_are_those_of_the_data(name: str) -> None:
    _, paragraph, figure, *_ = blocks(name)
    told = wrapped(DATA[name]()).split("\n\n")
    begin = 1 if told[0].startswith("# ") else 0
    assert told[begin : begin + 2] == [paragraph.strip(), figure.strip()]


def test_the_sentences_on_many_cores_are_those_of_the_data(tmp_path: Path) -> None:
    _, paragraph, figure, *_ = blocks("truth/cores.md")
    assert wrapped(of_cores(tmp_path)).split("\n\n") == [paragraph, figure]


@pytest.mark.parametrize("name", summaries.PAGES)
def test_the_sentences_on_errors_are_those_of_the_tables(name: str) -> None:
    text, kind = (ROOT / name).read_text("utf-8"), summaries.PAGES[name]
    assert len(summaries.errors(text, kind)) >= 7
    assert summaries.opened(text, kind) == text, f"run: python -m ampsched_lab.shared.summaries {name}"
    assert summaries.opened(summaries.opened(text, kind), kind) == text


def test_errors_are_read_from_tables() -> None:
    text = """# Title

## A section: more

| case | measured | simulated | error |
|---|---:|---:|---:|
| [one](x.md) | 1 | 2 | +100 % |
| `two` | 4 | 3, 5 | -25.0 %, +25.0 % |
| three (sets it) | 1 | 1 | 0 % |

| case | spread |
|---|---:|
| four | 5 % |
"""
    kind = summaries.Kind("x.svg", "cases", 0.5, leaves_out=r"\(sets ")
    found = summaries.errors(text, kind)
    assert [(each.group, each.name, each.value) for each in found] == [
        ("A section", "one", 1.0),
        ("A section", "two", -0.25),
        ("A section", "two", 0.25),
    ]
    page = summaries.opened(text, kind)
    flat = " ".join(page.split())
    assert "**Of 3 cases 2 are within 50 % of what was measured, and the mean is 50.0 % off.**" in page
    assert "The worst single one is *one* (A section), +100.0 %." in flat
    worse = page.replace("+100 %", "+200 %")
    assert "*one* (A section), +200.0 %." in " ".join(summaries.opened(worse, kind).split())
    assert summaries.opened(worse, kind).count("**Of ") == 1


def test_an_opening_has_three_sentences() -> None:
    assert opening(["**A.**", "B.", "C."], "x.svg", "what") == "**A.** B. C.\n\n![what](x.svg)"
    for wrong in (["A.", "B."], ["A.", "B.", "C"], ["A.", "B.", "C.", "D."]):
        with pytest.raises(ValueError, match="begins with 3 sentences"):
            opening(wrong, "x.svg", "what")


def test_a_failure_comes_first() -> None:
    kept = json.loads((REPORTS / "attack/kills.json").read_text("utf-8"))
    failure = {"what": "a thread stayed frozen", "repeat": "make attack"}
    record = records.Record(**{**kept, "failures": [records.Failure(**failure)]})
    assert records.answer([record]).startswith("**1 time something failed in 2,000 kills and faults.**")
