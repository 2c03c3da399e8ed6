"""Executes the example notebooks and writes them as pages: ``notebooks.py docs/notebooks``.

A notebook is a Python file in Jupytext's percent format; its page has code, text and outputs.
"""

import sys
import textwrap
from pathlib import Path

import jupytext
from nbclient import NotebookClient
from nbconvert import MarkdownExporter
from traitlets.config import Config

from ampsched.markdown import WIDTH, wrapped

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "docs/notebooks"
NOTE = "<!-- Written by `tools/notebooks.py` from {name}, which runs in Jupyter, too (Jupytext). -->"
TIMEOUT_S = 120


def page(source: Path) -> str:
    """The page of an executed notebook.

    Raises:
        nbclient.exceptions.CellExecutionError: If a cell fails.
    """
    notebook = jupytext.read(source)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.metadata["kernelspec"] = kernel
    local = Config({"KernelManager": {"transport": "ipc"}})
    NotebookClient(notebook, timeout=TIMEOUT_S, kernel_name="python3", config=local).execute()
    exporter = MarkdownExporter(
        config=Config({"NbConvertBase": {"display_data_priority": ["text/html", "text/plain"]}})
    )
    text, _ = exporter.from_notebook_node(notebook)
    return f"{NOTE.format(name=source.name)}\n\n{_tidy(text)}"


def _tidy(text: str) -> str:
    """Without blanks at the ends of lines, with one empty line at most between blocks, and no line too long."""
    lines: list[str] = []
    is_code = False
    for line in (each.rstrip() for each in text.strip().splitlines()):
        if line.startswith("<"):  # HTML: a line break is a blank
            lines += textwrap.wrap(line, WIDTH, break_long_words=False, break_on_hyphens=False)
        elif line or is_code or (lines and lines[-1]):
            lines.append(line)
        is_code ^= line.startswith("```")
    return wrapped("\n".join(lines)) + "\n"


if __name__ == "__main__":
    for each in sorted(SOURCES.glob("*.py")):
        (Path(sys.argv[1]) / f"{each.stem}.md").write_text(page(each), encoding="utf-8")
