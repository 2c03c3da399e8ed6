"""Writes the man pages of the command line from its definitions: ``python -m ampsched.manpages OUTDIR``."""

import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from ampsched.cli import helping
from ampsched.cli.app import app
from ampsched.docs import commands
from ampsched.files import write_text

SECTION = 1
NOTE = '.\\" Written by `python -m ampsched.manpages`; change the code instead.'
EXIT_STATUS = (
    ("0", "Done."),
    ("2", "Something is wrong with the input; one line that begins with error: says what."),
    ("129, 130, 143", "SIGHUP, SIGINT or SIGTERM has ended it."),
)
_CODE = re.compile(r"`+([^`]+)`+")


def pages() -> dict[str, str]:
    """All man pages by their file names: of ``ampsched``, and of each of its commands."""
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    found = dict(commands(root))
    made = {_file("ampsched"): _root_page(root, found)}
    for name, command in found.items():
        made[_file(f"ampsched {name}")] = _command_page(name, command)
    return made


def _file(command: str) -> str:
    return f"{command.replace(' ', '-')}.{SECTION}"


def _root_page(root: TyperGroup, found: dict[str, TyperCommand]) -> str:
    rows = ((f"ampsched {name}", _first_sentence(command)) for name, command in found.items())
    see = [f"ampsched-{name.replace(' ', '-')}" for name in found]
    return _page(
        "ampsched",
        root.help or "",
        ".B ampsched\n.I COMMAND\n.RI [ OPTIONS ]",
        [_section("OPTIONS", _tagged(_options(root, "ampsched"))), _section("COMMANDS", _tagged(rows))],
        root.epilog or "",
        [*see, "ampsched-live(8)"],
    )


def _command_page(name: str, command: TyperCommand) -> str:
    pieces = helping.usage_pieces(command, typer.Context(command, info_name=f"ampsched {name}"))
    synopsis = "\n".join([f".B ampsched {_escaped(name)}", *(f".I {_escaped(piece)}" for piece in pieces)])
    options = _section("OPTIONS", _tagged(_options(command, f"ampsched {name}")))
    return _page(
        f"ampsched {name}", command.help or "", synopsis, [options], command.epilog or "", ["ampsched"]
    )


def _page(
    name: str, about: str, synopsis: str, parts: list[str], epilog: str, see_also: Iterable[str]
) -> str:
    title = name.replace(" ", "-")
    paragraphs = inspect.cleandoc(about).split("\n\n")
    blocks = [
        NOTE,
        f'.TH {_escaped(title.upper())} {SECTION} "" "ampsched" "User Commands"',
        _section("NAME", f"{_escaped(title)} \\- {_escaped(_first_words(paragraphs[0]))}"),
        _section("SYNOPSIS", synopsis),
        _section("DESCRIPTION", "\n.PP\n".join(map(_text, paragraphs))),
        *parts,
        _section("EXAMPLES", "\n.PP\n".join(f".EX\n{_escaped(line)}\n.EE" for line in _CODE.findall(epilog))),
        _section("EXIT STATUS", _tagged(EXIT_STATUS)),
        _section("SEE ALSO", ",\n".join(_reference(each) for each in see_also)),
    ]
    return "\n".join(filter(None, blocks)) + "\n"


def _section(title: str, body: str) -> str:
    """A section; nothing without a body."""
    return f'.SH "{title}"\n{body}' if body else ""


def _tagged(rows: Iterable[tuple[str, str]]) -> str:
    """Paragraphs, each behind what it is of."""
    return "\n".join(f".TP\n.B {_escaped(head)}\n{_text(text)}" for head, text in rows)


def _options(command: TyperCommand | TyperGroup, name: str) -> Iterator[tuple[str, str]]:
    context = typer.Context(command, info_name=name)
    records = (helping.row(param, context) for param in command.params)
    yield from ((" ".join(head.split()), text) for head, text in filter(None, records))


def _reference(page: str) -> str:
    return f".BR {_escaped(page)}" if page.endswith(")") else f".BR {_escaped(page)} ({SECTION})"


def _first_sentence(command: TyperCommand) -> str:
    return inspect.cleandoc(command.help or "").split("\n\n")[0]


def _first_words(paragraph: str) -> str:
    """The paragraph in a line without code marks and the last period."""
    return _CODE.sub(r"\1", " ".join(paragraph.split())).removesuffix(".")


def _text(text: str) -> str:
    """A paragraph, what is code in it in bold."""
    line = _escaped(" ".join(text.split()))
    return _CODE.sub(r"\\fB\1\\fR", line)


def _escaped(text: str) -> str:
    """A text that roff takes as it is."""
    quoted = text.replace("\\", "\\e").replace("-", "\\-").replace("^", "\\(ha").replace("~", "\\(ti")
    return f"\\&{quoted}" if quoted.startswith((".", "'")) else quoted


def main(folder: Path) -> None:
    """Writes all pages into a folder, and removes those of commands that are gone."""
    folder.mkdir(parents=True, exist_ok=True)
    made = pages()
    for path in folder.glob(f"ampsched*.{SECTION}"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        write_text(folder / name, text)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m ampsched.manpages OUTDIR")
    main(Path(sys.argv[1]))
