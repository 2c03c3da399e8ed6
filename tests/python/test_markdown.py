"""Markdown that is written by code."""

import re

import pytest
from conftest import ROOT
from markdown_it import MarkdownIt

from ampsched.markdown import ALL_BUT_FIRST, WIDTH, page, plain, table, wrapped

WORDS = "Some words of a paragraph that is longer than forty columns are here."


def rendered(text: str) -> str:
    """HTML, in which it does not matter where lines break."""
    return " ".join(MarkdownIt("commonmark").enable("table").render(text).split())


def without_units(text: str) -> str:
    """Text with numbers and units as if none had a space between."""
    return re.sub(r"(?<=\d) ?(?:(%)|[uµ]s\b)", r"\1", text)


def test_plain_text_has_no_marks() -> None:
    assert plain("**Not** where `cfs` is\n[known](../a.md#b) *well*") == "Not where cfs is known well"


def test_paragraphs_and_items_are_filled() -> None:
    assert wrapped(f"{WORDS}\n\n- {WORDS}\n- short", 40) == (
        "Some words of a paragraph that is longer\nthan forty columns are here.\n\n"
        "- Some words of a paragraph that is\n  longer than forty columns are here.\n- short"
    )


def test_lines_that_were_broken_elsewhere_are_filled_anew() -> None:
    assert wrapped("Some\nwords of\na paragraph.\n") == "Some words of a paragraph.\n"


@pytest.mark.parametrize(
    "text",
    [
        f"# {WORDS}",
        f"| a | {WORDS} |\n|---|---|\n| 1 | 2 |",
        f"```sh\n{WORDS}\n{WORDS}\n\n```",
        f"    {WORDS}",
        f"![{WORDS}](figure.svg)",
        f"<!-- {WORDS} -->",
        f"[1]: https://example.org/{'x' * 60}",
        "x" * 60,
    ],
)
def test_what_is_no_text_is_left_alone(text: str) -> None:
    assert wrapped(text, 40) == text


def test_numbers_and_units_are_written_in_one_way() -> None:
    text = "| 5% | `6%` |\n|---|---|\n\n7% of 20 us, 8 users, `9 us`, [10%](a%20b.md) and 11 %, height: 12%;"
    told = (
        "| 5 % | `6%` |\n|---|---|\n\n7 % of 20 µs, 8 users, `9 us`, [10 %](a%20b.md) and 11 %, height: 12%;"
    )
    assert wrapped(text) == wrapped(told) == told
    assert wrapped("x" * 37 + " 5 % of it", 40) == "x" * 37 + "\n5 % of it", "a unit does not begin a line"
    assert wrapped("```\n5%\n```") == "```\n5%\n```"


@pytest.mark.parametrize("word", ["-", "+", "*", "1.", "12)", "#", ">", "|"])
def test_no_line_begins_with_what_would_begin_a_block(word: str) -> None:
    for length in range(30, 44):
        text = f"{'x' * length} {word} then more words that fill another line or two"
        assert rendered(wrapped(text, 40)) == rendered(text), (word, length)


def test_breaks_of_lines_stay() -> None:
    assert wrapped("one  \ntwo\nthree\\\nfour") == "one  \ntwo three\\\nfour"


@pytest.mark.parametrize("path", sorted((ROOT / "docs").rglob("*.md")), ids=lambda path: path.stem)
def test_pages_say_the_same_when_wrapped(path) -> None:
    text = path.read_text(encoding="utf-8")
    again = wrapped(text)
    assert wrapped(again) == again
    assert without_units(rendered(again)) == without_units(rendered(text))
    told, tables = (
        [line for line in page.splitlines() if len(line) > WIDTH and line.startswith("|")]
        for page in (text, again)
    )
    assert list(map(without_units, tables)) == list(map(without_units, told))


def test_tables_and_pages() -> None:
    numbers = table(("", "a"), [("x", "1")], ALL_BUT_FIRST)
    assert numbers == "| | a |\n|---|---:|\n| x | 1 |"
    assert page("# Title", "", numbers) == f"# Title\n\n{numbers}\n"
