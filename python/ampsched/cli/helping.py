"""Pages of help: plain text as wide as the terminal, options and commands in groups. Nothing is cropped."""

import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ampsched.cli import commands

if TYPE_CHECKING:
    from typer._click.core import Command, Context, Parameter
    from typer._click.formatting import HelpFormatter

WIDTH_MAX, WIDTH_MIN = 100, 20
HEAD_MAX = 28
"""Columns of what a row explains; a longer one gets a line of its own."""
_MARKED = re.compile(r"\*\*([^*]+)\*\*|`([^`]+)`")
_EXAMPLE = re.compile(r"^- `(.+)`$", re.MULTILINE)
_TYPE = re.compile("<([^<>]+)>")
"""How typer shows the type of an option's value."""
_VALUES = {"path": "FILE", "int": "N", "float": "X", "str": "TEXT"}
"""What stands for a value of a type; choices stand for themselves."""

Rows = Iterable[tuple[str, str]]


def root_page() -> str:
    """The page of ``ampsched`` itself."""
    sections: dict[str, Rows] = {
        title: [(name, summary) for name, (_, summary) in group.items()]
        for title, group in commands.GROUPS.items()
    }
    usage = "ampsched [OPTIONS] COMMAND [ARGS]..."
    return page(usage, commands.ABOUT, {**sections, "Options": commands.OPTIONS.items()}, [commands.EXAMPLE])


def page(usage: str, about: str, sections: dict[str, Rows], examples: Iterable[str]) -> str:
    """A page of help.

    Args:
        usage: How the command is called.
        about: What it does, in paragraphs.
        sections: Options and commands with their explanations, by titles.
        examples: Lines to type.
    """
    width = _width()
    parts = [_wrapped(f"{_bold('Usage:')} {usage}", width, "  ")]
    parts += [_wrapped(_plain(paragraph), width) for paragraph in about.split("\n\n") if paragraph.strip()]
    parts += [f"{_bold(title)}\n{_table(list(rows), width)}" for title, rows in sections.items()]
    shown = "\n".join(_wrapped(line, width, "    ", "  ") for line in examples)
    return "\n\n".join([*parts, *([f"{_bold('Examples')}\n{shown}"] if shown else [])])


def _width() -> int:
    """Columns to fill: of the terminal, but no more than people like to read."""
    try:
        columns = int(os.environ.get("COLUMNS", "0")) or os.get_terminal_size(sys.stdout.fileno()).columns
    except (ValueError, OSError):
        columns = 80
    return min(max(columns, WIDTH_MIN), WIDTH_MAX)


def _wrapped(text: str, width: int, after: str = "", first: str = "") -> str:
    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=after, break_on_hyphens=False)


def _table(rows: list[tuple[str, str]], width: int) -> str:
    """Rows whose explanations stand beside what they explain, or below it if there is no room."""
    indent = min(max((len(head) for head, _ in rows), default=0), HEAD_MAX, width // 3) + 4
    lines = []
    for head, text in rows:
        text = _plain(text)
        if len(head) + 4 <= indent:
            lines.append(_wrapped(text, width, " " * indent, f"  {head}".ljust(indent)))
        else:
            lines += [_wrapped(head, width, "    ", "  "), _wrapped(text, width, " " * indent, " " * indent)]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Words without what is markup on a page of documentation."""
    return _MARKED.sub(lambda found: found[1] or found[2], " ".join(text.split()))


def _bold(text: str) -> str:
    is_shown = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return f"\x1b[1m{text}\x1b[0m" if is_shown else text


def command_page(context: "Context") -> str:
    """The page of a command or of a group of commands."""
    command = context.command
    usage = " ".join([context.command_path, *usage_pieces(command, context)])
    examples = _EXAMPLE.findall(command.epilog or "")
    about = [command.help or "", *([] if examples else [command.epilog or ""])]
    return page(usage, "\n\n".join(about), dict(_sections(command, context)), examples)


def _sections(command: "Command", context: "Context") -> Iterator[tuple[str, Rows]]:
    """Arguments, options by their groups, and commands."""
    found: dict[str, list[tuple[str, str]]] = {}
    for param in command.get_params(context):
        if (record := row(param, context)) is not None:
            other = "Arguments" if param.param_type_name == "argument" else "Options"
            found.setdefault(getattr(param, "rich_help_panel", None) or other, []).append(record)
    inner: dict[str, Command] = getattr(command, "commands", {})
    summaries = ((name, (each.help or "").split("\n\n")[0].rstrip(".")) for name, each in inner.items())
    yield from found.items()
    if inner:
        yield "Commands", summaries


def usage_pieces(command: "Command", context: "Context") -> list[str]:
    """What stands behind a command: what must be given as it is, the rest in brackets."""
    pieces = (re.sub("[{}]", "", piece) for piece in command.collect_usage_pieces(context))
    once = (re.sub(r"(\.\.\.\]?)\.\.\.$", r"\1", piece) for piece in pieces)
    return [piece.upper() if piece.islower() else piece for piece in once]


def row(param: "Parameter", context: "Context") -> tuple[str, str] | None:
    """An option or argument with what stands for its value, and its help; none if it is hidden."""
    found = param.get_help_record(context)
    if found is None:
        return None
    head, text = found
    if param.param_type_name == "argument":
        return param.metavar or str(param.name).upper(), text
    return _TYPE.sub(lambda kind: _VALUES.get(kind[1], kind[1]), head), text


def write_page(command: "Command", context: "Context", formatter: "HelpFormatter") -> None:
    """Writes the page of a command; all classes of commands have it as their method ``format_help``."""
    assert context.command is command
    formatter.write(command_page(context))
