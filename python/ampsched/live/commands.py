"""What ``ampsched-live`` can do and with which options, as the program itself declares it (``commands.json``)."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("commands.json")


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a subcommand."""

    name: str
    """The setting."""
    flags: tuple[str, ...]
    """How it is given; empty if it stands behind ``--``."""
    metavar: str | None
    """What stands for its value; none if it has none."""
    choices: tuple[str, ...]
    """The values that there are; empty if there are too many to say."""
    default: str | None
    """What it is if it is not given."""
    is_repeatable: bool
    group: str
    """What it is about: ``cores``, ``scope``, ``record`` or ``policy``."""
    help: str

    def arguments(self, value: str | bool | list[str] | None) -> list[str]:
        """The option with a value as arguments; none if it is not given."""
        flag = self.flags[-1]
        if isinstance(value, bool):
            return [flag] if value else []
        texts = value if isinstance(value, list) else [value]
        return [f"{flag}={text}" for text in texts if text is not None]


@dataclass(frozen=True, slots=True)
class Subcommand:
    """A subcommand of ``ampsched-live``."""

    name: str
    about: str
    options: tuple[Option, ...]


@cache
def subcommands() -> dict[str, Subcommand]:
    """The subcommands by name, in the order of the program's help."""
    rows = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        row["name"]: Subcommand(
            row["name"], row["about"], tuple(_option(option) for option in row["options"])
        )
        for row in rows
    }


def _option(row: dict[str, object]) -> Option:
    lists = {key: tuple(value) for key, value in row.items() if isinstance(value, list)}
    return Option(**(row | lists))  # type: ignore[arg-type]
