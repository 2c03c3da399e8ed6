"""Markdown that is written by code: wrapped text, tables, pages."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from textwrap import wrap

WIDTH = 120
"""Columns of a line; those of tables may be longer."""

# What may not begin a line that continues a paragraph: it would begin a list, heading, quotation or table.
_BEGINS_A_BLOCK = re.compile(r" (?=(?:[-+*]|\d+[.)]|#{1,6}|>|\|)(?: |$))")
# Lines that stay as they are: headings, tables, images, HTML, quotations, rules, definitions of links, notes.
_STAYS = re.compile(r"\s*(?:#{1,6} |\||!\[|<|>|(?:---+|\*\*\*+)$|\[[^\]]+\]: |!!! |\?\?\? )")
_ITEM = re.compile(r"(\s*)([-+*]|\d+[.)])( +)")
_FENCE = re.compile(r"\s*(```+|~~~+)")
_BREAKS = ("  ", "\\")
"""Ends of lines that break the line."""
_GLUE = "\0"
# Code, destinations of links, HTML and CSS, which stay, or what stands between a number and its unit.
_UNIT = re.compile(
    r"(`[^`]*`|\]\([^)\s]*\)|<[^>]*>|\b(?:height|width|left|font-size): ?[\d.]+%)|(?<=\d) ?(%|µs\b)|(?<=\d) us\b"
)


def wrapped(text: str, width: int = WIDTH) -> str:
    """Markdown with its paragraphs and list items filled anew; everything else is left as it is.

    Numbers and units are written in one way, "5 %" and "20 µs", on one line, but not in code. What it yields it
    leaves as it is. A line is longer only if it is a table's, a heading, code or one long word, such as a link.

    Args:
        text: A paragraph or a whole page.
        width: Columns.
    """
    return "\n".join(
        line
        for words, block in _blocks(text.split("\n"))
        for line in (_filled(block, width) if words else block)
    )


NO_COLUMNS = slice(0)
ALL_BUT_FIRST = slice(1, None)


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: slice | Collection[int] = NO_COLUMNS
) -> str:
    """A Markdown table.

    Args:
        heads: The first row.
        rows: The others.
        numbers: The columns that hold numbers and are set to the right; the others hold text.
    """
    right = range(len(heads))[numbers] if isinstance(numbers, slice) else numbers
    rule = "".join("---:|" if column in right else "---|" for column in range(len(heads)))
    # An empty head has one space, an empty cell two: that is how pages have always been written.
    lines = [f"|{'|'.join(f' {head} ' if head else ' ' for head in heads)}|", f"|{rule}"]
    return "\n".join([*lines, *(f"| {' | '.join(cells)} |" for cells in rows)])


def plain(text: str) -> str:
    """Words of a paragraph or heading without marks of emphasis, code and links, on one line."""
    return " ".join(re.sub(r"[`*]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)).split())


def page(*blocks: str) -> str:
    """Blocks that are not empty, with an empty line between them, wrapped."""
    return wrapped("\n\n".join(block for block in blocks if block)) + "\n"


def _blocks(lines: Sequence[str]) -> Iterator[tuple[bool, list[str]]]:
    """Lines in groups, and whether a group is words: a paragraph or a list item; other lines stand alone."""
    paragraph: list[str] = []
    fence = ""
    for line in lines:
        mark = _FENCE.match(line)
        is_code = bool(fence or mark) or (line.startswith("    ") and not paragraph and not _ITEM.match(line))
        if mark and (not fence or line.strip() == fence):
            fence = "" if fence else mark[1]
        stays = is_code or not line.strip() or bool(_STAYS.match(line))
        if paragraph and (stays or _ITEM.match(line)):
            yield True, paragraph
            paragraph = []
        if stays:
            yield False, [line if is_code else _with_units(line).replace(_GLUE, " ")]
            continue
        paragraph.append(line)
        if line.endswith(_BREAKS):
            yield True, paragraph
            paragraph = []
    if paragraph:
        yield True, paragraph


def _with_units(text: str) -> str:
    """Text with each number glued to its unit."""
    return _UNIT.sub(lambda found: found[1] or f"{_GLUE}{found[2] or 'µs'}", text)


def _filled(block: Sequence[str], width: int) -> list[str]:
    """The lines of a group with as many words each as fit."""
    first = block[0]
    item = _ITEM.match(first)
    begin = item[0] if item else first[: len(first) - len(first.lstrip())]
    words = " ".join([first[len(begin) :].strip(), *(line.strip() for line in block[1:])])
    lines = wrap(
        _BEGINS_A_BLOCK.sub(_GLUE, _with_units(words)),
        width,
        initial_indent=begin,
        subsequent_indent=" " * len(begin),
        break_long_words=False,
        break_on_hyphens=False,
    )
    if block[-1].endswith(_BREAKS[0]):
        lines[-1] += _BREAKS[0]
    return [line.replace(_GLUE, " ") for line in lines]
