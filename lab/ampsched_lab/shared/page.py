"""Pages of which a part is generated, between two marks; what people wrote around it stays."""

import re
import sys
from pathlib import Path

from ampsched.markdown import wrapped


def replace_region(page: Path, begin: str, end: str, text: str) -> None:
    """Puts a text between two marks."""
    old = page.read_text("utf-8")
    pattern = re.compile(f"{re.escape(begin)}.*{re.escape(end)}", re.DOTALL)
    if not pattern.search(old):
        sys.exit(f"{page}: the marks {begin} and {end} are missing")
    page.write_text(wrapped(pattern.sub(lambda _: f"{begin}\n\n{text}\n\n{end}", old)), "utf-8")
