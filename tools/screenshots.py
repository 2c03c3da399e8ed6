"""Takes the pictures of HTML reports that the documentation shows: ``screenshots.py docs/howto``. Needs Chromium."""

import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import ampsched
from ampsched.report import Asked, Page, comparing, tasks, write
from ampsched.settings import CompareSettings, complete

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/python"))
from browser import CHROMIUM  # noqa: E402

POLICIES = ["linux", "wash", "colab"]
BYTES_MAX = 150_000
COLOURS = 256
"""Of a picture: flat areas and text need no more, and a third of the bytes."""


def comparison() -> Page:
    """The page that the how-to makes."""
    settings = complete(CompareSettings, {"repeat": 5})
    command = "ampsched compare -m 2B2S -w sync-2 -p linux,wash,colab --repeat 5 --html report.html"
    asked = Asked.of(["2B2S"], ["sync-2"], POLICIES, settings, command)
    return comparing.page(ampsched.compare("2B2S", "sync-2", POLICIES, repeat=5).to_dict(), asked)


def cholesky(blocks: int) -> str:
    """The task graph of a Cholesky factorisation by blocks, as CSV: name, work in s, kind, what it waits for."""
    rows = []
    for k in range(blocks):
        rows.append((f"potrf{k}", 1, "potrf", [f"syrk{k}.{k - 1}"] if k else []))
        for i in range(k + 1, blocks):
            before = [f"gemm{i}.{k}.{k - 1}"] if k else []
            rows.append((f"trsm{i}.{k}", 2, "trsm", [f"potrf{k}", *before]))
        for i in range(k + 1, blocks):
            rows.append((f"syrk{i}.{k}", 2, "syrk", [f"trsm{i}.{k}", *([f"syrk{i}.{k - 1}"] if k else [])]))
            for j in range(k + 1, i):
                last = [f"gemm{i}.{j}.{k - 1}"] if k else []
                rows.append((f"gemm{i}.{j}.{k}", 4, "gemm", [f"trsm{i}.{k}", f"trsm{j}.{k}", *last]))
    return "".join(f"{name},{work},{kind},{';'.join(before)}\n" for name, work, kind, before in rows)


def graph() -> Page:
    """A small task graph under two policies."""
    found = ampsched.TaskGraph.read("cholesky.csv", cholesky(5))
    made = [ampsched.run_tasks(found, "2x2.5,2x1", name) for name in ("heft", "fifo")]
    return tasks.page([each.to_dict() for each in made], Asked(), made)


def main(folder: Path) -> None:
    """Writes report.png and gantt.png."""
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1000, "height": 800})
        file = Path(name) / "page.html"
        write(comparison(), file)
        page.goto(file.as_uri())
        page.screenshot(path=folder / "report.png")
        write(graph(), file)
        page.goto(file.as_uri())
        figure = page.locator("figure[data-form=timeline]").first
        chosen = page.evaluate(CHOOSE)
        figure.locator(".canvas").click(position={"x": chosen[0], "y": chosen[1]})
        figure.screenshot(path=folder / "gantt.png")
        browser.close()
    for each in ("report.png", "gantt.png"):
        Image.open(folder / each).convert("RGB").quantize(COLOURS).save(folder / each, optimize=True)
        size = (folder / each).stat().st_size
        assert size < BYTES_MAX, f"{each}: {size:,} bytes"


# Where the task is that waits for most others.
CHOOSE = """() => {
  const chart = ampsched.charts.find((each) => each.figure.dataset.form === "timeline");
  const data = JSON.parse(chart.figure.querySelector("script").textContent);
  const most = data.links.reduce((best, each, index) => (each.length >= data.links[best].length ? index : best), 0);
  const [row, start, end] = data.spans[most];
  return chart.made.convertToPixel({ gridIndex: 0 }, [(start + end) / 2, row]);
}"""

if __name__ == "__main__":
    main(Path(sys.argv[1]))
