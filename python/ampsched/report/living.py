"""The page of a comparison of policies with real programs on a real computer."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ampsched.report import words
from ampsched.report.asked import Asked
from ampsched.report.page import Cell, Chart, Facts, Head, Notes, Page, Row, Section, Table
from ampsched.report.parts import policies_section, repeat_section
from ampsched.report.words import H_ANTT, H_STP, Metric, listed, number, percent, plural

Values = Mapping[str, Any]
METRICS = (
    H_ANTT,
    H_STP,
    Metric("makespan_s", "makespan s", True, "Longest turnaround; lower is better."),
    Metric("unfairness", "unfairness", True, "Greatest slowdown of a program / smallest; 1 is fair."),
)


def page(values: Values, asked: Asked) -> Page:
    """The page of a live comparison.

    Args:
        values: Those of `LiveComparison.to_dict`.
        asked: What it came from.
    """
    rows = values["summary"]
    names = [row["policy"] for row in rows]
    first, best = rows[0], min(rows, key=lambda row: row["h_antt"]["mean"])
    answer, certainty = _answer(first, best, len(rows))
    sections = [_programs(values, names), policies_section(names), _assumed(values), repeat_section(asked)]
    return Page(
        f"Live: {listed(names)}",
        answer,
        (_table(rows, best), _figure(rows, names)),
        tuple(section for section in sections if section),
        tuple(names),
        certainty=certainty,
    )


def _answer(first: Values, best: Values, count: int) -> tuple[str, str]:
    rounds = plural(best["h_antt"]["n"], "round")
    change = best["h_antt_change"]
    if count == 1:
        return f"Under {best['policy']} H_ANTT is {words.interval(best['h_antt'])}.", f"Measured in {rounds}."
    if best is first or (change["n"] > 1 and not words.excludes_zero(change)):
        return f"Stay with {first['policy']}: no other policy is surely better.", f"Measured in {rounds}."
    text = f"{best['policy']} is best: mean slowdown (H_ANTT) {number(-100 * change['mean'], 1)} % lower"
    spread = (
        f"95 % interval {percent(change['low'])} to {percent(change['high'])}, " if change["n"] > 1 else ""
    )
    return f"{text} than under {first['policy']}.", f"Measured: {spread}{rounds}."


def _table(rows: Sequence[Values], best: Values) -> Table:
    made = []
    for row in rows:
        is_first = row is rows[0]
        change = words.change_cell(row["h_antt_change"], lower_is_better=True)
        cells = [Cell(row["policy"]), Cell(row["mode"])]
        for metric in METRICS:
            value = row[metric.key]
            cells.append(Cell(words.interval(value, metric.digits), value["mean"]))
        cells += [
            Cell("–", 0.0) if is_first else change,
            Cell("–" if is_first else words.sure(row["h_antt_change"])),
        ]
        cells.append(Cell(f"{100 * row['overhead']:.1f}", row["overhead"]))
        made.append(Row(tuple(cells), row["policy"], len(rows) > 1 and row is best))
    heads = [
        Head("policy", False),
        Head("mode", False),
        *(Head(each.name, hint=each.hint) for each in METRICS),
    ]
    heads += [
        Head("H_ANTT change"),
        Head("sure?", False),
        Head("overhead %", hint="Of one CPU, by the session itself."),
    ]
    return Table("The answer", tuple(heads), tuple(made), "± is half the 95 % interval over rounds.")


def _figure(rows: Sequence[Values], names: Sequence[str]) -> Chart:
    told = ", ".join(f"{row['policy']} {words.interval(row['h_antt'])}" for row in rows)
    mixes = (("", row) for row in rows)
    return words.intervals(names, METRICS, mixes, f"H_ANTT: {told}.")


def _programs(values: Values, names: Sequence[str]) -> Section:
    rows = []
    for index, program in enumerate(values["mix"]["programs"]):
        runs = {
            name: [run["metrics"]["h_ntt"][index] for run in values["runs"] if run["policy"] == name]
            for name in names
        }
        means = [sum(each) / len(each) for each in runs.values()]
        command = shlex.join(program["command"])
        cells = [Cell(program["name"]), Cell(command), Cell(f"{values['alone_s'][index]:.2f}")]
        rows.append(Row((*cells, *(Cell(f"{mean:.2f}", mean) for mean in means))))
    heads = (Head("program", False), Head("command", False), Head("alone s"), *map(Head, names))
    note = "Slowdown (H_NTT) against running alone on the fast CPUs; means."
    return Section("Programs", (Table("Programs and their slowdown", heads, tuple(rows), note),))


def _assumed(values: Values) -> Section:
    cpus = ", ".join(map(str, values["alone_cpus"]))
    facts = (("fast CPUs", cpus),)
    notes = ("Measured with real programs, in random order.", *values["notes"])
    return Section("What was assumed", (Facts(facts), Notes(notes)))
