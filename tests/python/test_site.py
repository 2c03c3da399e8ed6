"""Every page of the documentation in a browser, on a screen and on a telephone: nothing cut, nothing too small."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md"))
SCREEN, TELEPHONE = 1280, 400
"""Widths in pixels."""
LEAST_TEXT_PX = 11
CHROMIUM = shutil.which("chromium")

pytestmark = pytest.mark.skipif(
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
FIGURES = """() => [...document.querySelectorAll("article img")].map(
  (each) => [each.src, each.getBoundingClientRect().width, each.alt])"""


@pytest.fixture(scope="module")
def site():
    """The site, built as `make docs` does."""
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return ROOT / ".build" / "site"


@pytest.fixture(scope="module")
def browser():
    """Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_screens_and_telephones(page, site, browser):
    folder = site / (page.removesuffix("index").rstrip("/") or ".")
    for width in (SCREEN, TELEPHONE):
        tab = browser.new_page(viewport={"width": width, "height": 900})
        said = []
        tab.on(
            "console", lambda message, said=said: said.append(message) if message.type == "error" else None
        )
        tab.goto((folder / "index.html").as_uri())
        found = tab.evaluate(FIND, width == TELEPHONE)
        pictures = tab.evaluate(FIGURES)
        tab.close()
        assert not found, f"at {width} pixels: {found[:10]}"
        for source, shown_px, text in pictures:
            assert text, f"{source}: no text for those who cannot see it"
            assert _least_text_px(Path(source.removeprefix("file://")), shown_px) >= LEAST_TEXT_PX, (
                source,
                width,
            )


def _least_text_px(picture: Path, shown_px: float) -> float:
    """The smallest text of a drawing by Matplotlib as it is shown; photographs have none."""
    if picture.suffix != ".svg":
        return LEAST_TEXT_PX
    text = picture.read_text()
    drawn_pt = float(ElementTree.fromstring(text).attrib["viewBox"].split()[2])
    # Text is made of outlines of a font of 100 points.
    sizes_pt = [100 * float(scale) for scale in re.findall(r"scale\(([0-9.]+) -[0-9.]+\)", text)]
    assert sizes_pt, f"{picture}: no text was found in it"
    return min(sizes_pt) * shown_px / drawn_pt
