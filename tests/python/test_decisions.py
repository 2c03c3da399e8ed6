"""The page of decisions is short, and other pages link to its entries by their titles."""

import re
from collections import Counter

from test_docs_links import DOCS, PAGES, anchors, links

PAGE = DOCS / "explanation/DECISIONS.md"
MOST_WORDS = 12_000
NUMBERED = re.compile(r"\b[Dd]ecision #?\d|DECISIONS\.md#\d")
"""A reference by number, as entries had once."""


def titles(text: str) -> list[str]:
    """Titles of the entries."""
    return re.findall(r"^### (.+)$", text, re.MULTILINE)


def test_the_page_keeps_to_what_is_in_force() -> None:
    words = len(PAGE.read_text(encoding="utf-8").split())
    assert words <= MOST_WORDS, f"{words} words, at most {MOST_WORDS}: drop what no longer holds"


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
