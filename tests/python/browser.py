"""Chromium for tests: pages as readers see them, without a network."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None,
    reason="NO BROWSER: pages were NOT looked at; install Chromium (Debian: apt install chromium) or set CHROMIUM",
)


@dataclass
class Opened:
    """A page in the browser."""

    page: Page
    problems: list[str] = field(default_factory=list)
    """Errors on its console, and whatever it tried to load."""


@contextmanager
def opened(file: Path, width: int = 1280, **how: object) -> Iterator[Opened]:
    """Opens a file in Chromium."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": width, "height": 900}, **how)
        found = Opened(page)
        page.on(
            "console",
            lambda message: message.type in ("error", "warning") and found.problems.append(message.text),
        )
        page.on("pageerror", lambda error: found.problems.append(str(error)))
        page.on(
            "request",
            lambda request: request.url.startswith(("file:", "data:")) or found.problems.append(request.url),
        )
        page.goto(file.as_uri())
        yield found
        browser.close()
