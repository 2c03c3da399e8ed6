"""``ampsched reproduce``: what the product's command passes on, what is refused, shown, and made into a page."""

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from conftest import ROOT, Ampsched, has

from ampsched_lab.papers import command

sys.path.append(str(ROOT / "tests/python"))
from browser import needs_chromium, opened

HTML_BYTES_MAX = 3_000_000
REFUSED = {
    ("colap",): 'unknown value of paper "colap"',
    ("colab", "--only", "fig55"): '--only "fig55" is no part of this experiment (did you mean "fig5"?)',
    ("colab", "--repeats", "-1"): "--repeats -1 is not within 1 to 1000",
}


@pytest.mark.parametrize("arguments", REFUSED)
def test_wrong_arguments_are_refused_in_one_line(ampsched_here: Ampsched, arguments: tuple[str, ...]) -> None:
    ended = ampsched_here("reproduce", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert REFUSED[arguments] in ended.err.replace("\n", " ")
    assert "Traceback" not in ended.err


def test_the_laboratory_prints_the_help(ampsched_here: Ampsched) -> None:
    ended = ampsched_here("reproduce", "--help")
    assert ended.code == 0
    assert "ampsched reproduce colab --only fig5" in ended.out
    assert "--max-repeats" in ended.out


def digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_files_of_reproduce(ampsched_process: Ampsched, tmp_path: Path) -> None:
    arguments = ("reproduce", "colab", "--only", "fig4", "--repeats", "1", "--max-repeats", "1")
    for jobs in ("1", "2"):
        ended = ampsched_process(*arguments, "--jobs", jobs, "--out", jobs)
        assert ended.code == 0, ended.err
    one, two = digests(tmp_path / "1"), digests(tmp_path / "2")
    assert len(one) >= 5
    assert one == two


def test_a_signal_ends_it_soon_and_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    path = os.pathsep.join(map(os.path.abspath, filter(None, [*sys.path, str(ROOT / "lab")])))
    process = subprocess.Popen(
        [sys.executable, "-m", "ampsched", "reproduce", "colab", "--out", "out"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    while not (tmp_path / "out/colab").is_dir() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (128 + signal.SIGTERM, b"")
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def kept_reproduction() -> tuple[SimpleNamespace, list[Path]]:
    """The claims of the committed report with the most."""
    claims = pl.read_csv(ROOT / "docs/reports/colab/claims.csv", infer_schema_length=None).to_dicts()
    judged = [
        SimpleNamespace(
            claim=SimpleNamespace(source=row["source"], apart=row["apart"] or ""),
            result=SimpleNamespace(verdict=row["verdict"]),
        )
        for row in claims
    ]
    result = SimpleNamespace(title="COLAB (CGO 2020), reproduced", claims=judged, records=lambda: claims)
    return result, [Path("out/colab/report.md"), Path("out/colab/claims.csv")]


def shown(told: Mapping[str, Any]) -> Iterator[str]:
    yield from told["title"].split()
    for row in told["figures"]:
        yield from row["figure"].split()
        yield from (str(value) for key, value in row.items() if key != "figure")
    for row in told["claims"]:
        yield row["id"]
        for key in ("claim", "paper", "ours", "verdict", "apart"):
            yield from (row[key] or "").split()
    yield from told["files"]


def test_the_text_has_every_label_and_number_of_the_json(
    ampsched_here: Ampsched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_reproduce", lambda *_: kept_reproduction())
    wanted = Counter(shown(json.loads(ampsched_here("reproduce", "colab", "--json").out)))
    for width in (60, 80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        text = ampsched_here("reproduce", "colab").out
        missing = [word for word, count in wanted.items() if not has(text, word, count)]
        assert not missing, f"at {width} columns\n{text}"
    rows = pl.read_csv(
        io.StringIO(ampsched_here("reproduce", "colab", "--format", "csv").out), infer_schema_length=None
    )
    assert rows.height > 50


@needs_chromium
def test_the_report_of_colab_is_small_and_complete(ampsched_here: Ampsched, tmp_path: Path) -> None:
    path = tmp_path / "colab.html"
    assert ampsched_here("report", str(ROOT / "docs/reports/colab"), "--html", str(path)).code == 0
    assert path.stat().st_size < HTML_BYTES_MAX
    with opened(path) as found:
        assert found.problems == []
        assert found.page.locator(".rich img").evaluate_all("all => all.every(each => each.naturalWidth > 0)")
        rows = (ROOT / "docs/reports/colab/claims.csv").read_text().count(",reproduced,")
        found.page.locator(".filter input[value='not reproduced']").uncheck()
        found.page.locator(".filter input[value='direction only']").uncheck()
        left = found.page.locator("table.sortable").last.locator("tr[data-group]:visible")
        assert 0 < left.count() <= rows + 1
