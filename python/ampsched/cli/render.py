"""Tables and bars for a terminal of 80 columns or more."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ampsched.execution import Progress as ProgressCall
from ampsched.statistics import Estimate

BAR_CELLS = 8
EIGHTHS = " ▏▎▍▌▋▊▉█"


def console() -> Console:
    """Standard output."""
    return Console(highlight=False)


def print_json(value: object) -> None:
    """Prints a value as JSON."""
    json.dump(value, sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
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


def bar(share: float, cells: int = BAR_CELLS) -> str:
    """A bar that fills a share (0 to 1) of some cells."""
    eighths = round(max(0.0, min(1.0, share)) * cells * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (EIGHTHS[rest] if rest else "")


def percent(value: float) -> str:
    """A relative change in percent with its sign."""
    text = f"{100 * value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


def change(value: Estimate, *, lower_is_better: bool) -> str:
    """A relative change in percent with its interval if there is one, green if better, red if worse."""
    text = percent(value.mean)
    interval = f" ±{100 * value.half_width:.1f}" if value.n > 1 else ""
    settled = value.n == 1 or value.excludes_zero
    if not settled or text == "0.0":
        return text + interval
    better = (value.mean < 0) == lower_is_better
    return f"[{'green' if better else 'red'}]{text}{interval}[/]"


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
