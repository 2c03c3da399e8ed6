"""The page of one simulation."""

from collections.abc import Mapping
from typing import Any

from ampsched.report import timely
from ampsched.report.asked import Asked
from ampsched.report.page import Cell, Facts, Head, Notes, Page, Row, Section, Table
from ampsched.report.parts import machine_section, policies_section, repeat_section, timeline_chart
from ampsched.report.words import number, plural
from ampsched.turns import Timeline
from ampsched.units import NS_PER_MS

Values = Mapping[str, Any]
THREADS_MAX = 500
"""Threads that are listed one by one."""


def page(values: Values, asked: Asked, timeline: Timeline | None = None) -> Page:
    """The page of one simulation.

    Args:
        values: Those of `Outcome.to_dict`.
        asked: What it came from.
        timeline: Its turns, if they are known.
    """
    name = f"{values['workload']} on {values['machine']} under {values['policy']}"
    energy = values["totals"]["energy_j"]
    used = f", {number(energy, 3)} J" if energy is not None else ""
    answer = f"It takes {number(values['makespan_ns'] / NS_PER_MS, 2)} ms{used}."
    chart = (timeline_chart(timeline, "Which program has which core"),) if timeline else ()
    sections = [
        machine_section(asked, [values["machine"]]),
        Section("Threads", (_threads(values),)),
        policies_section([values["policy"]]),
        Section("Cores", (_cores(values),)),
        _clusters(values),
        _assumed(values, asked),
        repeat_section(asked),
    ]
    return Page(
        name,
        answer,
        (_apps(values), *chart),
        tuple(section for section in sections if section),
        certainty="One run: how much it would vary is unknown. ampsched compare --repeat 5 tells.",
    )


def _apps(values: Values) -> Table:
    rows = tuple(
        Row(
            (
                Cell(app["name"]),
                Cell(app["program"]),
                Cell(f"{app['threads']:,}", app["threads"]),
                Cell(number(app["turnaround_ns"] / NS_PER_MS, 2), app["turnaround_ns"]),
                *timely.cells(app),
            )
        )
        for app in values["apps"]
    )
    heads = [Head("program", False), Head("made of", False), Head("threads"), Head("turnaround ms")]
    heads += [head for app in values["apps"][:1] for head in timely.heads(app)]
    return Table("Programs", tuple(heads), rows)


def _threads(values: Values) -> Table:
    classes = [f"{each['name']} ms" for each in reversed(values["classes"])]
    waits = {
        "ready_ns": "waiting ms",
        "ready_ns_max": "longest wait ms",
        "blocked_ns": "blocked ms",
        "blame_ns": "blamed ms",
    }
    rows = []
    for thread in values["threads"][:THREADS_MAX]:
        spans_ns = [*reversed(thread["class_ns"]), *(thread[key] for key in waits)]
        times = [Cell(number(ns / NS_PER_MS, 2), ns) for ns in spans_ns]
        counts = [Cell(f"{thread[key]:,}", thread[key]) for key in ("switches", "migrations")]
        app = values["apps"][thread["app"]]["name"]
        rows.append(Row((Cell(f"{app}/{thread['name']}"), *times, *counts)))
    names = (*classes, *waits.values(), "switches", "migrations")
    left = len(values["threads"]) - len(rows)
    note = f"{plural(left, 'more thread')} are in the JSON." if left > 0 else ""
    return Table("What each thread did", (Head("thread", False), *map(Head, names)), tuple(rows), note)


def _cores(values: Values) -> Table:
    rows = []
    for core, each in enumerate(values["cores"]):
        total_ns = max(1, each["busy_ns"] + each["idle_ns"] + each["noise_ns"])
        shares = [each["busy_ns"], each["overhead_ns"], each["noise_ns"] + each["interrupted_ns"]]
        cells = [Cell(f"{100 * ns / total_ns:.2f}") for ns in shares]
        switches = Cell(f"{each['switches']:,}", each["switches"])
        rows.append(Row((Cell(str(core), core), Cell(each["core_class"]), *cells, switches)))
    names = ("busy %", "overhead %", "noise %", "switches")
    return Table("What each core did", (Head("core"), Head("class", False), *map(Head, names)), tuple(rows))


def _clusters(values: Values) -> Section:
    """Frequencies, and energy if it was accounted for."""
    rows = []
    for each in values["clusters"]:
        total_ns = sum(ns for _, ns in each["residency"]) or 1
        mean_mhz = sum(mhz * ns for mhz, ns in each["residency"]) / total_ns
        energy = each["energy"]
        used = (
            [number(energy[key] / 1e3, 1) for key in ("running_uj", "idle_uj", "uncore_uj")]
            if energy
            else ["–"] * 3
        )
        heat = energy["temperature_c"] if energy else None
        cells = [
            number(mean_mhz, 0),
            f"{each['frequency_changes']:,}",
            *used,
            "–" if heat is None else number(heat, 1),
        ]
        rows.append(Row((Cell(each["name"]), *map(Cell, cells))))
    names = ("mean MHz", "changes", "running mJ", "idle mJ", "uncore mJ", "°C at the end")
    table = Table("Frequencies, energy and heat", (Head("cluster", False), *map(Head, names)), tuple(rows))
    peak = values["peak_c"]
    return Section(
        "Clusters", (table, *((Facts((("peak", f"{peak:.1f} °C"),)),) if peak is not None else ()))
    )


def _assumed(values: Values, asked: Asked) -> Section:
    notes = ["Simulated: programs are models or recordings, machines are descriptions."]
    if values["smt"]:
        notes.append(f"{values['machine']}: {values['smt']}")
    if values["caveat"]:
        notes.append(f"{values['policy']}: {values['caveat']}")
    facts = (("seed", str(values["seed"])), ("noise", values["noise"] or "none"))
    stated = tuple(row for row in asked.stated() if row[0] not in ("seed", "noise"))
    return Section("What was assumed", (Facts((*facts, *stated)), Notes(tuple(notes))))
