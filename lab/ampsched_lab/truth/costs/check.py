"""A check: figures that somebody measured beside what the simulator says."""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import ampsched
from ampsched_lab.truth.pairs.report import table

AIM = 0.10
"""How far off a figure may be."""


@dataclass(frozen=True)
class Row:
    """A figure on both sides.

    Attributes:
        case: What it is of.
        measured: By somebody, or by theory.
        simulated: By us.
    """

    case: str
    measured: float
    simulated: float

    @property
    def error(self) -> float:
        """Of what was simulated."""
        return self.simulated / self.measured - 1


def rows_table(unit: str, rows: Sequence[Row], form: str = ",.0f") -> str:
    """The figures, and how many of them are within the aim."""
    cells = [
        [
            row.case,
            format(row.measured, form),
            format(row.simulated, form),
            f"{row.error:+.1%}".replace("%", " %"),
        ]
        for row in rows
    ]
    good = sum(abs(row.error) <= AIM for row in rows)
    header = [unit, "measured", "simulated", "error"]
    return f"{table(header, cells)}\n\n{good} of {len(rows)} are within {AIM:.0%}.".replace("%.", " %.")


def simulate(
    machine: str,
    program: str,
    policy: str = "cfs",
    files: Mapping[str, str] | None = None,
    **settings: object,
) -> ampsched.Outcome:
    """A program's text, with files beside it, on a machine: a name, or the text of a machine's file."""
    with tempfile.TemporaryDirectory(prefix="ampsched-costs-") as name:
        folder = Path(name)
        path = folder / "program.toml"
        path.write_text(f'name = "p"\ndescription = "d"\n{program}', "utf-8")
        for beside, text in (files or {}).items():
            (folder / beside).write_text(text, "utf-8")
        if "\n" in machine:
            (folder / "machine.toml").write_text(machine, "utf-8")
            machine = str(folder / "machine.toml")
        return ampsched.simulate(machine, path, policy, **settings)  # type: ignore[arg-type]


def section(title: str, parts: Iterable[str]) -> str:
    """A part of the page."""
    return "\n\n".join([f"## {title}", *parts])
