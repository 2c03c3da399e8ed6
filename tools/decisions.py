"""Writes the index at the top of docs/explanation/DECISIONS.md: ``python tools/decisions.py``.

Below its heading each decision has a line with the day on which it was taken and the earlier ones that it replaces,
wholly or in part: ``*2026-11-22. Supersedes 12. Amends 80, 88.*``. What became of a decision follows from the later
ones.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from ampsched.markdown import table

PAGE = Path(__file__).resolve().parents[1] / "docs/explanation/DECISIONS.md"
BEGIN, END = "<!-- index: written by tools/decisions.py -->\n", "<!-- end of the index -->\n"
HEADING = re.compile(r"^## (\d+)\. (.+)$", re.MULTILINE)
NUMBERS = r"(\d+(?:, \d+)*)"
FACTS = re.compile(rf"\n\n\*(\d{{4}}-\d\d-\d\d)\.(?: Supersedes {NUMBERS}\.)?(?: Amends {NUMBERS}\.)?\*\n\n")


@dataclass(frozen=True)
class Decision:
    """A chapter of the page."""

    number: int
    title: str
    day: date
    supersedes: tuple[int, ...]
    """Earlier decisions that no longer hold."""
    amends: tuple[int, ...]
    """Earlier decisions of which a part no longer holds, or to which something was added."""

    @property
    def link(self) -> str:
        """A link to the chapter from the same page."""
        words = re.sub(r"[^\w\s-]", "", f"{self.number}. {self.title}").lower()
        anchor = re.sub(r"[-\s]+", "-", words)
        return f"[{self.title}](#{anchor})"


def decisions(page: str) -> list[Decision]:
    """All decisions of the page, as they follow each other.

    Raises:
        ValueError: If one is not numbered in turn, has no line with its day, or replaces one that is not earlier.
    """
    found: list[Decision] = []
    for number, heading in enumerate(HEADING.finditer(page), start=1):
        name = f"decision {heading[1]}"
        facts = FACTS.match(page, heading.end())
        if int(heading[1]) != number:
            raise ValueError(f"{name} should have the number {number}")
        if facts is None:
            raise ValueError(f"{name}: a line like *2026-11-22. Amends 3, 4.* should follow the heading")
        supersedes, amends = _numbers(facts[2]), _numbers(facts[3])
        if late := [other for other in supersedes + amends if other >= number]:
            raise ValueError(f"{name} replaces {late}, which is not earlier")
        found.append(Decision(number, heading[2], date.fromisoformat(facts[1]), supersedes, amends))
    return found


def _numbers(text: str | None) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(", ")) if text else ()


def status(number: int, every: Sequence[Decision]) -> str:
    """What became of a decision, and what it replaced."""
    own = every[number - 1]
    superseded = [other.number for other in every if number in other.supersedes]
    amended = [other.number for other in every if number in other.amends]
    parts = [
        _part("superseded by", superseded) or "in force",
        _part("amended by", amended),
        _part("supersedes", own.supersedes),
        _part("amends", own.amends),
    ]
    return "; ".join(part for part in parts if part)


def _part(what: str, numbers: Sequence[int]) -> str:
    return f"{what} {', '.join(map(str, numbers))}" if numbers else ""


def with_index(page: str) -> str:
    """The page with the index between its two marks made anew."""
    every = decisions(page)
    rows = ((str(each.number), each.link, each.day.isoformat(), status(each.number, every)) for each in every)
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{table(('', 'decision', 'day', 'status'), rows)}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_index(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
