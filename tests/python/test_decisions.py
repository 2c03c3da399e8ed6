"""The page of decisions has an index that is right."""

from datetime import date

import pytest
from tools.decisions import PAGE, decisions, status, with_index

TEXT = """# Decisions

<!-- index: written by tools/decisions.py -->
<!-- end of the index -->

## 1. One

*2026-01-02.*

Text.

## 2. Two, in short

*2026-01-03. Amends 1.*

Text.

## 3. Three

*2026-01-04. Supersedes 1. Amends 2.*

Text.
"""


def test_the_index_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_index(page), "run: python tools/decisions.py"
    assert len(decisions(page)) >= 90


def test_an_index_tells_what_became_of_a_decision() -> None:
    every = decisions(TEXT)
    assert [each.day for each in every] == [date(2026, 1, day) for day in (2, 3, 4)]
    assert status(1, every) == "superseded by 3; amended by 2"
    assert status(2, every) == "in force; amended by 3; amends 1"
    assert status(3, every) == "in force; supersedes 1; amends 2"
    page = with_index(TEXT)
    assert (
        "\n| 2 | [Two, in short](#2-two-in-short) | 2026-01-03 | in force; amended by 3; amends 1 |\n" in page
    )
    assert with_index(page) == page


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("*2026-01-03. Amends 1.*\n\n", "", "decision 2: a line like"),
        ("Amends 1", "amends 1", "decision 2: a line like"),
        ("## 3.", "## 4.", "decision 4 should have the number 3"),
        ("Amends 2", "Amends 3", r"decision 3 replaces \[3\]"),
        ("Supersedes 1", "Supersedes 4", r"decision 3 replaces \[4\]"),
    ],
)
def test_a_decision_without_its_facts_is_refused(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(ValueError, match=message):
        decisions(TEXT.replace(old, new))
