"""Tables that never crop: at any width every label and every number is there, whole.

What does not fit is laid out otherwise: heads wrap between words, then columns go into further tables that repeat the
first column, and if not even one column fits beside it, each row becomes a record of lines, ``label: value``.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from ampsched import markdown
from ampsched.cli.consoles import is_markdown
from ampsched.cli.texts import visible

GAP = 2
"""Blanks between columns."""
PROSE_CELLS_MIN = 12
"""The fewest columns in which sentences are wrapped."""

Cell = str | Text


@dataclass
class Column:
    """One column of a table.

    Attributes:
        head: What it holds, with its unit.
        justify: On which side its cells stand.
        prose: Whether its cells are sentences, which may wrap between words; other cells stay whole.
        is_tied: Whether it says something of the column before it, and stands beside that one.
        is_picture: Whether its cells show what others say in numbers, such as bars.
    """

    head: str
    justify: Literal["left", "right"] = "right"
    prose: bool = False
    is_tied: bool = False
    is_picture: bool = False


@dataclass
class Table:
    """A table for terminals, pipes and Markdown; it prints itself on a Rich console."""

    columns: list[Column]
    rows: list[tuple[list[Text], str]] = field(default_factory=list)
    """Cells and the style of the row."""

    def add_row(self, *cells: Cell, style: str = "") -> None:
        """Adds a row of as many cells as there are columns.

        Raises:
            ValueError: If they are more or fewer.
        """
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns")
        self.rows.append(([_shown(each) for each in cells], style))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The layout for the console's width."""
        if is_markdown(console):
            yield Text(self.to_markdown())
            return
        parts = _split(self._units(options.max_width), self._widths(), options.max_width)
        for place, part in enumerate(parts or []):
            if place:
                yield Text("")
            yield self._grid(part, options.max_width)
        if parts is None:
            yield from self._records()

    def to_markdown(self) -> str:
        """The whole table as Markdown, without pictures."""
        kept = [place for place, column in enumerate(self.columns) if not column.is_picture]
        rows = [[_escaped(cells[place].plain.strip()) for place in kept] for cells, _ in self.rows]
        heads = [_escaped(self.columns[place].head) for place in kept]
        right = [number for number, place in enumerate(kept) if self.columns[place].justify == "right"]
        return markdown.table(heads, rows, right)

    def _units(self, width: int) -> list[list[int]]:
        """The columns that are shown, in groups that stay together: pictures only if everything fits with them."""
        fits = _breadth(range(len(self.columns)), self._widths()) <= width
        units: list[list[int]] = []
        for place, column in enumerate(self.columns):
            if column.is_picture and not fits:
                continue
            if column.is_tied and len(units) > 1:
                units[-1].append(place)
            else:
                units.append([place])
        return units

    def _widths(self) -> list[int]:
        """The least width of each column that crops nothing: that of its widest cell and of its head's longest word."""
        return [
            max(
                max((cell_len(word) for word in column.head.split()), default=0),
                max((_least(cells[place], column) for cells, _ in self.rows), default=0),
                1,
            )
            for place, column in enumerate(self.columns)
        ]

    def _grid(self, part: Sequence[int], width: int) -> RichTable:
        """Some columns as they are; heads and prose take what room there is."""
        made = RichTable(
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            collapse_padding=True,
            show_edge=False,
        )
        for place, cells in zip(part, self._fitted(part, width), strict=True):
            column = self.columns[place]
            made.add_column(
                Text(column.head), justify=column.justify, overflow="fold", width=cells, vertical="top"
            )
        for row, style in self.rows:
            made.add_row(*(row[place] for place in part), style=style)
        return made

    def _fitted(self, part: Sequence[int], width: int) -> list[int]:
        """The width of each column of a part: what it would like, as far as there is room."""
        least = self._widths()
        fitted = [least[place] for place in part]
        room = width - sum(fitted) - GAP * (len(part) - 1)
        while room > 0 and (narrow := [n for n, place in enumerate(part) if fitted[n] < self._liked(place)]):
            for number in narrow[:room]:
                fitted[number] += 1
            room -= min(room, len(narrow))
        return fitted

    def _liked(self, place: int) -> int:
        """The width in which nothing of a column wraps."""
        return max(
            [cell_len(self.columns[place].head), *(_longest_line(cells[place]) for cells, _ in self.rows)]
        )

    def _records(self) -> Iterator[Text]:
        """Each row as lines; what is longer than the width goes on in the next line."""
        for cells, style in self.rows:
            for place, (column, cell) in enumerate(zip(self.columns, cells, strict=True)):
                if column.is_picture or not cell.plain.strip():
                    continue
                head = f"{column.head}: " if column.head else ""
                line = Text.assemble("" if place == 0 else "  ", head, cell, style=style)
                line.overflow = "fold"
                yield line


def _shown(cell: Cell) -> Text:
    if isinstance(cell, str):
        return Text(visible(cell))
    return Text(visible(cell.plain), style=cell.style)


def _least(cell: Text, column: Column) -> int:
    """The fewest columns in which a cell can be shown."""
    if not column.prose:
        return _longest_line(cell)
    longest_word = max((cell_len(word) for word in cell.plain.split()), default=0)
    return max(longest_word, min(PROSE_CELLS_MIN, _longest_line(cell)))


def _longest_line(cell: Text) -> int:
    return max((cell_len(line) for line in cell.plain.splitlines()), default=0)


def _breadth(columns: Iterable[int], widths: Sequence[int]) -> int:
    """The width of columns side by side."""
    return sum(widths[place] + GAP for place in columns) - GAP


def _split(units: Sequence[Sequence[int]], widths: Sequence[int], width: int) -> list[list[int]] | None:
    """Which columns stand side by side, the first in each part; None if some do not fit beside it.

    Args:
        units: Columns that stay together.
        widths: Of each column.
        width: What there is.
    """
    first, *others = units
    parts = [list(first)]
    for unit in others:
        if _breadth([*parts[-1], *unit], widths) > width and parts[-1] != first:
            parts.append(list(first))
        parts[-1].extend(unit)
    return parts if all(_breadth(part, widths) <= width for part in parts) else None


def _escaped(text: str) -> str:
    """A text that Markdown's tables take as it is."""
    return " ".join(
        text.replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*").replace("<", "\\<").split()
    )
