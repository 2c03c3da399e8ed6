"""How results show themselves in notebooks: tables and drawings of the same blocks as pages, without scripts."""

from typing import TYPE_CHECKING

from ampsched.report import comparing, single
from ampsched.report.asked import Asked
from ampsched.report.page import Block, Notes, Table, Text, fragment
from ampsched.report.parts import busy_table, drawing, lanes

if TYPE_CHECKING:
    from ampsched._core import Machine
    from ampsched.comparison import Comparison
    from ampsched.results import Outcome
    from ampsched.tasks import TaskSchedule
    from ampsched.turns import Timeline

ROWS_MAX = 30
"""Rows of a table; the rest is told as a number."""


def comparison(found: "Comparison") -> str:
    """The answer and its table."""
    page = comparing.page(found.to_dict(), Asked())
    notes = (Notes(tuple(found.caveats())),) if found.caveats() else ()
    tables = tuple(block for block in page.blocks if isinstance(block, Table))
    return fragment(Text(page.certainty), *_short(tables[:1]), *notes, title=page.answer)


def outcome(found: "Outcome") -> str:
    """Programs and their times."""
    page = single.page(found.to_dict(), Asked())
    return fragment(*_short(page.blocks[:1]), title=f"{page.title}: {page.answer}")


def machine(found: "Machine") -> str:
    """A drawing of the machine."""
    return fragment(drawing(found), title=f"{found.name}: {found.description or 'a machine'}")


def timeline(found: "Timeline") -> str:
    """Which program has which core, drawn and as shares of the time."""
    return fragment(lanes(found), *_short((busy_table(found),)), title=repr(found).strip("<>"))


def schedule(found: "TaskSchedule") -> str:
    """The makespan and what each worker did."""
    from ampsched.report import tasks

    table = tasks.gantt(found).table
    assert table is not None, "a Gantt chart has its numbers"
    title = f"{found.graph.name} under {found.policy}: {found.makespan_s:g} s, {found.over_bound:.1%} above the bound"
    return fragment(*_short((table,)), title=title)


def _short(blocks: tuple[Block, ...]) -> list[Block]:
    made: list[Block] = []
    for block in blocks:
        if isinstance(block, Table) and len(block.rows) > ROWS_MAX:
            left = f"{len(block.rows) - ROWS_MAX} more rows: to_polars() has all."
            block = Table(block.caption, block.heads, block.rows[:ROWS_MAX], left)
        made.append(block)
    return made
