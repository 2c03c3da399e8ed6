"""The page of a paper's reproduced experiment: verdicts by figure, claims, and the report with its figures."""

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from ampsched._core import InputError
from ampsched.files import read_text
from ampsched.report.asked import Asked
from ampsched.report.page import Cell, Chart, Head, Page, Rich, Row, Section, Table
from ampsched.report.parts import repeat_section
from ampsched.report.prose import sections, to_html
from ampsched_lab.shared.claims.comparisons import Verdict
from ampsched_lab.shared.claims.tables import MARKS, answer_text, figure_of

REPORT, CLAIMS = "report.md", "claims.csv"
COLOURS = {"reproduced": "c3", "direction only": "c1", "not reproduced": "c2", "not testable here": "c0"}
"""By verdict, a colour of the style."""
DETAILS = "Claims"
"""The section of a report that the page shows as a table of its own."""
BYTES_MAX = 16 << 20

Claim = Mapping[str, str]


def is_folder(path: Path) -> bool:
    """Whether it is a folder that ``ampsched reproduce`` has written."""
    return path.is_dir() and (path / REPORT).is_file() and (path / CLAIMS).is_file()


def page(folder: Path, asked: Asked, *, figures: bool = True) -> Page:
    """The page of a folder that ``ampsched reproduce`` has written.

    Args:
        folder: The folder.
        asked: What it came from.
        figures: Whether the report with its figures is part of it, not only verdicts and claims.

    Raises:
        InputError: If a file cannot be read or is wrong.
    """
    if not is_folder(folder):
        raise InputError(
            f"{folder}: is no folder that ampsched reproduce has written: it lacks report.md or claims.csv"
        )
    claims = _claims(folder / CLAIMS)
    counted = [claim for claim in claims if not claim.get("apart")]
    counts = Counter(cast("Verdict", claim["verdict"]) for claim in counted)
    verdicts = tuple(verdict for verdict in MARKS if counts[verdict])
    title, parts = _report(folder)
    told = [Section(name, (Rich(to_html(text, folder)),)) for name, text in parts if name and name != DETAILS]
    repeat = repeat_section(asked)
    return Page(
        title,
        answer_text(counts) or "This part has no claims that count.",
        ((_verdicts(counted), _table(counted)) if counted else ()),
        (*(told if figures else ()), *((repeat,) if repeat else ())),
        verdicts,
        "verdicts",
        tuple(COLOURS[verdict] for verdict in verdicts),
        certainty="Nothing was tuned to a claim. Intervals are 95 % over seeds; they do not cover the model's errors.",
    )


def _claims(path: Path) -> list[Claim]:
    rows: list[Claim] = list(csv.DictReader(io.StringIO(read_text(path, BYTES_MAX))))
    needed = {"id", "claim", "source", "paper", "ours", "verdict"}
    for row in rows[:1]:
        if missing := needed - row.keys():
            raise InputError(
                f"{path}: column {min(missing)} is missing: it was not written by ampsched reproduce"
            )
    for number, row in enumerate(rows, 2):
        if row["verdict"] not in MARKS:
            raise InputError(
                f'{path}: line {number}: verdict "{row["verdict"]}" is not one of {", ".join(MARKS)}'
            )
    return rows


def _report(folder: Path) -> tuple[str, list[tuple[str, str]]]:
    """Title and sections of the report."""
    text = read_text(folder / REPORT, BYTES_MAX)
    head, _, rest = text.partition("\n")
    if not head.startswith("# "):
        raise InputError(f"{folder / REPORT}: does not begin with a title")
    return head.removeprefix("# "), sections(rest)


def _verdicts(claims: Sequence[Claim]) -> Chart:
    """Verdicts by the paper's figure, table or text that states the claims."""
    sources = list(dict.fromkeys(figure_of(claim["source"]) for claim in claims))
    found = Counter((figure_of(claim["source"]), claim["verdict"]) for claim in claims)
    verdicts = [verdict for verdict in MARKS if any(claim["verdict"] == verdict for claim in claims)]
    data = {
        "rows": sources,
        "unit": "claims",
        "parts": [
            {
                "name": verdict,
                "colour": COLOURS[verdict],
                "values": [found[source, verdict] for source in sources],
            }
            for verdict in verdicts
        ],
    }
    rows = tuple(
        Row(
            (
                Cell(source),
                *(Cell(str(found[source, verdict]), found[source, verdict]) for verdict in verdicts),
            )
        )
        for source in sources
    )
    table = Table("Verdicts by source", (Head("source", False), *map(Head, verdicts)), rows)
    counts = Counter(claim["verdict"] for claim in claims)
    total = ", ".join(f"{counts[verdict]} {verdict}" for verdict in verdicts)
    return Chart("stacked", "Verdicts by the paper's figures", f"Verdicts: {total}.", data, table)


def _table(claims: Sequence[Claim]) -> Table:
    tones = {"reproduced": "good", "not reproduced": "bad"}
    rows = []
    for claim in claims:
        verdict = claim["verdict"]
        shown = Cell(f"{MARKS[verdict]} {verdict}", tone=tones.get(verdict, ""))  # type: ignore[index]
        keys = ("claim", "source", "paper", "ours")
        rows.append(
            Row(
                (
                    Cell(claim["id"]),
                    *(Cell(claim[key]) for key in keys),
                    shown,
                ),
                verdict,
            )
        )
    names = ("id", "claim", "source", "paper", "ours", "verdict")
    return Table("Claims", tuple(Head(name, False) for name in names), tuple(rows))
