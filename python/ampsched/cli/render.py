"""What commands print: texts, tables, bars, numbers as they are shown."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from ampsched.cli.consoles import PIPE_COLUMNS, is_markdown
from ampsched.cli.consoles import MarkdownConsole as MarkdownConsole
from ampsched.cli.consoles import console as console
from ampsched.cli.consoles import errors as errors
from ampsched.cli.tables import Column, Table
from ampsched.cli.texts import examples as examples
from ampsched.cli.texts import is_unicode
from ampsched.cli.texts import visible as visible
from ampsched.statistics import Estimate

BAR_CELLS = 8
EIGHTHS = " ▏▎▍▌▋▊▉█"
STEPS = "▁▂▃▄▅▆▇█"
ASCII_STEPS = "_.-=+*#@"
SHADES = " ░▒▓█"
ASCII_SHADES = " .:+#"


def print_markdown(console: Console, text: str) -> None:
    """Prints Markdown that anybody may have written: laid out on a terminal, elsewhere as it is."""
    if is_markdown(console) or console.width >= PIPE_COLUMNS:
        console.print(text, soft_wrap=True)
    else:
        from rich.markdown import Markdown

        console.print(Markdown(visible(text)))


def print_json(value: object) -> None:
    """Prints a value as JSON."""
    json.dump(value, sys.stdout, indent=2, ensure_ascii=not is_unicode(), allow_nan=False)
    sys.stdout.write("\n")


def table(*columns: str | Column) -> Table:
    """A table whose columns, except the first, are aligned to the right if they are given by their heads alone."""
    return Table(
        [
            each if isinstance(each, Column) else Column(each, "right" if number else "left")
            for number, each in enumerate(columns)
        ]
    )


def label(head: str) -> Column:
    """A column of names."""
    return Column(head, "left")


def prose(head: str) -> Column:
    """A column of sentences."""
    return Column(head, "left", prose=True)


def tied(head: str) -> Column:
    """A column of numbers that say something of those before them, such as their change."""
    return Column(head, is_tied=True)


def picture() -> Column:
    """A column of bars."""
    return Column("", "left", is_picture=True)


def print_title(console: Console, text: str) -> None:
    """Prints the title of a table."""
    shown = f"**{visible(text)}**" if is_markdown(console) else visible(text)
    console.print(Text(shown, style="bold"), soft_wrap=True)


def print_notes(console: Console, notes: Iterable[str]) -> None:
    """Prints what a reader must know besides, a line each; names in them are no markup."""
    for note in notes:
        console.print(f"note: {note}", soft_wrap=True, markup=False)


def print_table(console: Console, title: str, table: Table) -> None:
    """Prints a table with its title and an empty line behind it."""
    print_title(console, title)
    console.print(table)
    console.print()


def print_head(console: Console, kind: str, rest: str, end: str = "\n") -> None:
    """Prints what kind of thing it is, in bold, and the rest of the line."""
    shown = f"**{visible(kind)}**" if is_markdown(console) else visible(kind)
    console.print(Text.assemble((shown, "bold"), f" {visible(rest)}"), soft_wrap=True, end=end)


def bar(share: float, cells: int = BAR_CELLS) -> str:
    """A bar that fills a share (0 to 1) of some cells."""
    if not is_unicode():
        return "#" * round(max(0.0, min(1.0, share)) * cells)
    eighths = round(max(0.0, min(1.0, share)) * cells * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (EIGHTHS[rest] if rest else "")


def shades(shares: Iterable[float]) -> str:
    """One cell per share (0 to 1), the darker the greater."""
    scale = SHADES if is_unicode() else ASCII_SHADES
    return "".join(scale[min(4, round(4 * share))] for share in shares)


def curve(values: Sequence[float], low: float, high: float) -> str:
    """One cell per value, the taller the greater between two bounds."""
    scale = STEPS if is_unicode() else ASCII_STEPS
    return "".join(scale[round(7 * (value - low) / (high - low or 1))] for value in values)


def print_curves(
    console: Console,
    head: str,
    lines: Mapping[str, Sequence[tuple[float | None, float]]],
    text: Callable[[float], str],
) -> None:
    """Prints a small curve of each policy along a parameter, between the least and the greatest value of all.

    Args:
        console: Where; nothing is printed into Markdown, which has the numbers.
        head: The parameter.
        lines: By policy, values of the parameter and of what is drawn; a single one of a policy without the parameter.
        text: A drawn value in words.
    """
    if is_markdown(console):
        return
    every = [value for points in lines.values() for _, value in points]
    wide = max(map(len, lines))
    for name, points in lines.items():
        drawn = curve([value for _, value in points], min(every), max(every))
        ends = [text(points[0][1]), text(points[-1][1])] if len(points) > 1 else [text(points[0][1])]
        console.print(
            f"  {name:{wide}}  {drawn}  {' to '.join(ends)}", soft_wrap=True, markup=False, highlight=False
        )
    span = [
        f"{value:g}" for points in lines.values() if len(points) > 1 for value, _ in (points[0], points[-1])
    ]
    console.print(f"  {'':{wide}}  {head} = {span[0]} to {span[1]}\n", style="dim", soft_wrap=True)


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


def fixed(value: float, digits: int) -> str:
    """A number with so many digits behind the point."""
    return f"{value:.{digits}f}"


def thousands(value: float, digits: int = 1) -> str:
    """The same with commas between thousands."""
    return f"{value:,.{digits}f}"


def significant(value: float) -> str:
    """A number of any unit with five digits that count."""
    return f"{value:.5g}"


def share(value: float, digits: int = 1) -> str:
    """A share in percent, without the sign."""
    return fixed(100 * value, digits)


def interval(value: Estimate, digits: int) -> str:
    """A mean with its interval if there is one."""
    width = f" ±{fixed(value.half_width, digits)}" if value.n > 1 else ""
    return f"{fixed(value.mean, digits)}{width}"


def milliseconds(ns: float) -> str:
    """A time in ms with a precision that suits it."""
    ms = ns / 1e6
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.2f}"


def count(value: float) -> str:
    """A count."""
    return f"{value:,.0f}"
