"""Where commands print: texts are shown as they are, as wide as fits, or collected as Markdown."""

import io
import os
import re
from typing import Any

from rich.console import Console
from rich.text import Text

from ampsched.cli.texts import visible

PIPE_COLUMNS = 100_000
"""The width of what is no terminal."""


class _Literal(Console):
    """A console that shows texts as they are: no markup, nothing that a terminal would take for a command."""

    def render_str(self, text: str, **how: Any) -> Text:  # noqa: ANN401 (Rich's own)
        return super().render_str(visible(text), **how)


class MarkdownConsole(_Literal):
    """A console that collects what is printed as Markdown: each text a paragraph."""

    def __init__(self) -> None:
        super().__init__(
            highlight=False,
            markup=False,
            emoji=False,
            file=io.StringIO(),
            width=PIPE_COLUMNS,
            color_system=None,
        )

    def print(self, *objects: Any, end: str = "\n", **how: Any) -> None:  # noqa: ANN401 (Rich's own)
        """Prints, and ends the paragraph with the line."""
        super().print(*objects, end="\n\n" if end == "\n" else end, **how)

    def text(self) -> str:
        """What was printed, without empty lines that Markdown does not need."""
        assert isinstance(self.file, io.StringIO)
        lines = (line.rstrip() for line in self.file.getvalue().splitlines())
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def is_markdown(console: Console) -> bool:
    """Whether what is printed becomes Markdown."""
    return isinstance(console, MarkdownConsole)


def console() -> Console:
    """Standard output: as wide as the terminal, or as `COLUMNS` says; as wide as it takes if that is no terminal."""
    made = _Literal(highlight=False, markup=False, emoji=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = PIPE_COLUMNS
    return made


def errors() -> Console:
    """Standard error."""
    return _Literal(highlight=False, markup=False, emoji=False, stderr=True)
