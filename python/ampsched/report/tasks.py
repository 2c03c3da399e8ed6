"""The page of task graphs under task policies, with their Gantt charts."""

from collections.abc import Mapping, Sequence
from typing import Any

from ampsched._core import InputError
from ampsched.report.asked import Asked
from ampsched.report.page import Cell, Chart, Facts, Head, Page, Row, Section, Table
from ampsched.report.parts import repeat_section
from ampsched.report.words import number, percent, plural
from ampsched.spec import parse_spec
from ampsched.tasks import TaskSchedule, task_policies

Values = Mapping[str, Any]
TASKS_MAX = 3000
"""Executions that are drawn one by one; of more, the first."""
NAME_OF_NO_KIND = "tasks"


def page(values: Sequence[Values], asked: Asked, schedules: Sequence[TaskSchedule] = ()) -> Page:
    """The page of task policies on one graph.

    Args:
        values: A summary per policy: policy, makespan_s, lower_bound_s, utilisation.
        asked: What it came from.
        schedules: The schedules themselves, if they are known.
    """
    names = [row["policy"] for row in values]
    best = min(values, key=lambda row: row["makespan_s"])
    first = values[0]
    graph = schedules[0].graph.name if schedules else "the task graph"
    over = best["makespan_s"] / best["lower_bound_s"] - 1 if best["lower_bound_s"] > 0 else 0.0
    what = f"{best['policy']} is best for {graph}" if len(values) > 1 else f"{graph} under {best['policy']}"
    against = ""
    if best is not first and first["makespan_s"] > 0:
        against = f", {number(100 * (1 - best['makespan_s'] / first['makespan_s']), 1)} % shorter than {first['policy']}"
    answer = f"{what}: {number(best['makespan_s'], 4)} s{against}."
    sections = [_policies(names), *([_graph(schedules[0])] if schedules else []), repeat_section(asked)]
    return Page(
        f"{graph}: {', '.join(names)}",
        answer,
        (_table(values, best), *(gantt(each) for each in schedules)),
        tuple(section for section in sections if section),
        tuple(names),
        certainty=f"No schedule can be shorter than {number(best['lower_bound_s'], 4)} s: it is at most "
        f"{number(100 * over, 1)} % from the best possible.",
    )


def _table(values: Sequence[Values], best: Values) -> Table:
    first = values[0]["makespan_s"]
    rows = []
    for row in values:
        change = row["makespan_s"] / first - 1 if first > 0 else 0.0
        over = row["makespan_s"] / row["lower_bound_s"] - 1 if row["lower_bound_s"] > 0 else 0.0
        busy = sum(row["utilisation"]) / max(1, len(row["utilisation"]))
        cells = (
            Cell(row["policy"]),
            Cell(number(row["makespan_s"], 4), row["makespan_s"]),
            Cell("–", 0.0) if row is values[0] else Cell(percent(change), change, _tone(change)),
            Cell(number(100 * over, 2), over),
            Cell(number(100 * busy, 1), busy),
        )
        rows.append(Row(cells, row["policy"], len(values) > 1 and row is best))
    names = ("makespan s", "change", "above bound %", "busy %")
    note = "The bound is the longer of the critical path and the work / the sum of the speeds."
    return Table("The answer", (Head("policy", False), *map(Head, names)), tuple(rows), note)


def _tone(change: float) -> str:
    return "" if change == 0 else "good" if change < 0 else "bad"


def gantt(schedule: TaskSchedule) -> Chart:
    """Which worker executes which task when."""
    names, kinds, workers, starts, ends = schedule.core.columns()
    known = [kind for kind, _, _ in schedule.graph.kinds]
    shown = min(len(names), TASKS_MAX)
    classes = [name for name, count in schedule.classes for _ in range(count)]
    spans = [
        [workers[row], round(starts[row], 7), round(ends[row], 7), known.index(kinds[row]), row]
        for row in range(shown)
    ]
    befores = schedule.core.predecessors()
    data = {
        "rows": [f"{worker} {_class(name)}" for worker, name in enumerate(classes)],
        "names": [kind or NAME_OF_NO_KIND for kind in known],
        "labels": names[:shown],
        "links": [[before for before in befores[row] if before < shown] for row in range(shown)],
        "end": schedule.makespan_s,
        "unit": "s",
        "word": "Kinds of tasks",
        "spans": spans,
    }
    busy = [f"worker {worker} {100 * share:.0f} %" for worker, share in enumerate(schedule.utilisation)]
    title = f"{schedule.policy}: {number(schedule.makespan_s, 4)} s"
    rows = tuple(
        Row((Cell(str(worker), worker), Cell(classes[worker]), Cell(f"{100 * share:.1f}", share)))
        for worker, share in enumerate(schedule.utilisation)
    )
    table = Table("Workers", (Head("worker"), Head("speed", False), Head("busy %")), rows)
    left = len(names) - shown
    note = "Point at a task to see what it waits for; click it to draw its dependences."
    note += (
        f" The first {shown:,} executions are drawn; {left:,} more are in the trace (--trace)."
        if left
        else ""
    )
    return Chart("timeline", title, f"{title}; busy: {', '.join(busy)}.", data, table, note)


def _class(name: str) -> str:
    """A class of workers as it is called: many are called by their speed."""
    return f"speed {name}" if name.replace(".", "").isdigit() else name


def _policies(labels: Sequence[str]) -> Section:
    known = {info.name: info for info in task_policies()}
    rows = []
    for label in labels:
        try:
            name, given = parse_spec(label, "policy")
        except InputError:
            name, given = label, ()
        info = known.get(name)
        values = {**({param.name: param.default for param in info.params} if info else {}), **dict(given)}
        shown = "; ".join(f"{key} = {value:g}" for key, value in values.items()) or "none"
        rows.append(
            Row((Cell(label), Cell(info.summary if info else "not a shipped policy"), Cell(shown)), label)
        )
    heads = (Head("policy", False), Head("what it does", False), Head("parameters", False))
    return Section("Task policies", (Table("Task policies and their parameters", heads, tuple(rows)),))


def _graph(schedule: TaskSchedule) -> Section:
    graph = schedule.graph
    workers = ", ".join(f"{count} of speed {name}" for name, count in schedule.classes)
    facts = (
        ("graph", graph.name),
        ("tasks", f"{graph.tasks:,}"),
        ("links", f"{graph.links:,}"),
        ("work", f"{graph.work:,.6g} s at speed 1"),
        ("workers", workers),
        *((f"note {index}", note) for index, note in enumerate(graph.notes, 1)),
    )
    rows = tuple(
        Row((Cell(kind or NAME_OF_NO_KIND), Cell(f"{count:,}", count), Cell(f"{work:,.6g}", work)))
        for kind, count, work in graph.kinds
    )
    heads = (Head("kind", False), Head("tasks"), Head("work s"))
    title = f"Graph and workers: {plural(graph.tasks, 'task')}"
    return Section(title, (Facts(facts), Table("Kinds of tasks", heads, rows)))
