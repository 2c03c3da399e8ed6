"""docs/reports/models/traces.md and its figure, from what was judged."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from ampsched.markdown import ALL_BUT_FIRST, page, table
from ampsched_lab.shared import plots
from ampsched_lab.shared.summary import counted, opening
from ampsched_lab.traces.data import FOLDER, traces
from ampsched_lab.traces.judge import NEAREST, TRACE, TRIVIAL_OTHERS, TRIVIAL_OWN, UNBOUNDED

TEMPLATE = Path(__file__).with_name("template.md")
CLASSES = ("slowest class", "second", "third")
MISPLACED_AIM, WORST_AIM = 0.04, 0.08
"""Shares of the CPU time: of the policy nearest to what scheduled, on average and at worst."""

Row = Mapping[str, Any]


def series(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Misplaced shares by policy and trace."""
    found: dict[str, dict[str, float]] = {NEAREST: {}}
    for row in (row for row in rows if row["policy"] != TRACE):
        found.setdefault(row["policy"], {})[row["trace"]] = row["misplaced"]
        if row["is_nearest"]:
            found[NEAREST][row["trace"]] = row["misplaced"]
    complete = len(found[NEAREST])
    return {policy: each for policy, each in found.items() if len(each) == complete}


def tables(rows: Sequence[Row]) -> str:
    """All that was judged: a table of misplaced shares, and one of the rest."""
    names = list(dict.fromkeys(row["trace"] for row in rows))
    by_policy = series(rows)
    misplaced = [
        [policy, *(_cell(found.get(name)) for name in names), _cell(mean(found.values())), _cell(max(found.values()))]
        for policy, found in by_policy.items()
    ]  # fmt: skip
    rest = [
        [
            row["trace"],
            row["policy"] + " (nearest)" * row["is_nearest"],
            _cell(row["cpu_error"], "+.1%"),
            _cell(row["clocks_off"]),
            _cell(row["latency_p50"], ".2f"),
            _cell(row["latency_p95"], ".2f"),
        ]
        for row in rows
        if row["cpu_error"] is not None
    ]
    heads = ["trace", "policy", "CPU time", "clocks off", "wake-up p50", "p95"]
    return "\n\n".join(
        (
            table(["misplaced", *names, "mean", "worst"], misplaced, ALL_BUT_FIRST),
            table(heads, rest, ALL_BUT_FIRST),
        )
    )


def _cell(value: float | None, form: str = ".1%") -> str:
    return "" if value is None else f"{value:{form}}"


def answer(rows: Sequence[Row], picture: str) -> str:
    """The first paragraph and the figure."""
    found = series(rows)
    own = found[NEAREST]
    worst = max(own, key=lambda name: own[name])
    sentences = [
        f"**On {counted(len(own), 'trace')} of real chips, the policy that is nearest to what scheduled places "
        f"{1 - mean(own.values()):.1%} of the programs' CPU time on the class of cores where it was.**",
        f"It is furthest off for *{worst}*, {own[worst]:.1%}; aims are {MISPLACED_AIM:.0%} on average and "
        f"{WORST_AIM:.0%} at worst.",
        f"Knowing only the whole trace's shares, one would misplace {_cell(mean(found[TRIVIAL_OWN].values()))}, and by the other traces' "
        f"{_cell(mean(found[TRIVIAL_OTHERS].values()))}.",
    ]
    return opening(sentences, picture, "CPU time by class of cores, in traces and as simulated")


def draw(rows: Sequence[Row], path: Path) -> None:
    """Where the CPU time was, and where the nearest policy and `linux` place it."""
    shown = [row for row in rows if row["policy"] in {TRACE, "linux"} or row["is_nearest"]]
    parts = {
        f"{row['trace']}: {row['policy']}": Counter(
            {name: round(100 * share) for name, share in zip(CLASSES, row["by_class"], strict=False)}
        )
        for row in shown
    }
    colours = dict(zip(CLASSES, (plots.BLUE, *plots.SERIES[1:]), strict=False))
    plots.stacked(path, "CPU time by class of cores", parts, colours, "% of the programs' CPU time")


def write(path: Path, folder: Path = FOLDER) -> None:
    """Writes the page and the figure beside it."""
    rows = json.loads((folder / "judged.json").read_text("utf-8"))
    picture = path.with_suffix(".svg")
    draw(rows, path.with_suffix(".svg"))
    about = [
        [trace.name, Path(trace.machine).stem, trace.scheduler, trace.source] for trace in traces(folder)
    ]
    all_clocks = next(
        row for row in rows if row["trace"] == "galaxy-s20" and row["policy"].endswith(UNBOUNDED)
    )
    values = {
        "opening": answer(rows, picture.name),
        "about": table(["trace", "machine", "what scheduled", "source"], about),
        "tables": tables(rows),
        "unbounded": _cell(all_clocks["misplaced"]),
        "unbounded_cpu": _cell(all_clocks["cpu_error"], "+.0%"),
    }
    path.write_text(page(*TEMPLATE.read_text("utf-8").format(**values).strip().split("\n\n")), "utf-8")
