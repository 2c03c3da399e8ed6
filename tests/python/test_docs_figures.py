"""Figures that explanations repeat in tables are those of the reports to which they link."""

import re
from pathlib import Path

import pytest
from conftest import ROOT

NAMES = ("truth", "is-it-for-me", "costs", "contention", "core-model", "power-model")
PAGES = ["README.md", *(f"docs/explanation/{name}.md" for name in NAMES)]
PER_CENT = re.compile(r"[+-]?\d+(?:\.\d+)? ?%")
REPORT = re.compile(r"\]\(((?:\.\.|docs)/reports/[^)#]+\.md)")


def figures(text: str) -> set[str]:
    """All percentages in a text, without signs and blanks."""
    return {found.replace(" ", "").lstrip("+-") for found in PER_CENT.findall(text)}


def rows(page: str) -> list[str]:
    """The rows of a page's tables that have figures, without their heads."""
    lines = page.splitlines()
    return [
        line
        for number, line in enumerate(lines)
        if line.startswith("|") and lines[number - 1].startswith("|") and PER_CENT.search(line)
    ]


@pytest.mark.parametrize("name", PAGES)
def test_figures_are_those_of_the_reports(name: str) -> None:
    path = ROOT / name
    page = path.read_text("utf-8")
    whole = page.partition("## What it costs")[0]
    found = rows(whole)
    assert len(found) >= 3
    for row in found:
        linked = REPORT.findall(row) or REPORT.findall(page)
        texts = [(path.parent / Path(link)).read_text("utf-8") for link in set(linked)]
        known = set().union(*map(figures, texts))
        assert figures(row) <= known, f"{name}: {row}: not in {linked}: {figures(row) - known}"


def test_wrong_figures_are_found() -> None:
    assert figures("| a | 2.1% | -32.4 % |") == {"2.1%", "32.4%"}
    assert rows("| a |\n|---|\n| 3 % |\n\ntext of 4 %\n") == ["| 3 % |"]
