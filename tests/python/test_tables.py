"""Tables show every label and number, whole, at any width."""

from collections import Counter

from conftest import has
from hypothesis import given, settings
from hypothesis import strategies as st

from ampsched.cli import render
from ampsched.cli.consoles import MarkdownConsole
from ampsched.cli.tables import Column, Table


def printed(table: Table, width: int) -> str:
    from rich.console import Console

    console = Console(width=width, no_color=True, force_terminal=False, highlight=False, markup=False)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


WORDS = st.text("abcxyz0123456789.:=é", min_size=1, max_size=12)
SENTENCES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    count = draw(st.integers(1, 7))
    kinds = st.sampled_from([render.label, render.prose, render.tied, lambda head: Column(head)])
    made = Table([draw(kinds)(draw(SENTENCES)) for _ in range(count)])
    for _ in range(draw(st.integers(1, 4))):
        made.add_row(*(draw(SENTENCES if column.prose else WORDS) for column in made.columns))
    return made


@given(tables(), st.integers(1, 100))
@settings(deadline=None, max_examples=150)
def test_no_character_is_lost_at_any_width(table: Table, width: int) -> None:
    text = printed(table, width)
    assert all(len(line) <= width for line in text.splitlines())
    given_ = Counter("".join(column.head for column in table.columns))
    given_.update("".join(cell.plain for cells, _ in table.rows for cell in cells))
    del given_[" "]
    assert not given_ - Counter(text), "characters are missing"


@given(tables(), st.integers(40, 100))
@settings(deadline=None, max_examples=150)
def test_labels_and_numbers_stay_whole_where_they_fit(table: Table, width: int) -> None:
    text = printed(table, width)
    for cells, _ in table.rows:
        for cell in cells:
            assert all(has(text, word) for word in cell.plain.split())


def test_a_pipe_gets_one_line_per_row() -> None:
    table = render.table("policy", *(f"a long head {number}" for number in range(40)), render.prose("why"))
    table.add_row("linux", *map(str, range(40)), "word " * 200)
    assert len(printed(table, 100_000).splitlines()) == 3


def test_columns_move_into_further_tables_with_what_they_are_tied_to() -> None:
    table = render.table("policy", "H_ANTT", render.tied("change %"), "H_STP", render.tied("change %"))
    table.add_row("a-policy", "1.424", "-27.1 ±3.2", "1.468", "+31.7 ±2.9")
    first, second = printed(table, 32).split("\n\n")
    assert (first.split()[0], second.split()[0]) == ("policy", "policy")
    assert first.split()[-3:] == ["1.424", "-27.1", "±3.2"]
    assert second.split()[-3:] == ["1.468", "+31.7", "±2.9"]


def test_rows_become_records_where_not_even_one_column_fits() -> None:
    table = render.table("policy", "H_ANTT", render.picture(), "makespan ms")
    table.add_row("a-very-long-policy", "1.424*", "####", "2,255")
    lines = [line.rstrip() for line in printed(table, 20).splitlines()]
    assert lines == ["policy:", "a-very-long-policy", "  H_ANTT: 1.424*", "  makespan ms: 2,255"]


def test_a_table_is_markdown_too() -> None:
    console = MarkdownConsole()
    table = render.table("policy", "H_ANTT", render.picture())
    table.add_row("a|b", "1.4*", "####")
    render.print_table(console, "On 2B2S", table)
    console.print("note: none")
    assert console.text() == (
        "**On 2B2S**\n\n| policy | H_ANTT |\n|---|---:|\n| a\\|b | 1.4\\* |\n\nnote: none\n"
    )
