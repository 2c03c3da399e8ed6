"""The page of a sweep."""

from collections.abc import Mapping, Sequence
from typing import Any

from ampsched.report import along, words
from ampsched.report.along import Columns
from ampsched.report.asked import Asked
from ampsched.report.page import Cell, Head, Notes, Page, Row, Section, Table
from ampsched.report.parts import policies_section, repeat_section
from ampsched.report.words import Metric, listed, plural
from ampsched.sweeps.measures import MEASURES, measure
from ampsched.uncertainty import NO_BASIS

ROWS_MAX = 1000
"""Rows of a table; the JSON has all."""
PLACE = ("machine", "workload", "factors", "noise", "overhead", "governor")
DRAWN = ("h_antt", "makespan_ns", "h_stp", "energy_j", "edp_js")
"""What figures show beside the metric that decides."""
ENDS = ("mean", "low", "high")

Values = Mapping[str, Any]


def page(values: Values, asked: Asked) -> Page:
    """The page of a sweep.

    Args:
        values: Those of `Sweep.to_dict`.
        asked: What it came from.
    """
    summary = [_nested(row) for row in values["summary"]]
    policies = list(dict.fromkeys(row["policy"] for row in summary))
    decides = _first_metric(values)
    drawn = list(dict.fromkeys([decides, *DRAWN]))
    metrics = [_metric(name) for name in drawn if all(row.get(name) for row in summary)]
    nested = {**values, "summary": _placed(values, summary)}
    curves = along.charts(nested, metrics, policies)
    every = len(values["curves"])
    notes = [f"Of {every} curves {len(curves)} are drawn."] if every > len(curves) else []
    first, *others = values["told"] or [plural(len(values["simulations"]), "simulation")]
    answer, certainty = words.told(
        [first if first.startswith(("Simulated", NO_BASIS)) else f"Simulated: {first}", *others[:1]]
    )
    more = (Notes(tuple(others[1:])),) if others[1:] else ()
    table = _table(summary, metrics, values["baseline"], Columns.of(values))
    sections = [
        _verdicts(values),
        policies_section(policies),
        Section("What was assumed", (Notes((STANDING, *notes, *values["caveats"], *values["failures"])),)),
        repeat_section(asked),
    ]
    machines, workloads = (
        list(dict.fromkeys(row[axis] for row in summary)) for axis in ("machine", "workload")
    )
    return Page(
        f"{_some(policies, 'policy', 'policies')}: {_some(workloads, 'workload', 'workloads')} on "
        f"{_some(machines, 'machine', 'machines')}",
        answer,
        (*more, *curves, table),
        tuple(section for section in sections if section),
        tuple(policies),
        certainty=certainty,
    )


STANDING = (
    "Simulated: programs are models or recordings, machines are descriptions. Intervals cover random amounts, not the "
    "model's errors."
)


def _some(names: Sequence[str], one: str, many: str) -> str:
    return listed(list(names)) if len(names) <= 3 else f"{len(names):,} {many if len(names) > 1 else one}"


def _first_metric(values: Values) -> str:
    """The column of what decides, of the first place."""
    if values["metric"] != "h_antt" or not values["verdicts"]:
        return str(values["metric"])
    names = {"turnaround": "makespan_ns", "work done": "instructions"}
    return names.get(values["verdicts"][0]["metric"], "h_antt")


def _metric(name: str) -> Metric:
    """A column as figures and tables show it: times in ms."""
    found = measure(name)
    is_time = name.endswith("_ns")
    label = found.label.replace(", ns", " ms").replace(", ", " ")
    digits, factor = (1, 1e-6) if is_time else (3, 1e-9 if name == "instructions" else 1.0)
    label = "10⁹ instructions" if name == "instructions" else label
    return Metric(name, label, found.lower_is_better, "", digits, factor, f"{name}_change")


def _nested(row: Values) -> dict[str, Any]:
    """A row of a sweep's summary with its estimates as values of their own, as a comparison has them."""
    found = dict(row)
    for name in MEASURES:
        for key in (name, f"{name}_change"):
            ends = [row.get(key), row.get(f"{key}_low"), row.get(f"{key}_high")]
            found[key] = None if None in ends else {**dict(zip(ENDS, ends, strict=True)), "n": row["n"]}
    return found


def _placed(values: Values, summary: Sequence[Values]) -> list[Values]:
    """Rows with the place that curves name: options that vary."""
    several = [name for name in PLACE[2:] if len({row[name] for row in summary}) > 1]
    return [{**row, "place": ", ".join(f"{name} {row[name]}" for name in several)} for row in summary]


def _table(summary: Sequence[Values], metrics: Sequence[Metric], first: str, columns: Columns) -> Table:
    """Each policy at each place."""
    cells = [_place(row, columns) for row in summary]
    named = [name for name in PLACE if len({each[name] for each in cells}) > 1]
    heads = [Head("policy", False), *(Head(name, False) for name in named), *columns.heads()]
    for metric in metrics:
        better = f"{'Lower' if metric.lower_is_better else 'Higher'} is better."
        heads += [Head(metric.name, hint=better), Head("change", hint=f"Relative to {first}.")]
    best = _best(summary, metrics[0])
    rows = tuple(
        Row(
            (
                Cell(columns.short("policy", row["policy"])),
                *(Cell(place[name]) for name in named),
                *columns.cells(row),
                *(cell for metric in metrics for cell in _measured(row, metric, first)),
            ),
            row["policy"],
            row is best.get(tuple(row[name] for name in PLACE)),
        )
        for row, place in zip(summary[:ROWS_MAX], cells, strict=False)
    )
    left = len(summary) - len(rows)
    more = f" {left:,} more rows are in the JSON." if left > 0 else ""
    n = max(row["n"] for row in summary)
    note = (
        f"± is half the 95 % confidence interval over {n} seeds." if n > 1 else "One seed, so no intervals."
    )
    return Table("The answer", tuple(heads), rows, f"{note} Changes are against {first}.{more}")


def _place(row: Values, columns: Columns) -> dict[str, str]:
    """Where a row is from, without what the columns of parameters say."""
    machine, workload = columns.short("machine", row["machine"]), columns.short("workload", row["workload"])
    return {**{name: str(row[name]) for name in PLACE}, "machine": machine, "workload": workload}


def _measured(row: Values, metric: Metric, first: str) -> list[Cell]:
    value, change = row[metric.key], row[f"{metric.key}_change"]
    shown = Cell(words.interval(value, metric.digits, metric.factor), value["mean"])
    if row["policy"] == first or change is None:
        return [shown, Cell("–", 0.0)]
    return [shown, words.change_cell(change, lower_is_better=metric.lower_is_better)]


def _best(summary: Sequence[Values], metric: Metric) -> dict[tuple[str, ...], Values]:
    """The row with the best mean at each place that has several policies."""
    groups: dict[tuple[str, ...], list[Values]] = {}
    for row in summary:
        groups.setdefault(tuple(row[name] for name in PLACE), []).append(row)
    pick = min if metric.lower_is_better else max
    return {
        place: pick(rows, key=lambda row: row[metric.key]["mean"])
        for place, rows in groups.items()
        if len(rows) > 1
    }


def _verdicts(values: Values) -> Section | None:
    """The verdict of each machine and workload, where there are several."""
    several = [name for name in PLACE[2:] if len({each[name] for each in values["verdicts"]}) > 1]
    rows = [
        Row(
            (
                Cell(each["workload"]),
                Cell(each["machine"]),
                *(Cell(each[name]) for name in several),
                Cell(each["best"]),
                Cell(each["word"]),
                words.change_cell(each["change"], lower_is_better=not _more_is_better(each["metric"])),
                Cell(each["metric"]),
            )
        )
        for each in values["verdicts"][:ROWS_MAX]
        if len(values["verdicts"]) > 1
    ]
    heads = (
        *(Head(name, False) for name in ("workload", "machine", *several, "best", "verdict")),
        Head("change", hint=f"Of the best against {values['baseline']}."),
        Head("judged by", False),
    )
    note = f"The verdict is that of the best policy against {values['baseline']}; chance is 95 %."
    table = Table("Each workload and machine", heads, tuple(rows), note)
    return Section("Verdicts", (table,)) if rows else None


def _more_is_better(metric: str) -> bool:
    names = {each.label.removesuffix(", ns"): not each.lower_is_better for each in MEASURES.values()}
    return names.get(metric, metric == "work done")
