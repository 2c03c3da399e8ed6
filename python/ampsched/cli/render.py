"""Tables and bars for a terminal of 80 columns or more.

Names come from files of anybody: they are never read as markup, and what could command a terminal is shown as an
escape.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from ampsched.execution import Progress as ProgressCall
from ampsched.statistics import Estimate

BAR_CELLS = 8
EIGHTHS = " ▏▎▍▌▋▊▉█"
SHADES = " ░▒▓█"
ASCII_SHADES = " .:+#"
# Controls but for line breaks and tabs; characters that reorder or hide text; halves of characters that are none.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    """The text with escapes for what would not be seen as characters."""
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def _is_unicode() -> bool:
    """Whether standard output can show any character."""
    return (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")


class _Literal(Console):
    """A console that shows texts as they are: no markup, nothing that a terminal would take for a command."""

    def render_str(self, text: str, **how: Any) -> Text:  # noqa: ANN401 (Rich's own)
        return super().render_str(visible(text), **how)


def console() -> Console:
    """Standard output."""
    return _Literal(highlight=False, markup=False, emoji=False)


def errors() -> Console:
    """Standard error."""
    return _Literal(highlight=False, markup=False, emoji=False, stderr=True)


def markdown(text: str) -> Markdown:
    """Markdown that anybody may have written."""
    return Markdown(visible(text))


def print_json(value: object) -> None:
    """Prints a value as JSON."""
    json.dump(value, sys.stdout, indent=2, ensure_ascii=not _is_unicode(), allow_nan=False)
    sys.stdout.write("\n")


def examples(*lines: str) -> str:
    """Examples at the end of a command's help (Markdown)."""
    return "\n".join(["**Examples**", "", *(f"- `{line}`" for line in lines)])


def table(*columns: str) -> Table:
    """A table whose columns, except the first, are aligned to the right."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, show_edge=False)
    for number, column in enumerate(columns):
        made.add_column(column, justify="right" if number else "left", overflow="fold", no_wrap=number > 0)
    return made


def print_head(console: Console, kind: str, rest: str, end: str = "\n") -> None:
    """Prints what kind of thing it is, in bold, and the rest of the line."""
    console.print(Text.assemble((kind, "bold"), f" {visible(rest)}"), soft_wrap=True, end=end)


def bar(share: float, cells: int = BAR_CELLS) -> str:
    """A bar that fills a share (0 to 1) of some cells."""
    if not _is_unicode():
        return "#" * round(max(0.0, min(1.0, share)) * cells)
    eighths = round(max(0.0, min(1.0, share)) * cells * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (EIGHTHS[rest] if rest else "")


def shades(shares: Iterable[float]) -> str:
    """One cell per share (0 to 1), the darker the greater."""
    scale = SHADES if _is_unicode() else ASCII_SHADES
    return "".join(scale[min(4, round(4 * share))] for share in shares)


def percent(value: float) -> str:
    """A relative change in percent with its sign."""
    text = f"{100 * value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


def change(value: Estimate, *, lower_is_better: bool) -> Text:
    """A relative change in percent with its interval if there is one, green if better, red if worse."""
    text = percent(value.mean)
    interval = f" ±{100 * value.half_width:.1f}" if value.n > 1 else ""
    settled = value.n == 1 or value.excludes_zero
    if not settled or text == "0.0":
        return Text(text + interval)
    better = (value.mean < 0) == lower_is_better
    return Text(text + interval, style="green" if better else "red")


def milliseconds(ns: float) -> str:
    """A time in ms with a precision that suits it."""
    ms = ns / 1e6
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.2f}"


def count(value: float) -> str:
    """A count."""
    return f"{value:,.0f}"


@contextmanager
def progress_bar(text: str, *, hidden: bool = False) -> Iterator[ProgressCall]:
    """A progress bar on standard error; nothing if that is no terminal."""
    errors = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    shown = errors.is_terminal and not hidden
    with Progress(*columns, console=errors, transient=True, disable=not shown) as progress:
        task = progress.add_task(text, total=None)

        def step(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        yield step
