"""Markdown of reports as HTML that needs no other file."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

MIME = {".svg": "image/svg+xml", ".png": "image/png"}
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


def sections(markdown: str) -> list[tuple[str, str]]:
    """The sections of a page: title and Markdown; what comes before the first has no title."""
    first, *rest = _HEADING.split(markdown)
    return [("", first), *zip(rest[::2], rest[1::2], strict=True)]


def to_html(markdown: str, folder: Path | None = None) -> Markup:
    """Markdown as HTML; raw HTML in it is shown as text.

    Args:
        markdown: The Markdown.
        folder: Where pictures are; they become part of the page. Links to other files lose their target.
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(markdown)
    for token in _all(tokens):
        if token.type == "image":
            token.attrs["src"] = _inlined(str(token.attrs["src"]), folder)
        elif token.type == "th_open":
            token.attrs["scope"] = "col"
        elif token.type == "link_open" and not str(token.attrs["href"]).startswith(
            ("https://", "http://", "#")
        ):
            del token.attrs["href"]
    # Made by a parser that escapes all text.
    return Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704


def _all(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _all(token.children or [])


def _inlined(source: str, folder: Path | None) -> str:
    """A picture as a data URI; as it is called if it is not in the folder."""
    if folder is None or "/" in source or not (folder / source).is_file():
        return source
    file = folder / source
    mime = MIME.get(file.suffix, "application/octet-stream")
    return f"data:{mime};base64,{base64.b64encode(file.read_bytes()).decode()}"
