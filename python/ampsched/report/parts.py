"""Parts that several kinds of pages have: machines, policies, turns on cores, how to repeat it."""

from collections.abc import Sequence

from ampsched._core import Machine
from ampsched.report.asked import Asked, known_policy
from ampsched.report.page import (
    Block,
    Cell,
    Chart,
    Cluster,
    Code,
    Drawing,
    Facts,
    Head,
    Lanes,
    Row,
    Section,
    Table,
    versions,
)
from ampsched.report.words import listed, number, plural
from ampsched.turns import SYSTEM, Timeline
from ampsched.units import NS_PER_MS

TURNS_MAX = 4000
"""More turns are joined before they are drawn: each is a shape of the figure."""


LANES_MAX = 240
"""The same of small pictures."""


def drawing(machine: Machine) -> Drawing:
    """A machine as a drawing."""
    owners = list(enumerate(machine.cluster_of_core))
    clusters = [
        Cluster(name, core_type, mhz, rank, tuple(core for core, owner in owners if owner == place))
        for place, (name, core_type, _, mhz, rank) in enumerate(machine.clusters)
    ]
    words = [
        f"{plural(len(each.cores), each.name + ' core')} ({each.core_type}, {each.mhz:,} MHz)"
        for each in clusters
    ]
    return Drawing(machine.name, f"{machine.name}: {listed(words)}", tuple(clusters))


def machine_section(asked: Asked, names: Sequence[str]) -> Section:
    """The machines: description, clusters, a drawing."""
    blocks: list[Block] = []
    for name in names:
        machine = asked.machine(name)
        if machine is None:
            blocks.append(Facts(((name, "not described here: it is no shipped machine"),)))
            continue
        blocks += [
            Facts(((machine.name, machine.description or plural(machine.cores, "core")),)),
            drawing(machine),
        ]
    return Section("Machine" if len(names) == 1 else "Machines", tuple(blocks))


def policies_section(labels: Sequence[str]) -> Section:
    """The policies: what they do, when to use them, and their parameters."""
    heads = tuple(Head(text, False) for text in ("policy", "what it does", "when to use it", "parameters"))
    rows = []
    for label in labels:
        summary, use, params = known_policy(label) or ("not shipped with ampsched", "", "")
        rows.append(Row((Cell(label), Cell(summary), Cell(use), Cell(params or "none")), label))
    return Section("Policies", (Table("Policies and their parameters", heads, tuple(rows)),))


def repeat_section(asked: Asked) -> Section | None:
    """How to get the same again."""
    if not asked.command:
        return None
    facts = Facts(versions())
    return Section("Repeat it", (Code(asked.command), facts))


def timeline_chart(found: Timeline, title: str) -> Chart:
    """The turns of a run, a row per core, coloured by program."""
    apps = found.apps()
    turns, joined = _drawn(found, TURNS_MAX)
    cores = _core_names(found.machine)
    end_ms = found.outcome.makespan_ns / NS_PER_MS
    table = busy_table(found)
    alt = (
        f"{title}: which program has which core, over {number(end_ms, 1)} ms; "
        f"{listed([f'core {row.cells[0].text} is busy {row.cells[-1].text} % of the time' for row in table.rows])}."
    )
    note = (
        f"Drawn from {joined:,} turns: neighbours on a core are joined under the program that has most of the time. "
        "A Perfetto trace (--trace) shows each."
        if joined
        else ""
    )
    data = {
        "rows": cores,
        "names": [*apps, SYSTEM],
        "threads": [name for _, _, name in found.threads],
        "end": end_ms,
        "unit": "ms",
        "spans": turns,
    }
    return Chart("timeline", title, alt, data, table, note)


def lanes(found: Timeline) -> Lanes:
    """The turns of a run as a small picture: hundreds of spans at most."""
    spans, _ = _drawn(found, LANES_MAX)
    end_ms = found.outcome.makespan_ns / NS_PER_MS or 1.0

    def of(core: int) -> tuple[tuple[float, float, int], ...]:
        return tuple(
            (round(100 * start / end_ms, 2), max(0.01, round(100 * (end - start) / end_ms, 2)), int(app))
            for at, start, end, app, _ in spans
            if at == core
        )

    apps = found.apps()
    has_system = any(int(span[3]) == len(apps) for span in spans)
    names = (*apps, SYSTEM) if has_system else tuple(apps)
    rows = tuple((name, of(core)) for core, name in enumerate(_core_names(found.machine)))
    return Lanes(f"{listed(list(names))} on cores over {number(end_ms, 1)} ms", names, rows)


def _core_names(machine: Machine) -> list[str]:
    """Number and cluster of each core."""
    return [f"{core} {machine.clusters[owner][0]}" for core, owner in enumerate(machine.cluster_of_core)]


def _drawn(found: Timeline, most: int) -> tuple[list[list[float]], int]:
    """Core, start and end in ms, application, thread (-1: several) of what is drawn; how many turns were joined."""
    system = len(found.apps())
    rows: list[list[float]] = []
    for turn in found.turns:
        app = system if turn.thread is None else found.threads[turn.thread][0]
        thread = -1 if turn.thread is None else turn.thread
        rows.append([turn.core, turn.start_ns / NS_PER_MS, turn.end_ns / NS_PER_MS, app, thread])
    if len(rows) <= most:
        return [_rounded(row) for row in rows], 0
    cores = 1 + max(turn.core for turn in found.turns)
    width_ms = found.outcome.makespan_ns / NS_PER_MS * cores / most
    return [_rounded(row) for row in _joined(rows, width_ms)], len(rows)


def _joined(rows: list[list[float]], width_ms: float) -> list[list[float]]:
    """One span for what begins within a stretch of a core's time, from its first start for its busy time."""
    groups: dict[tuple[float, int], list[list[float]]] = {}
    for row in rows:
        groups.setdefault((row[0], int(row[1] / width_ms)), []).append(row)
    made = []
    for (core, _), group in groups.items():
        shares: dict[float, float] = {}
        for _, start, end, app, _ in group:
            shares[app] = shares.get(app, 0.0) + end - start
        threads = {row[4] for row in group}
        thread = threads.pop() if len(threads) == 1 else -1
        start, busy = group[0][1], sum(shares.values())
        made.append([core, start, start + busy, max(shares, key=lambda app: shares[app]), thread])
    return made


def _rounded(row: list[float]) -> list[float]:
    core, start, end, app, thread = row
    return [int(core), round(start, 4), round(end, 4), int(app), int(thread)]


def busy_table(found: Timeline) -> Table:
    """Share of the time that each program has each core, in percent."""
    cores, apps = _core_names(found.machine), [*found.apps(), SYSTEM]
    busy = [[0] * len(apps) for _ in cores]
    for turn in found.turns:
        app = len(apps) - 1 if turn.thread is None else found.threads[turn.thread][0]
        busy[turn.core][app] += turn.end_ns - turn.start_ns
    if not any(row[-1] for row in busy):
        apps, busy = apps[:-1], [row[:-1] for row in busy]
    total_ns = max(1, found.outcome.makespan_ns)
    rows = tuple(
        Row(
            (
                Cell(name, row_number),
                *(Cell(f"{100 * ns / total_ns:.1f}") for ns in row),
                Cell(f"{100 * sum(row) / total_ns:.1f}"),
            )
        )
        for row_number, (name, row) in enumerate(zip(cores, busy, strict=True))
    )
    heads = (Head("core", False), *(Head(f"{app} %") for app in apps), Head("busy %"))
    return Table("Share of the time that programs have cores", heads, rows)
