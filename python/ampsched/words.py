"""The words of a policy: what Rules, Plan, Needs and Factors can say, who reads it, and what each place does with it.

``python -m ampsched.words FILE`` writes the types of the rules that Python may replace.
"""

import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from ampsched import _core
from ampsched._rows import WordRow

WIDTH = 110
"""Columns of a line, as pyproject.toml has it for the formatter."""


@dataclass(frozen=True, slots=True)
class Word:
    """A rule, a change, a need or a factor."""

    name: str
    """In snake case."""
    doc: str
    """What it means."""
    payload: tuple[tuple[str, str], ...]
    """What it carries: name, unit last, and meaning."""
    reads: tuple[str, ...]
    """The changes of a plan that it reads."""
    readers: tuple[str, ...]
    """Of a change: the rules that read it, as in `allocator = wake_affine`."""
    hides: tuple[str, ...]
    """The changes of a plan that mean nothing where it holds."""
    reads_load: bool
    """Whether it reads tracked load: a policy with this rule must need `load_tracking`."""
    kernel: str
    """What a scheduler in the kernel does with it: `exact`, `refused: ...`, `if ...`."""
    daemon: str
    """What the daemon does with it: `exact`, `instead: ...`, `refused: ...`, `if ...`."""


@dataclass(frozen=True, slots=True)
class Group:
    """Words of which one is chosen, or which stand side by side."""

    part: str
    """`rules`, `plan`, `needs` or `factors`."""
    name: str
    """In snake case."""
    doc: str
    """What it is about."""
    words: tuple[Word, ...]
    """Its words; on the wire each has its place as its number."""


def words() -> tuple[Group, ...]:
    """The whole table, group by group."""
    return tuple(
        Group(row["part"], row["name"], row["doc"], tuple(_word(word) for word in row["words"]))
        for row in _core.words()
    )


def plain(doc: str) -> str:
    """Rust's documentation without its links."""
    return re.sub(r"\[(`[^`]*`)\](\([^)]*\))?", r"\1", doc).replace("crate::", "")


def _word(row: WordRow) -> Word:
    payload = tuple((name, doc) for name, doc in row["payload"])
    return Word(
        row["name"],
        row["doc"],
        payload,
        tuple(row["reads"]),
        tuple(row["readers"]),
        tuple(row["hides"]),
        row["reads_load"],
        row["kernel"],
        row["daemon"],
    )


HEAD = '''"""The rules that a policy written in Python may replace; written by `make bless` from the table of words."""

from collections.abc import Sequence
from typing import Literal, TypedDict


class Rules(TypedDict, total=False):
    """Single rules that a policy written in Python replaces in those of its base."""
'''


def _field(key: str, kind: str) -> str:
    """A field as the formatter has it, which gives long lists a line of their own."""
    field = f"{key}: {kind}"
    if len(field) <= WIDTH - 4:
        return field
    head, bracket, rest = field.partition("[")
    return f"{head}{bracket}\n        {rest.removesuffix(']')}\n    ]"


def rules_module() -> str:
    """The text of `ampsched/rules.py`: a type for each rule."""
    fields = []
    for key, kind, doc in _core.rule_keys():
        lines = textwrap.wrap(plain(doc), 98)
        text = "\n    ".join(lines)
        fields.append(f'\n    {_field(key, kind)}\n    """{text}"""')
    return HEAD + "".join(fields) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(rules_module(), encoding="utf-8")
