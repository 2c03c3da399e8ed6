"""Entries of the page of decisions have titles of their own, by which other pages link to them."""

import re
from collections import Counter

from test_docs_links import DOCS, PAGES, anchors, links

PAGE = DOCS / "explanation/DECISIONS.md"
NUMBERED = re.compile(r"\b[Dd]ecision #?\d|DECISIONS\.md#\d")
"""A reference by number, as entries had once."""


def titles(text: str) -> list[str]:
    """Titles of the entries."""
    return re.findall(r"^### (.+)$", text, re.MULTILINE)


def test_each_entry_has_a_title_of_its_own() -> None:
    text = PAGE.read_text(encoding="utf-8")
    found = titles(text)
    assert len(found) >= 80
    assert [title for title, times in Counter(map(str.lower, found)).items() if times > 1] == []
    # A title that differs in punctuation only has the same anchor.
    assert len(anchors(PAGE)) == len(re.findall(r"^#+ ", text, re.MULTILINE))


def test_pages_link_to_entries_not_to_numbers() -> None:
    linked = [
        anchor
        for page in PAGES
        for target in links(page)
        for name, _, anchor in [target.partition("#")]
        if name.endswith(PAGE.name) and anchor
    ]
    assert linked, "no page links to an entry"
    assert set(linked) <= anchors(PAGE)
    assert [page.name for page in PAGES if NUMBERED.search(page.read_text(encoding="utf-8"))] == []
