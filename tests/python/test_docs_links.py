"""Every link between pages, and from pages to files of the project, leads somewhere."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


def without_code(text: str) -> str:
    """The page without code blocks and code spans, in which brackets are not links."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", text)


def links(page: Path) -> list[str]:
    """Targets of all links that do not leave the project."""
    targets = re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text()))
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def anchors(page: Path) -> set[str]:
    """Anchors that the page's headings get."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ +(.+)$", text, re.MULTILINE)
    cleaned = (re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings)
    return {re.sub(r"[-\s]+", "-", heading) for heading in cleaned}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in links(page):
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), f"{page.name}: {target} does not exist"
        if anchor:
            assert anchor in anchors(file), f"{page.name}: {target}: no such heading"
        if page.is_relative_to(DOCS):
            assert file.is_relative_to(DOCS), (
                f"{page.name}: {target} leaves docs/ and would be dead on the site"
            )


def navigation(entries: list[Any]) -> Iterator[str]:
    """Files named in the site's navigation, which have no titles there but those of their pages."""
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            (pages,) = entry.values()
            assert isinstance(pages, list), f"{pages}: is named otherwise than its page"
            yield from navigation(pages)


def test_the_site_shows_every_page_once() -> None:
    shown = list(navigation(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]))
    assert sorted(shown) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
