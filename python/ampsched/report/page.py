"""A page: sections of blocks (tables, charts, facts, texts), and how they become HTML."""

import functools
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ampsched._core import BUILD
from ampsched.files import write_text


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table."""

    text: str
    value: float | None = None
    """What it is sorted by, unless that is its text."""
    tone: str = ""
    """``good``, ``bad`` or nothing."""


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column."""

    text: str
    is_number: bool = True
    hint: str = ""
    """What it means, in a sentence."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table; its first cell is its head."""

    cells: tuple[Cell, ...]
    group: str = ""
    """What filters show or hide, such as a policy."""
    is_best: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table that can be sorted."""

    kind: ClassVar[str] = "table"
    caption: str
    heads: tuple[Head, ...]
    rows: tuple[Row, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure that ``report.js`` draws."""

    kind: ClassVar[str] = "chart"
    form: str
    """How it is drawn: a function of ``report.js``."""
    title: str
    alt: str
    """What it shows, in words."""
    data: Mapping[str, Any]
    table: Table | None = None
    """The same as numbers."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Terms with what is known of them."""

    kind: ClassVar[str] = "facts"
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    kind: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True, slots=True)
class Notes:
    """A list of sentences."""

    kind: ClassVar[str] = "notes"
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Something to type."""

    kind: ClassVar[str] = "code"
    text: str


@dataclass(frozen=True, slots=True)
class Rich:
    """HTML that was made of Markdown without raw HTML, or by this package."""

    kind: ClassVar[str] = "rich"
    html: Markup


@dataclass(frozen=True, slots=True)
class Cluster:
    """Cores of one kind as a drawing shows them."""

    name: str
    core_type: str
    mhz: int
    rank: int
    """0 is the slowest class."""
    cores: tuple[int, ...]
    """Their numbers."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A machine."""

    kind: ClassVar[str] = "drawing"
    name: str
    text: str
    """The same in words."""
    clusters: tuple[Cluster, ...]


@dataclass(frozen=True, slots=True)
class Lanes:
    """Spans of time on rows, drawn without scripts."""

    kind: ClassVar[str] = "lanes"
    alt: str
    names: tuple[str, ...]
    """What colours stand for."""
    rows: tuple[tuple[str, tuple[tuple[float, float, int], ...]], ...]
    """Label and spans: start and length in percent of the time, number of a name."""


Block = Table | Chart | Facts | Text | Notes | Code | Rich | Drawing | Lanes


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a page."""

    title: str
    blocks: tuple[Block, ...]
    is_folded: bool = False
    """Whether it is shown only when it is asked for."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page, the answer first."""

    title: str
    answer: str
    """In one sentence."""
    blocks: tuple[Block, ...]
    """What supports it: a table and a figure."""
    sections: tuple[Section, ...] = ()
    groups: tuple[str, ...] = ()
    """What can be shown or hidden."""
    group_word: str = "policy"
    colours: tuple[str, ...] = ()
    """Of the groups, names of the style; in its order by default."""
    certainty: str = ""
    """How sure the answer is, in a sentence."""
    made_by: tuple[tuple[str, str], ...] = field(default_factory=lambda: versions())


def versions() -> tuple[tuple[str, str], ...]:
    """The versions that a repetition needs."""
    import ampsched

    return (("ampsched", f"{ampsched.__version__} ({BUILD})"), ("Python", platform.python_version()))


def html(page: Page | Sequence[Page], script: str = "") -> str:
    """The page as one HTML file that needs nothing else.

    Args:
        page: The page; several become one, one after the other.
        script: More JavaScript, for tests.
    """
    pages = (page,) if isinstance(page, Page) else tuple(page)
    template = environment().get_template("page.html.j2")
    return template.render(
        pages=pages,
        style=_asset("style.css"),
        libraries=(_asset("vendor/echarts.min.js"), _asset("report.js")),
        script=script,
    )


def fragment(*blocks: Block, title: str = "") -> str:
    """Blocks as a piece of HTML with its own style and without scripts, for notebooks."""
    text = environment().get_template("fragment.html.j2").render(blocks=blocks, title=title)
    # An empty line would end a block of HTML in Markdown.
    return "\n".join(line for line in text.splitlines() if line.strip())


def write(page: Page | Sequence[Page], path: str | Path) -> None:
    """Writes a page into a file, as a whole or not at all.

    Raises:
        OSError: If it cannot be written.
    """
    write_text(path, html(page))


@functools.cache
def environment() -> Environment:
    """The templates; whatever is put into them is escaped."""
    made = Environment(
        loader=PackageLoader("ampsched.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["glued"] = glued
    return made


def glued(text: str) -> str:
    """The text with its percent signs on the line of their numbers."""
    return text.replace(" %", "\u00a0%")


def _asset(name: str) -> Markup:
    """A file of this package as it is."""
    return Markup((files("ampsched.report") / name).read_text(encoding="utf-8"))  # noqa: S704 (shipped)
