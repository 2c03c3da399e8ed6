"""How much there is to read: at most `LIMIT` words that people wrote.

All pages at the top of the project and under docs count, with their tables and code. Left out are only pages that a
program writes as a whole (a row of tools/generated.toml says by which command), which are looked up and not read;
executed notebooks are among them. A number and its "%" are one word, and prose writes both in one way.
"""

import fnmatch
import re
from pathlib import Path

from conftest import ROOT
from tools import bless

LIMIT = 67_200
ONE_PAGE = {
    "README.md": 800,
    "CHANGELOG.md": 2_000,
    "CONTRIBUTING.md": 1_000,
    "docs/tutorial": 1_500,
    "docs/howto": 900,
    "docs/explanation": 2_000,
    "docs/explanation/DECISIONS.md": 12_150,
}
"""Words of a page or of each page of a folder, code and tables included."""
LOOKED_UP = ("docs/reports/", "docs/reference/", "docs/notebooks/")
"""Where pages that programs write may be. Elsewhere a page counts even if a program writes a part of it."""
REFERENCE = "docs/reference/*.md"
"""Of these some are written by people: those without the mark."""
MARK = "<!-- Written by"


def is_generated(page: Path) -> bool:
    """Whether a program writes a whole page."""
    name = page.relative_to(ROOT).as_posix()
    if not name.startswith(LOOKED_UP):
        return False
    rows = bless.generated(bless.LIST.read_text(encoding="utf-8"))
    patterns = [pattern for row in rows for pattern in row.files if fnmatch.fnmatch(name, pattern)]
    return any(pattern != REFERENCE or page.read_text("utf-8").startswith(MARK) for pattern in patterns)


def counted() -> dict[str, int]:
    """Words by page."""
    pages = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    return {
        page.relative_to(ROOT).as_posix(): len(page.read_text("utf-8").replace(" %", "%").split())
        for page in pages
        if not is_generated(page)
    }


def test_there_is_not_too_much_to_read() -> None:
    words = counted()
    total = sum(words.values())
    longest = sorted(words.items(), key=lambda item: -item[1])[:5]
    assert total <= LIMIT, f"{total} words, at most {LIMIT}; the longest pages: {longest}"


def test_no_page_is_too_long() -> None:
    for name, words in counted().items():
        limit = ONE_PAGE.get(name) or ONE_PAGE.get(Path(name).parent.as_posix())
        assert limit is None or words <= limit, (
            f"{name} has {words} words, at most {limit}: split or shorten it"
        )


def test_what_counts_is_what_people_wrote() -> None:
    assert {
        "README.md",
        "CHANGELOG.md",
        "docs/index.md",
        "docs/explanation/DECISIONS.md",
        "docs/reference/rt-app.md",
    } <= set(counted())
    assert not {"docs/reference/cli.md", "docs/reports/colab/report.md", "docs/reports/truth/linux.md"} & set(
        counted()
    )


PROSE = [
    ROOT / "README.md",
    *(
        page
        for kind in ("howto", "tutorial", "explanation")
        for page in (ROOT / "docs" / kind).glob("*.md")
        if page.name != "DECISIONS.md"
    ),
]
"""What people read from top to bottom."""


def written_otherwise(text: str) -> list[str]:
    """Numbers in prose that are not written as "5 %" and "20 µs"."""
    prose = re.sub(r"^```.*?^```\n|`[^`\n]*`|\]\([^)]*\)", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"\d+(?:%| us\b)", prose)


def test_numbers_are_written_in_one_way() -> None:
    assert written_otherwise("5% and `6%`, 7 us, 8 users\n```\n9%\n```\n10 % of 11 µs") == ["5%", "7 us"]
    assert {page.name: found for page in PROSE if (found := written_otherwise(page.read_text("utf-8")))} == {}
