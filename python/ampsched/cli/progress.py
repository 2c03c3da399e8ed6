"""Progress of long work, on standard error: a bar or a status on a terminal, elsewhere a line every few seconds."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ampsched.cli.consoles import errors
from ampsched.execution import Progress

LINE_EVERY_S = 10.0
GUESS_AFTER_S = 2.0
"""Before that, what is left is not told: a guess of it would rest on too little."""


@dataclass(slots=True)
class Course:
    """How far work of several parts is, in words."""

    parts: int | None = None
    """How many there are or may be; absent if nobody knows."""
    clock: Callable[[], float] = time.monotonic
    text: str = ""
    part: int = 0
    """The number of the present one, from 1 on."""
    done: int = 0
    total: int = 0
    start_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.start_s = self.clock()

    def begin(self, text: str) -> None:
        """Begins the next part."""
        self.text, self.part, self.done, self.total = text, self.part + 1, 0, 0
        if self.parts is not None:
            self.parts = max(self.parts, self.part)
        else:
            self.start_s = self.clock()

    def words(self) -> str:
        """What is done, how far, and how long it may still take."""
        words = []
        if self.parts != 1:
            words.append(f"part {self.part}" + (f" of {self.parts}" if self.parts else ""))
        if self.total:
            words.append(f"{self.done} of {self.total}")
        if left := self._left():
            words.append(left)
        return f"{self.text}: {', '.join(words)}" if words else self.text

    def _left(self) -> str:
        """The time left, of all parts if it is known how many there are: as if they took the same time."""
        past_s = self.clock() - self.start_s
        inner = self.done / self.total if self.total else 0.0
        share = (self.part - 1 + inner) / self.parts if self.parts else inner
        if share <= 0 or share >= 1 or past_s < GUESS_AFTER_S:
            return ""
        return f"about {_duration(past_s / share - past_s)} left" + ("" if self.parts else " in it")


def _duration(s: float) -> str:
    if s < 90:
        return f"{max(1, round(s))} s"
    return f"{round(s / 60)} min" if s < 5400 else f"{s / 3600:.1f} h"


class Phases:
    """Work of several parts: each is named when it begins, with its number and the time that is left."""

    def __init__(self, parts: int | None = None, *, hidden: bool = False) -> None:
        """Begins without a part.

        Args:
            parts: How many parts there are; if more begin, there are more. Without it the time is that of a part.
            hidden: Show nothing.
        """
        self._console = errors()
        self._hidden = hidden
        self._status = self._console.status("") if self._console.is_terminal and not hidden else None
        self._course = Course(parts)
        self._last_s = time.monotonic()

    def begin(self, text: str) -> None:
        """Names the next part."""
        self._course.begin(text)
        if self._hidden:
            return
        if self._status is not None:
            self._status.update(f"{self._course.words()} ...")
            self._status.start()
        elif self._course.parts != 1:
            self._line()

    def progress(self, done: int, total: int) -> None:
        """Says how far the part is: on a terminal always, elsewhere unless it was said a moment ago."""
        self._course.done, self._course.total = done, total
        if self._hidden:
            return
        if self._status is not None:
            self._status.update(f"{self._course.words()} ...")
        elif time.monotonic() - self._last_s >= LINE_EVERY_S:
            self._line()

    def end(self) -> None:
        """Removes the status from the terminal."""
        if self._status is not None:
            self._status.stop()

    def _line(self) -> None:
        self._last_s = time.monotonic()
        self._console.print(f"{self._course.words()} ...", soft_wrap=True)


@contextmanager
def progress_bar(text: str, *, hidden: bool = False) -> Iterator[Progress]:
    """Gives what is called with the number of finished parts and of all; a bar shows both, and the time left.

    Args:
        text: What is done.
        hidden: Show nothing.
    """
    console = errors()
    if hidden or not console.is_terminal:
        phases = Phases(1, hidden=hidden)
        phases.begin(text)
        yield phases.progress
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(text, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
