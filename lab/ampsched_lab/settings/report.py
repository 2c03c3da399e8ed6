"""docs/reports/models/settings.md and its figure, from what was judged."""

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from ampsched.markdown import page, table
from ampsched.recording.model_error import SETTINGS_TABLE
from ampsched_lab.settings.judge import Judged, judged
from ampsched_lab.settings.plan import AIM, KINDS, NEAR, PLACES, SETTINGS_MAX
from ampsched_lab.settings.run import RESULTS
from ampsched_lab.shared import plots
from ampsched_lab.shared.summary import counted, opening

TEMPLATE = Path(__file__).with_name("template.md")
FILE = "judged.json"
PRODUCT = Path("python/ampsched/data") / SETTINGS_TABLE
MEASURED = "2026-12-01"
"""When the kept runs were measured."""


@dataclass(frozen=True)
class Public:
    """What owners of unequal cores say of such a program.

    Attributes:
        program: Ours of that kind.
        said: What they measured, in words.
        source: Where.
        fast_is_better: Whether fewer threads on the fast cores are faster than all; none if nobody gives figures.
    """

    program: str
    said: str
    source: str
    fast_is_better: bool | None


PUBLIC = (
    Public(
        "layers",
        "RK3588, 4 threads: 6.9 tokens/s, 8 threads: 3.8; a token takes 140 ms without E-cores, 160 ms with",
        "[llama.cpp 7176](https://github.com/ggml-org/llama.cpp/issues/7176), "
        "[5225](https://github.com/ggml-org/llama.cpp/issues/5225)",
        fast_is_better=True,
    ),
    Public(
        "crack",
        "i9-13900, 8 threads on 8 P-cores: 119 M keys/s, 32 threads on all: 109",
        "[john 5435](https://github.com/openwall/john/issues/5435)",
        fast_is_better=True,
    ),
    Public(
        "wavefront",
        "no figures: it ran on E-cores only, and P-cores idled",
        "[FastFlix 415](https://github.com/cdgriffith/FastFlix/issues/415)",
        fast_is_better=None,
    ),
    Public(
        "fixed",
        "no figures: P-cores only are recommended, as equal parts wait for E-cores",
        "[oneMKL's guide](https://www.intel.com/content/www/us/en/docs/onemkl/developer-guide-windows/2024-1/"
        "managing-performance-with-heterogeneous-cores.html)",
        fast_is_better=True,
    ),
)


def read(results: Path = RESULTS) -> list[Judged]:
    """What is kept of the verdicts."""
    return [Judged(**row) for row in json.loads((results / FILE).read_text("utf-8"))]


def count(rows: Sequence[Judged]) -> dict[str, tuple[int, int, int]]:
    """By machine: programs met, worse than leaving them, and all."""
    machines = dict.fromkeys(row.machine for row in rows)
    own = {name: [row for row in rows if row.machine == name] for name in machines}
    return {
        name: (sum(row.is_met for row in some), sum(row.is_worse for row in some), len(some))
        for name, some in own.items()
    }


def answer(rows: Sequence[Judged], picture: str) -> str:
    """The first paragraph and the figure."""
    met = "; ".join(f"{one} of {whole} on {name}" for name, (one, _, whole) in count(rows).items())
    worse = [f"{row.program} on {row.machine}" for row in rows if row.is_worse]
    gains = [row.usual_ms / row.advised_ms for row in rows]
    worst = max(rows, key=lambda row: row.gap)
    return opening(
        [
            f"**What `ampsched advise` says of threads and cores is within {NEAR:.0%} of the best of all settings that "
            f"were tried for {met}; {AIM} of {len(KINDS)} were aimed at.**",
            f"It is {'worse for ' + ', '.join(worse) if worse else 'never worse'} than leaving "
            f"the program as it is, and {fmean(gains):.2f} times as fast on average.",
            f"Furthest off is {worst.program} on {worst.machine}, by {worst.gap:.0%}.",
        ],
        picture,
        "How much longer than the best setting programs take as they are, and as advised",
    )


def tables(rows: Sequence[Judged]) -> str:
    """One table per machine."""
    return "\n\n".join(
        f"## {name}\n\n{_table([row for row in rows if row.machine == name])}" for name in count(rows)
    )


def _table(rows: Sequence[Judged]) -> str:
    heads = ["program", "as it is, ms", "advised", "ms", "predicted", "best tried", "ms", "off", "verdict"]
    cells = [
        [
            row.program,
            f"{row.usual_ms:.0f}",
            "refused: as it is" if row.refusal else row.advised,
            f"{row.advised_ms:.0f}",
            "" if row.predicted_ms is None else f"{row.predicted_ms:.0f}",
            row.best,
            f"{row.best_ms:.0f}",
            f"{row.gap:+.1%}",
            ("✓" if row.is_met else "✗") + (" worse" if row.is_worse else ""),
        ]
        for row in rows
    ]
    return table(heads, cells, (1, 3, 4, 6, 7))


def refusals(rows: Sequence[Judged]) -> str:
    """Why the product refuses."""
    found = [f"* *{row.program}* on {row.machine}: {row.refusal}" for row in rows if row.refusal]
    return "\n".join(found) or "None was refused."


def public(rows: Sequence[Judged]) -> str:
    """What people say, and what was measured and advised here."""
    lines = []
    for each in PUBLIC:
        found = [
            f"{row.machine} {row.usual_ms:.0f} → {row.fast_ms:.0f} ms, "
            f"{'refused' if row.refusal else f'advised {row.advised}'}: {_direction(each, row)}"
            for row in rows
            if row.program == each.program
        ]
        lines.append(f"* *{each.program}*: {each.said} ({each.source}). Here: {'; '.join(found)}.")
    return "\n".join(lines)


def _direction(each: Public, row: Judged) -> str:
    if each.fast_is_better is None:
        return "nothing to compare"
    if row.refusal:
        return "refused"
    return "✓" if (row.advised != row.usual) == each.fast_is_better else "✗"


def absent(rows: Sequence[Judged]) -> str:
    """What of the plan has not run yet."""
    have = {(row.machine, row.program) for row in rows}
    missing = [
        (place.name, [kind.name for kind in KINDS if (place.name, kind.name) not in have]) for place in PLACES
    ]
    told = [
        f"{name}: {'none of the programs' if len(kinds) == len(KINDS) else 'all but ' + ', '.join(kinds)}"
        for name, kinds in missing
        if kinds
    ]
    return f" Not everything has run yet; of the plan have run on {'; on '.join(told)}." if told else ""


def causes(rows: Sequence[Judged]) -> str:
    """Programs that are not met: what handing out work anew makes of them, as they are."""
    cells = [
        [
            f"{row.program}, {row.machine}",
            f"{row.gap:+.1%}",
            "refused" if row.offered_ms is None else f"{row.advised_ms / row.offered_ms - 1:+.1%}",
            row.offered,
            "" if row.again_ms is None else f"{row.again_ms[0] / row.again_ms[1] - 1:+.1%}",
            f"{row.usual_ms:.0f}",
            "" if row.usual_predicted_ms is None else f"{row.usual_predicted_ms:.0f}",
            "" if row.kept_ms is None else f"{row.kept_ms:.0f}",
        ]
        for row in rows
        if not row.is_met
    ]
    heads = [
        "missed",
        "off",
        "of what advise compares",
        "the best of these",
        "again, five starts",
        "as it is, ms",
        "predicted",
        "each thread keeps its work",
    ]
    return table(heads, cells, (1, 2, 4, 5, 6, 7)) if cells else "None is missed."


def predictions(rows: Sequence[Judged]) -> str:
    """How far simulated times are off."""
    errors = [error for row in rows for error in row.errors]
    if not errors:
        return ""
    shorter = [pair for row in rows for pair in row.changes if pair[0] < math.log(1 - NEAR)]
    held = sum(measured < 0 for _, measured in shorter)
    return (
        f"The product simulated {counted(len(errors), 'setting')} for its answers; these times are "
        f"{fmean(map(abs, errors)):.1%} off on average, {fmean(errors):+.1%} with their sign. Of "
        f"{len(shorter)} settings that were predicted to be shorter than as it is by more than {NEAR:.0%}, {held} are. "
        "The errors of all changes are the product's table for threads and cores, so its verdicts on these programs are "
        "no test of that table."
    )


def table_of(rows: Sequence[Judged]) -> str:
    """The product's table: errors of what threads and cores make of the time, ln(measured / predicted)."""
    errors = sorted(measured - predicted for row in rows for predicted, measured in row.changes)
    return "\n".join(
        [
            "# Written by make -C lab settings: errors of changes by numbers of threads and sets of cores under Linux,",
            "# ln(measured / predicted).",
            f'date = "{MEASURED}"',
            f"programs = {len({row.program for row in rows if row.changes})}",
            f"change = [{', '.join(f'{error:.3f}' for error in errors)}]",
            "",
        ]
    )


def draw(rows: Sequence[Judged], path: Path) -> None:
    """How much longer than the best."""
    series: Mapping[str, Mapping[str, float]] = {
        "as it is": {_name(row): 100 * (row.usual_ms / row.best_ms - 1) for row in rows},
        "as advised": {_name(row): 100 * row.gap for row in rows},
    }
    plots.dots(
        path, "Beside the best setting", series, "longer than the best setting, %", limits=(100 * NEAR,)
    )


def _name(row: Judged) -> str:
    return f"{row.program}, {row.machine}"


def write(path: Path, results: Path = RESULTS) -> None:
    """Writes the page and the figure beside it."""
    rows = read(results)
    picture = path.with_suffix(".svg")
    draw(rows, picture)
    places = [place for place in PLACES if place.name in count(rows)]
    values = {
        "opening": answer(rows, picture.name),
        "programs": table(["program", "what it stands for"], [[kind.name, kind.what] for kind in KINDS]),
        "settings_max": str(SETTINGS_MAX),
        "tried": ", ".join(
            f"{max(row.tried for row in rows if row.machine == place.name)} on {place.name}"
            for place in places
        ),
        "sets": "\n".join(
            f"* {place.name}: {', '.join(map(str, sorted(place.threads)))} threads on each of: "
            f"{', '.join(place.cores)}."
            for place in places
        ),
        "absent": absent(rows),
        "tables": tables(rows),
        "refusals": refusals(rows),
        "predictions": predictions(rows),
        "public": public(rows),
        "causes": causes(rows),
    }
    path.write_text(page(*TEMPLATE.read_text("utf-8").format(**values).strip().split("\n\n")), "utf-8")


def main() -> None:
    """Judges anew what is kept, and writes the page."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--results", type=Path, default=RESULTS, help="what is kept (default: %(default)s)")
    options.add_argument("--page", type=Path, required=True, help="the page to write")
    options.add_argument(
        "--table", type=Path, default=PRODUCT, help="the product's table (default: %(default)s)"
    )
    arguments = options.parse_args()
    rows = judged(arguments.results)
    (arguments.results / FILE).write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    write(arguments.page, arguments.results)
    arguments.table.write_text(table_of(read(arguments.results)), "utf-8")


if __name__ == "__main__":
    main()
