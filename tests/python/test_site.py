"""Every page of the documentation in a browser, as files: nothing cut, nothing too small, nothing asked of others."""

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tools import site as tool

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md"))
SCREEN, TELEPHONE = 1280, 400
"""Widths in pixels."""
LEAST_TEXT_PX = 11
LEAST_WORDS = 20
"""Letters of what is said of a picture."""
CHROMIUM = shutil.which("chromium")

in_a_browser = pytest.mark.skipif(
    not CHROMIUM, reason="pages were NOT looked at: there is no Chromium (Debian: apt install chromium)"
)

FIND = """(isTelephone) => {
  const found = [], width = document.documentElement.clientWidth;
  const scrolls = (each) => ["auto", "scroll"].includes(getComputedStyle(each).overflowX);
  const isInScroller = (each) => {
    for (let above = each.parentElement; above && above !== document.body; above = above.parentElement)
      if (scrolls(above)) return true;
    return false;
  };
  const name = (each) => `${each.tagName.toLowerCase()} "${each.textContent.trim().slice(0, 40)}"`;
  if (document.documentElement.scrollWidth > width) found.push("the page itself is wider than the screen");
  for (const each of document.body.querySelectorAll("*:not(.md-visually-hidden)")) {
    if (!each.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    const place = each.getBoundingClientRect(), style = getComputedStyle(each);
    if (!place.width || !place.height) continue;
    const hasText = [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (hasText && parseFloat(style.fontSize) < LEAST) found.push(`${name(each)} is written in ${style.fontSize}`);
    if (!each.closest("article")) continue;
    if (place.right > width + 1 && !isInScroller(each)) found.push(`${name(each)} is cut`);
    const isWide = each.scrollWidth > each.clientWidth + 1;
    if (isWide && style.overflowX === "hidden") found.push(`${name(each)} is cut by itself`);
    if (isWide && scrolls(each) && !isTelephone) found.push(`${name(each)} has to be scrolled`);
  }
  return found;
}""".replace("LEAST", str(LEAST_TEXT_PX))
LINES = """() => [...document.querySelectorAll("article > p:not(.figure)")].map((each) => {
  return [each.textContent.length, each.getBoundingClientRect().height / parseFloat(getComputedStyle(each).lineHeight)];
}).filter(([letters, lines]) => lines > 3.5).map(([letters, lines]) => letters / Math.round(lines))"""
MOST_LETTERS = 95
"""In a line, on average over a paragraph."""
FIGURES = """() => [...document.querySelectorAll("article img")].map(
  (each) => [each.src, each.getBoundingClientRect().width, each.alt])"""


@pytest.fixture(scope="module")
def site():
    """The site, built as `make docs` does."""
    tool.build()
    return tool.SITE


@pytest.fixture(scope="module")
def browser():
    """Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@in_a_browser
@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_screens_and_telephones(page, site, browser):
    for width in (SCREEN, TELEPHONE):
        tab = browser.new_page(viewport={"width": width, "height": 900})
        asked, said = [], []
        tab.on("request", lambda request, asked=asked: asked.append(request.url))
        tab.on(
            "console",
            lambda message, said=said: said.append(message.text) if message.type == "error" else None,
        )
        tab.goto((site / f"{page}.html").as_uri())
        found, pictures, lines = (
            tab.evaluate(FIND, width == TELEPHONE),
            tab.evaluate(FIGURES),
            tab.evaluate(LINES),
        )
        tab.close()
        assert not found, f"at {width} pixels: {found[:10]}"
        assert not said
        assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
        assert max(lines, default=0) <= MOST_LETTERS
        for source, shown_px, text in pictures:
            assert len(text) >= LEAST_WORDS, f"{source}: not enough text for those who cannot see it"
            assert shown_px <= width, source
            if width == SCREEN:
                assert _least_text_px(Path(source.removeprefix("file://")), shown_px) >= LEAST_TEXT_PX, source


@in_a_browser
def test_search_needs_no_server(site, browser):
    tab = browser.new_page()
    tab.goto((site / "index.html").as_uri())
    tab.keyboard.press("Control+k")
    tab.keyboard.type("latency deadlines", delay=20)
    tab.get_by_role("link").filter(has_text="Measure latency and deadlines").first.wait_for(timeout=9000)
    tab.close()


@in_a_browser
def test_drawings_follow_the_palette(site, browser):
    for scheme, filtered in (("light", "none"), ("dark", "invert(0.93) hue-rotate(180deg)")):
        tab = browser.new_page(color_scheme=scheme)
        tab.goto((site / "index.html").as_uri())
        assert (
            tab.evaluate("() => getComputedStyle(document.querySelector('article img')).filter") == filtered
        )
        tab.close()


def test_users_pages_are_found_first(site):
    where = [item["location"] for item in json.loads((site / "search.json").read_text("utf-8"))["items"]]
    ranks = [next(rank for rank, begin in enumerate(tool.FIRST) if each.startswith(begin)) for each in where]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == len(tool.FIRST)
    assert "howto/sweep.html" in where
    assert not any("DECISIONS" in each for each in where)
    assert (site / "search.js").read_text("utf-8").startswith("var __index = {")


def test_tables_of_reports_are_not_searched():
    words = "<p>Words.</p> cell 1.0 <ul> <li>more</li> </ul> 2.0"
    items = [
        {"location": "reports/a.html", "text": words},
        {"location": "reports/a.html#b", "text": words},
        {"location": "howto/a.html#b", "text": words},
    ]
    assert tool.searched(items) == [
        {"location": "howto/a.html#b", "text": words},
        {"location": "reports/a.html", "text": "<p>Words.</p> <ul> <li>more</li> </ul>"},
    ]


def test_links_lead_to_files(site):
    for page in site.glob("*/**/*.html"):
        folders = re.findall(r'<a [^>]*href="([^":#?]*/|[./]*)"', page.read_text("utf-8"))
        assert folders == [], page


def _least_text_px(picture: Path, shown_px: float) -> float:
    """The smallest text of a drawing by Matplotlib as it is shown; photographs have none."""
    if picture.suffix != ".svg":
        return LEAST_TEXT_PX
    text = picture.read_text()
    drawn_pt = float(ElementTree.fromstring(text).attrib["viewBox"].split()[2])
    sizes_pt = [float(size) for size in re.findall(r"font-size: ([0-9.]+)px", text)]
    assert sizes_pt, f"{picture}: no text was found in it"
    return min(sizes_pt) * shown_px / drawn_pt
