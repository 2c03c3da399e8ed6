"""``ampsched tasks``: task graphs and the policies that schedule them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ampsched._core import InputError, TaskGraph
from ampsched.cli import options, perfetto, render, reporting
from ampsched.cli.completing import parametrised
from ampsched.cli.output import Output, with_format
from ampsched.cli.settings import with_settings
from ampsched.files import EXECUTIONS, check_suffix, check_target, write_csv
from ampsched.settings import GraphSettings, TaskSettings, only
from ampsched.tasks import (
    GANTT_SUFFIXES,
    WORKERS,
    TaskSchedule,
    read_recording,
    run_tasks,
    task_graph,
    task_policies,
    task_programs,
    write_task_graph,
)

GANTT_CELLS, GANTT_MARGIN = 60, 24
"""Most cells of a line of time, and the columns beside it."""

app = typer.Typer(
    name="tasks",
    help="Schedule, draw, describe and convert task graphs for unequal workers.",
    epilog=render.examples(
        "ampsched tasks run fluidanimate --workers 4xbig,4xlittle --policy fifo,cats,heft"
    ),
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
)


def _complete_policy(incomplete: str) -> list[str]:
    return parametrised(incomplete, task_policies())


def _complete_graph(incomplete: str) -> list[str]:
    return parametrised(incomplete, task_programs())


Graph = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="A file (.csv, .stg, .dot, .gv, WfCommons .json), or a program such as fluidanimate:frames=50 "
        "(see 'ampsched list task-programs').",
        autocompletion=_complete_graph,
    ),
]
Workers = Annotated[
    str,
    typer.Option(
        "--workers",
        "-w",
        metavar="LIST",
        help="COUNTxSPEED,..., as in 4x10,4x4; big and little stand for the ratio and 1.",
    ),
]
Gantt = Annotated[Path | None, typer.Option("--gantt", help="Draw the schedule into this .svg file.")]
Trace = Annotated[Path | None, typer.Option("--trace", help="Write a Perfetto trace to this file.")]


@app.command(
    "run",
    epilog=render.examples(
        "ampsched tasks run graph.csv -w 4x10,4x4 -p fifo,cats,heft",
        "ampsched tasks run flow.json -w 4xbig,4xlittle --ratio 2.5 -p fifo,peft --bandwidth-mb-s 100",
        "ampsched tasks run fluidanimate:barriers=1 -w 4xbig,4xlittle -p static,loop-dynamic,fifo",
        "ampsched tasks run loop.csv -w 4x3,4x1 -p loop-static,loop-dynamic:chunk=25 --grab-us 0.2,0.5",
    ),
)
@with_format
@with_settings(TaskSettings)
def run(
    graph: Graph,
    workers: Workers = WORKERS,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            "-p",
            metavar="NAMES",
            help="Task policies a,b with parameters, such as cats:steal=1; the others are compared with the first.",
            autocompletion=_complete_policy,
        ),
    ] = "fifo,cats,heft",
    *,
    settings: TaskSettings,
    html: options.Html = None,
    output: Output,
) -> None:
    """Execute a task graph under several task policies and compare.

    Off-line policies schedule first; their schedule is then executed. The lower bound is the longer of the critical
    path and the work divided by the sum of the speeds: no schedule is shorter.
    """
    loaded = task_graph(graph, **only(GraphSettings, settings))
    names = options.split(policy, "policy")
    for name in names:
        if names.count(name) > 1:
            raise InputError(f'policy "{name}" is given twice')
    schedules = [run_tasks(loaded, workers, name, **settings) for name in names]

    def text(console: Console) -> None:
        _print_notes(console, loaded)
        render.print_title(console, f"{loaded.name}: {loaded.tasks:,} tasks on {workers}")
        _print_comparison(console, schedules)

    rows = [schedule.to_dict() for schedule in schedules]
    output.show(value=lambda: rows, rows=lambda: map(_by_worker, rows), text=text)
    reporting.schedules(html, schedules, quiet=output.is_data)


def _by_worker(row: dict[str, Any]) -> dict[str, Any]:
    """A row with a column for each worker's utilisation."""
    shares = {f"utilisation_{worker}": share for worker, share in enumerate(row["utilisation"])}
    return {name: value for name, value in row.items() if name != "utilisation"} | shares


@app.command(
    "schedule",
    epilog=render.examples(
        "ampsched tasks schedule graph.dot -w 1x1,1x1,1x1 -p heft --gantt heft.svg",
        "ampsched tasks schedule graph.csv -p cats --trace cats.pftrace   (open in https://ui.perfetto.dev)",
        "ampsched tasks schedule graph.csv -p heft --csv heft.csv",
    ),
)
@with_format
@with_settings(TaskSettings)
def schedule(
    graph: Graph,
    workers: Workers = WORKERS,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            "-p",
            metavar="NAME",
            help="Task policy with parameters, such as cats:steal=1.",
            autocompletion=_complete_policy,
        ),
    ] = "heft",
    *,
    settings: TaskSettings,
    gantt: Gantt = None,
    trace: Trace = None,
    open_: perfetto.Open = False,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", help="Write one line per execution: task, kind, worker, start, end."),
    ] = None,
    html: options.Html = None,
    output: Output,
) -> None:
    """Execute a task graph under one task policy; print what each worker does, draw it or write it down."""
    check_suffix("--gantt", gantt, *GANTT_SUFFIXES)
    check_target("--gantt", gantt)
    check_target("--csv", csv, EXECUTIONS)
    perfetto.check(open_, trace)
    loaded = task_graph(graph, **only(GraphSettings, settings))
    made = run_tasks(loaded, workers, policy, **settings)
    _show(made, f"{loaded.name} under {made.policy}", _Files(gantt, trace, csv, opens=open_), output)
    reporting.schedules(html, [made], quiet=output.is_data)


@app.command(
    "draw",
    epilog=render.examples(
        "ampsched tasks draw run.csv --gantt run.svg",
        "ampsched tasks draw run.csv --trace run.pftrace --graph run-graph.csv",
    ),
)
@with_format
def draw(
    recording: Annotated[
        Path,
        typer.Argument(
            metavar="RECORDING",
            help="A .csv file that a program wrote with the task runtime, see the how-to.",
        ),
    ],
    gantt: Gantt = None,
    trace: Trace = None,
    open_: perfetto.Open = False,
    graph: Annotated[
        Path | None,
        typer.Option(
            "--graph", help="Write the tasks with their measured work as a task graph to this file."
        ),
    ] = None,
    *,
    output: Output,
) -> None:
    """Show what real workers have executed: print it, draw it, or make a task graph of it that can be simulated."""
    check_suffix("--gantt", gantt, *GANTT_SUFFIXES)
    check_target("--gantt", gantt)
    perfetto.check(open_, trace)
    made = read_recording(recording)
    if graph:
        write_task_graph(made.graph, graph)
    _show(made, f"{made.graph.name} as {made.policy}", _Files(gantt, trace, None, graph, open_), output)


@dataclass(frozen=True)
class _Files:
    """What is written of a schedule."""

    gantt: Path | None
    trace: Path | None
    csv: Path | None
    graph: Path | None = None
    opens: bool = False


def _show(made: TaskSchedule, title: str, files: _Files, output: Output) -> None:
    """Prints what each worker does, draws it or writes it down."""
    if files.gantt:
        made.write_gantt(files.gantt, f"{title}: {made.makespan_s:g} s")
    if files.trace:
        made.write_trace(files.trace)
    if files.csv:
        write_csv(files.csv, made.to_polars())

    def text(console: Console) -> None:
        _print_notes(console, made.graph)
        over = f"{100 * made.over_bound:.1f} % above the lower bound"
        render.print_title(console, f"{title}: {made.makespan_s:.4f} s, {over}")
        _print_workers(console, made)
        written = {
            "picture": files.gantt,
            "trace": files.trace,
            "table": files.csv,
            "task graph": files.graph,
        }
        for what, path in written.items():
            if path:
                console.print(f"{what} written to {path}", soft_wrap=True)

    output.show(
        value=lambda: {**made.to_dict(), "executions": made.to_polars().to_dicts()},
        rows=lambda: made.to_polars().to_dicts(),
        text=text,
    )
    if files.trace and files.opens:
        perfetto.show(files.trace)


@app.command(
    "describe", epilog=render.examples("ampsched tasks describe graph.csv", "ampsched tasks describe ferret")
)
@with_format
@with_settings(GraphSettings)
def describe(graph: Graph, *, settings: GraphSettings, output: Output) -> None:
    """Describe a task graph: tasks by kind, work, critical path, parallelism. A file is checked by this, too."""
    loaded = task_graph(graph, **settings)
    path_s = _critical_path_s(loaded)
    facts = {
        "name": loaded.name,
        "tasks": loaded.tasks,
        "links": loaded.links,
        "work": loaded.work,
        "critical_path": path_s,
        "communication": loaded.has_communication,
        "cost_columns": loaded.cost_columns,
        "ratio": loaded.ratio,
        "notes": loaded.notes,
    }
    kinds = [{"kind": kind, "tasks": count, "work": work} for kind, count, work in loaded.kinds]
    output.show(
        value=lambda: {**facts, "kinds": kinds},
        rows=lambda: kinds,
        text=lambda console: _print_graph(console, loaded, path_s),
    )


def _print_graph(console: Console, loaded: TaskGraph, path_s: float) -> None:
    _print_notes(console, loaded)
    render.print_head(console, "task graph", loaded.name)
    console.print(f"{loaded.tasks:,} tasks, {loaded.links:,} links")
    console.print(f"work {loaded.work:,.6g} s at speed 1, critical path {path_s:,.6g} s", soft_wrap=True)
    if path_s > 0:
        console.print(f"parallelism {loaded.work / path_s:,.1f} (work / critical path)")
    if loaded.ratio is not None:
        console.print(f"a big core is {loaded.ratio:g} times as fast as a little one")
    if loaded.has_communication:
        console.print("data takes time between workers")
    if loaded.cost_columns:
        console.print(f"costs are stated for {loaded.cost_columns} classes of workers")
    table = render.table("kind", "tasks", "work s", "share %")
    for kind, count, work in loaded.kinds:
        share = 100 * work / loaded.work if loaded.work > 0 else 0.0
        table.add_row(kind or "(none)", f"{count:,}", f"{work:,.6g}", render.fixed(share, 1))
    console.print(table)


@app.command(
    "convert",
    epilog=render.examples(
        "ampsched tasks convert flow.json flow.dot --bandwidth-mb-s 100",
        "ampsched tasks convert rand.stg rand.csv",
    ),
)
@with_settings(GraphSettings)
def convert(
    graph: Graph,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="File to write; its ending tells the format.")],
    *,
    settings: GraphSettings,
) -> None:
    """Convert a task graph into another format.

    Work, links and times that the format cannot hold are refused, never left out. STG knows no names and no kinds of
    tasks.
    """
    loaded = task_graph(graph, **settings)
    write_task_graph(loaded, out, **settings)
    console = render.console()
    _print_notes(console, loaded)
    if loaded.ratio is not None:
        note = f"no format holds the program's ratio of speeds: run it with --ratio {loaded.ratio:g}"
        console.print(f"note: {note}", style="dim", soft_wrap=True)
    console.print(f"{loaded.tasks:,} tasks written to {out}", soft_wrap=True)


def _print_notes(console: Console, graph: TaskGraph) -> None:
    for note in graph.notes:
        console.print(f"note: {note}", style="dim", soft_wrap=True)


def _print_comparison(console: Console, schedules: list[TaskSchedule]) -> None:
    first = schedules[0]
    names = [f"{name} busy %" for name, _ in first.classes]
    table = render.table("policy", "makespan s", render.picture(), "change %", "above bound %", *names)
    longest_s = max(schedule.makespan_s for schedule in schedules)
    for made in schedules:
        change = made.makespan_s / first.makespan_s - 1 if first.makespan_s > 0 else 0.0
        table.add_row(
            made.policy,
            render.thousands(made.makespan_s, 4),
            render.bar(made.makespan_s / longest_s if longest_s > 0 else 0.0),
            render.percent(change),
            render.share(made.over_bound, 2),
            *(render.share(share) for share in made.class_utilisation()),
        )
    console.print(table)
    console.print(f"lower bound {first.lower_bound_s:,.4f} s", style="dim")


def _print_workers(console: Console, made: TaskSchedule) -> None:
    """A row per worker: how busy it is, and when, from left to right."""
    names = [name for name, count in made.classes for _ in range(count)]
    table = render.table("worker", "speed", "busy %", render.picture())
    cells = _cells(made, max(1, min(GANTT_CELLS, console.width - GANTT_MARGIN)))
    for worker, share in enumerate(made.utilisation):
        table.add_row(str(worker), names[worker], render.share(share), cells[worker])
    console.print(table)


def _cells(made: TaskSchedule, count: int) -> list[str]:
    """Of each worker as many cells, the darker the busier."""
    busy = [[0.0] * count for _ in made.utilisation]
    width_s = made.makespan_s / count
    _, _, workers, starts, ends = made.core.columns()
    for worker, start_s, end_s in zip(workers, starts, ends, strict=True):
        if width_s <= 0:
            break
        for cell in range(int(start_s / width_s), min(int(end_s / width_s), count - 1) + 1):
            overlap_s = min(end_s, (cell + 1) * width_s) - max(start_s, cell * width_s)
            busy[worker][cell] += max(0.0, overlap_s) / width_s
    return [render.shades(row) for row in busy]


def _critical_path_s(graph: TaskGraph) -> float:
    """Longest path at speed 1, or at the fastest of the stated costs."""
    workers = ",".join(["1x1"] * max(1, graph.cost_columns))
    return run_tasks(graph, workers, "fifo").core.critical_path_s
