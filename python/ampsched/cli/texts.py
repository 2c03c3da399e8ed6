"""Texts that a terminal shows as they are.

Names come from files of anybody: they are never read as markup, and what could command a terminal is shown as an
escape.
"""

import re
import sys

from ampsched.files import shown

# Controls but for line breaks and tabs; characters that reorder or hide text; halves of characters that are none.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_IN_ASCII = str.maketrans({"±": "+-", "°": "deg ", "²": "^2", "×": "x", "–": "-", "✓": "+", "✗": "x"})


def visible(text: str) -> str:
    """The text with escapes for what would not be seen as characters, and without signs that the terminal lacks."""
    escaped = _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), shown(text))
    return escaped if is_unicode() else escaped.translate(_IN_ASCII)


def is_unicode() -> bool:
    """Whether standard output can show any character."""
    return (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")


def examples(*lines: str) -> str:
    """Examples at the end of a command's help (Markdown)."""
    return "\n".join(["**Examples**", "", *(f"- `{line}`" for line in lines)])
