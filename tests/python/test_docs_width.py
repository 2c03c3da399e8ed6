"""The project's Markdown can be read, and its changes reviewed, without rendering it: no line is too long."""

import re
from pathlib import Path

import pytest
from test_docs_links import DOCS, ROOT

from ampsched.markdown import WIDTH

WRITTEN = {*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "lab").rglob("*.md")}
PAGES = sorted(WRITTEN)


def has_wide_tables(page: Path) -> bool:
    """Whether programs write tables into a page. What people write in long rows had better be a list."""
    return page.is_relative_to(DOCS / "reports") or page == DOCS / "explanation/performance.md"


def too_long(text: str, *, tables: bool = False) -> list[int]:
    """Numbers of the lines that should be broken: not those of one word (an address), and perhaps not tables'."""
    single_word = re.compile(r"\s*(?:[-*] )?\S+")
    return [
        number
        for number, line in enumerate(text.splitlines(), start=1)
        if len(line) > WIDTH and not single_word.fullmatch(line) and not (tables and line.startswith("|"))
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_line_is_too_long(page: Path) -> None:
    assert too_long(page.read_text(encoding="utf-8"), tables=has_wide_tables(page)) == [], (
        f"{page.relative_to(ROOT)} has lines of more than {WIDTH} columns: ampsched.markdown.wrapped breaks prose; "
        "a table of words should be a list"
    )


def test_long_lines_are_found() -> None:
    words = "word " * WIDTH
    assert too_long(f"{words}\n* {words}\nshort\n    {words}\n# {words}") == [1, 2, 4, 5]
    assert too_long(f"| {words} |") == [1]
    assert too_long(f"| {words} |", tables=True) == []
    assert too_long(f"https://example.org/{'x' * WIDTH}\n* [x](y#{'x' * WIDTH})") == []
