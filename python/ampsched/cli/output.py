"""How a command answers: as tables, CSV, JSON or Markdown."""

import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from enum import StrEnum
from typing import Any

import typer
from rich.console import Console

from ampsched._core import InputError
from ampsched.cli import injection, render
from ampsched.cli.texts import visible

Rows = Iterable[Mapping[str, Any]]


class Format(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    MARKDOWN = "markdown"


@dataclass(frozen=True)
class Output:
    """The format that was asked for."""

    format: Format

    @property
    def is_data(self) -> bool:
        """Whether it is for programs, so that nothing moves on the terminal meanwhile."""
        return self.format in (Format.CSV, Format.JSON)

    def show(
        self,
        *,
        value: Callable[[], object],
        rows: Callable[[], Rows],
        text: Callable[[Console], None],
    ) -> None:
        """Prints an answer on standard output.

        Args:
            value: All of it, for JSON.
            rows: Its rows as in the JSON, for CSV; what they hold in turn gets columns of its own.
            text: Prints it in words and tables, for people and for Markdown.
        """
        if self.format is Format.JSON:
            render.print_json(value())
        elif self.format is Format.CSV:
            _write(csv_text(rows()))
        elif self.format is Format.MARKDOWN:
            written = render.MarkdownConsole()
            text(written)
            _write(written.text())
        else:
            text(render.console())


def with_format(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options ``--format`` and ``--json``; it gets an `Output` in its parameter ``output``."""
    chosen = typer.Option("--format", help="Output format [default: table].", rich_help_panel="Output")
    short = typer.Option("--json", help="Short for --format json.", rich_help_panel="Output")
    options = [
        injection.option("format_", Format | None, None, chosen),
        injection.option("json", bool, False, short),
    ]
    return injection.with_options(command, "output", options, _output)


def _output(values: dict[str, Any]) -> Output:
    chosen: Format | None = values["format_"]
    if not values["json"]:
        return Output(chosen or Format.TABLE)
    if chosen not in (None, Format.JSON):
        raise InputError(f"--json and --format {chosen} exclude each other")
    return Output(Format.JSON)


def csv_text(rows: Rows) -> str:
    """Rows as CSV with a line of names; empty if there are none."""
    import polars

    frame = polars.DataFrame([dict(_flat(row)) for row in rows], infer_schema_length=None)
    return frame.write_csv() if frame.height else ""


def _flat(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """A row without rows in it: ``h_antt_mean`` for ``{"h_antt": {"mean": ...}}``; lists as JSON."""
    for key, value in row.items():
        inner = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{prefix}{key}_")
        elif isinstance(inner, list | tuple):
            yield f"{prefix}{key}", json.dumps(inner)
        else:
            yield f"{prefix}{key}", visible(inner) if isinstance(inner, str) else inner


def _write(text: str) -> None:
    """Writes data: what reads it expects UTF-8, whatever the terminal can show."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    sys.stdout.write(text)
