"""Progress of long work, on standard error: a bar or a status on a terminal, elsewhere a line every few seconds."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console

from ampsched.cli.consoles import errors
from ampsched.execution import Progress

LINE_EVERY_S = 4.0


@dataclass(slots=True)
class _Lines:
    """Progress without a terminal: what is done, how far, and since when."""

    console: Console
    text: str
    start_s: float = field(default_factory=time.monotonic)
    last_s: float = field(default_factory=time.monotonic)

    def step(self, done: int, total: int) -> None:
        """Says how far the work is, unless it was said a moment ago."""
        now_s = time.monotonic()
        if now_s - self.last_s >= LINE_EVERY_S:
            self.last_s = now_s
            self.console.print(
                f"{self.text}: {done} of {total} after {now_s - self.start_s:.0f} s", soft_wrap=True
            )


@contextmanager
def progress_bar(text: str, *, hidden: bool = False) -> Iterator[Progress]:
    """Gives what is called with the number of finished parts and of all; a bar shows both.

    Args:
        text: What is done.
        hidden: Show nothing.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = errors()
    if hidden or not console.is_terminal:
        yield (lambda _done, _total: None) if hidden else _Lines(console, text).step
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(text, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class Phases:
    """Work of several phases: each is named when it begins."""

    def __init__(self, *, hidden: bool = False) -> None:
        """Shows nothing if it is hidden."""
        self._console = errors()
        self._hidden = hidden
        self._status = self._console.status("") if self._console.is_terminal and not hidden else None
        self._lines = _Lines(self._console, "")

    def begin(self, text: str) -> None:
        """Names the next phase."""
        if self._hidden:
            return
        self._lines.text = text
        if self._status is not None:
            self._status.update(f"{text} ...")
            self._status.start()
        else:
            self._console.print(f"{text} ...", soft_wrap=True)

    def progress(self, done: int, total: int) -> None:
        """Says how far the phase is."""
        if self._hidden:
            return
        if self._status is not None:
            self._status.update(f"{self._lines.text}: {done} of {total} ...")
        else:
            self._lines.step(done, total)

    def end(self) -> None:
        """Removes the status from the terminal."""
        if self._status is not None:
            self._status.stop()
