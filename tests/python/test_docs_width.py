"""The Markdown of the project can be read, and its changes reviewed, without rendering it: its lines are not too long."""

import re
from pathlib import Path

import pytest
from test_docs_links import DOCS, ROOT

from ampsched.markdown import WIDTH

# Their generators do not break lines yet.
NOT_YET = {DOCS / f"reports/{paper}/report.md" for paper in ("chronaki", "colab", "hfee", "prop-sp")}
WRITTEN = {*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "calibration").rglob("*.md")}
PAGES = sorted(WRITTEN - NOT_YET)


def cannot_be_broken(line: str) -> bool:
    """Whether a line is the row of a table, or a single word, such as the address of a link."""
    return line.startswith("|") or re.fullmatch(r"\s*(?:[-*] )?\S+", line) is not None


def too_long(text: str) -> list[int]:
    """Numbers of the lines that should be broken."""
    lines = enumerate(text.splitlines(), start=1)
    return [number for number, line in lines if len(line) > WIDTH and not cannot_be_broken(line)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_line_is_too_long(page: Path) -> None:
    assert too_long(page.read_text(encoding="utf-8")) == [], (
        f"{page.relative_to(ROOT)} has lines of more than {WIDTH} columns; ampsched.markdown.wrapped breaks them"
    )


def test_long_lines_are_found() -> None:
    words = "word " * WIDTH
    assert too_long(f"{words}\n* {words}\nshort\n    {words}\n# {words}") == [1, 2, 4, 5]
    assert too_long(f"| {words} |\nhttps://example.org/{'x' * WIDTH}\n* [x](y#{'x' * WIDTH})") == []
