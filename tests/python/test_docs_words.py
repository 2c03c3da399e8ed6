"""How much there is to read: at most 45,000 words that people wrote for readers.

The README and all pages under docs count, with their tables and code. Two kinds do not: pages that a program writes
as a whole (a row of tools/generated.toml says by which command), which are looked up and not read (executed notebooks
among them: results as HTML), and the log of decisions, which grows with every decision and is not written anew.
"""

import fnmatch
from pathlib import Path

from conftest import ROOT
from tools import bless

LIMIT = 45_000
ONE_PAGE = {"docs/tutorial": 1_500, "docs/howto": 900, "docs/explanation": 2_000}
"""Words of a page, code and tables included."""
LOG = "docs/explanation/DECISIONS.md"
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
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {
        name: len(page.read_text("utf-8").split())
        for page in pages
        if (name := page.relative_to(ROOT).as_posix()) != LOG and not is_generated(page)
    }


def test_there_is_not_too_much_to_read() -> None:
    words = counted()
    total = sum(words.values())
    longest = sorted(words.items(), key=lambda item: -item[1])[:5]
    assert total <= LIMIT, f"{total} words, at most {LIMIT}; the longest pages: {longest}"


def test_no_page_is_too_long() -> None:
    for name, words in counted().items():
        limit = ONE_PAGE.get(Path(name).parent.as_posix())
        assert limit is None or words <= limit, (
            f"{name} has {words} words, at most {limit}: split or shorten it"
        )


def test_what_counts_is_what_people_wrote() -> None:
    words = counted()
    assert {"README.md", "docs/index.md", "docs/explanation/limits.md", "docs/reference/rt-app.md"} <= set(
        words
    )
    assert not {
        LOG,
        "docs/reference/cli.md",
        "docs/reports/colab/report.md",
        "docs/reports/truth/linux.md",
    } & set(words)
