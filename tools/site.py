"""Builds the documentation site so that it can be read from files: ``python -m tools.site``.

What the generator cannot be told is done to what it has written: links to folders become links to pages, each figure
leads to itself (on a telephone it is small), and search finds users' pages first. Decisions, and the tables of reports,
are for those who look for them and are not searched.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / ".build/site"
FIRST = ("index", "tutorial/", "howto/", "reference/", "notebooks/", "explanation/", "reports/")
"""Beginnings of addresses, in the order in which search shows what it finds equally well."""
NOT_SEARCHED = ("explanation/DECISIONS",)
_PROSE = re.compile(r"<(p|ul|ol)>.*?</\1>", re.DOTALL)
"""What the generator marks in what is searched; of tables it keeps the bare cells."""
_FOLDER = re.compile(r'<a href="((?:\./)?(?:\.\./?)*)"(?= title)')
_FIGURE = re.compile(r'<p>(<img [^>]*?src="([^"]+\.(?:svg|png))"[^>]*>)</p>')


def searched(items: list[dict[str, object]]) -> list[dict[str, object]]:
    """What search finds, users' pages first.

    Args:
        items: Sections of pages, as the generator lists them.
    """
    return [_without_tables(item) for item in sorted(items, key=_rank) if _is_searched(str(item["location"]))]


def _is_searched(location: str) -> bool:
    is_chapter_of_a_report = location.startswith("reports/") and "#" in location
    return not location.startswith(NOT_SEARCHED) and not is_chapter_of_a_report


def _rank(item: dict[str, object]) -> int:
    return next(rank for rank, begin in enumerate(FIRST) if str(item["location"]).startswith(begin))


def _without_tables(item: dict[str, object]) -> dict[str, object]:
    is_report = str(item["location"]).startswith("reports/")
    prose = " ".join(found[0] for found in _PROSE.finditer(str(item["text"])))
    return item | {"text": prose} if is_report else item


def readable(html: str) -> str:
    """A page whose links lead to files, and whose figures lead to themselves."""
    html = _FOLDER.sub(lambda found: f'<a href="{_page_of(found[1])}"', html)
    return _FIGURE.sub(r'<p class="figure"><a href="\2">\1</a></p>', html)


def _page_of(folder: str) -> str:
    return f"{folder.rstrip('/')}/index.html" if folder else "index.html"


def build() -> None:
    """Writes the site into `.build/site`.

    Raises:
        subprocess.CalledProcessError: If a link leads nowhere, or a page is not in the navigation.
    """
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    subprocess.run(command, cwd=ROOT, check=True)
    found = json.loads((SITE / "search.json").read_text("utf-8"))
    found["items"] = searched(found["items"])
    text = json.dumps(found, ensure_ascii=False)
    (SITE / "search.json").write_text(text, "utf-8")
    (SITE / "search.js").write_text(f"var __index = {text}", "utf-8")
    for page in SITE.rglob("*.html"):
        page.write_text(readable(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    build()
