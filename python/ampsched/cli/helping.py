"""Help that crops nothing: typer's tables cut long words in narrow terminals; here they go on in the next line."""

import functools
from collections.abc import Callable
from typing import Any

from typer.core import TyperCommand, TyperGroup


def fold_help() -> None:
    """Has the help of all commands fold what does not fit."""
    for class_ in (TyperCommand, TyperGroup):
        class_.format_help = _folded(class_.format_help)  # type: ignore[method-assign]


def _folded(format_help: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(format_help)
    def formatted(*arguments: Any, **named: Any) -> None:  # noqa: ANN401 (typer's own)
        _fold_tables()
        format_help(*arguments, **named)

    return formatted


@functools.cache
def _fold_tables() -> None:
    """Gives typer tables and columns that fold."""
    from rich.columns import Columns
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table
    from typer import rich_utils

    def folding(table: Table) -> Table:
        for column in table.columns:
            column.overflow = "fold"
        return table

    class FoldingTable(Table):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            folding(self)
            return super().__rich_console__(console, options)

    class FoldingColumns(Columns):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            for part in super().__rich_console__(console, options):
                yield folding(part) if isinstance(part, Table) else part

    rich_utils.__dict__.update(Table=FoldingTable, Columns=FoldingColumns)
