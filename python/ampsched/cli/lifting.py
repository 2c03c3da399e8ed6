"""``ampsched lift``."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ampsched._core import TYPICAL_PROFILE, InputError
from ampsched.catalog import Catalog
from ampsched.cli import options, render
from ampsched.cli.output import Output, with_format
from ampsched.cli.tables import Table
from ampsched.files import write_text
from ampsched.recording import Recording, load
from ampsched.recording.lift import Lifted, Scaling
from ampsched.recording.lift import lift as lift_recording
from ampsched.recording.validation import Recorded, validated
from ampsched.units import NS_PER_MS

EXAMPLES = render.examples(
    "ampsched lift run.ampr -o prog.toml",
    "ampsched lift run.ampr -o prog.toml --like ferret --speedup 2.1",
    "ampsched lift 4-threads.ampr 8-threads.ampr -o prog.toml",
)
OBJECTS_MAX = 30
"""Most objects that are shown."""


@with_format
def lift(
    recording: Annotated[Path, typer.Argument(help="A recording (.ampr).")],
    other: Annotated[
        Path | None,
        typer.Argument(
            help="A recording of the same program with another number of threads, to check the result."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the program to this file (.toml).")
    ] = None,
    like: Annotated[
        str,
        typer.Option(
            "--like",
            help="The profile that is most like its code.",
            autocompletion=options.complete_profile,
        ),
    ] = TYPICAL_PROFILE,
    speedup: Annotated[
        float | None,
        typer.Option(
            "--speedup", help="Speed on the fastest core divided by that on the slowest, if you know it."
        ),
    ] = None,
    scaling: Annotated[
        Scaling | None,
        typer.Option(
            "--scaling",
            help="Whether more threads share the same work, or each thread does as much; default: what OTHER fits, else"
            " fixed-total.",
        ),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="The program's name.")] = "",
    *,
    output: Output,
) -> None:
    """Turn a recording into a program with parameters: its number of threads and its size.

    Barriers, queues, dynamic loops and locks are recognised; other waits become semaphores between pairs of threads.
    The program is simulated on as many equal cores as the recording had, and compared with it; so is the replay.
    Threads that would do more or less than they did stay literal. A second recording with another number of threads
    checks n, or refuses it.
    """
    recorded = load(recording)
    options: dict[str, Any] = {"name": name, "like": like, "speedup": speedup}
    if other is None:
        lifted = lift_recording(recorded, scaling=scaling or "fixed-total", **options)
    else:
        pair = Recorded(recording, recorded), Recorded(other, load(other))
        lifted = validated(*pair, scaling=scaling, **options)
    if out is not None:
        write_text(out, lifted.toml)

    def text(console: Console) -> None:
        _print(console, lifted, json.loads(recorded.info)["wall_ns"])
        console.print(_replay_line(recorded, recording), soft_wrap=True)
        if out is None:
            console.print(lifted.toml, soft_wrap=True)
        else:
            console.print(f"use it with: ampsched compare --machine 2B2S --workload {out}", soft_wrap=True)

    output.show(
        value=lambda: {"report": lifted.report, "toml": lifted.toml},
        rows=lambda: lifted.report["groups"],
        text=text,
    )


def _print(console: Console, lifted: Lifted, wall_ns: int) -> None:
    report = lifted.report
    console.print(_groups(lifted))
    console.print()
    if report["objects"]:
        console.print(_objects(report["objects"]))
        console.print()
    recorded_ns, lifted_ns = report["recorded_ns"], report["lifted_ns"]
    error = lifted_ns / recorded_ns - 1 if recorded_ns else 0.0
    lines = [
        f"work: {recorded_ns / NS_PER_MS:.4g} ms recorded, {lifted_ns / NS_PER_MS:.4g} ms in the program ({error:+.2%})",
        f"literal: {report['literal_share']:.1%} of the work, {report['literal_steps_share']:.1%} of the steps",
    ]
    if report["idle_ns"]:
        lines.append(f"active waiting left out: {report['idle_ns'] / NS_PER_MS:.4g} ms")
    if lifted.check is not None:
        check = lifted.check
        lines.append(
            f"time: {wall_ns / NS_PER_MS:.4g} ms recorded, {check.makespan_ns / NS_PER_MS:.4g} ms simulated on"
            f" {check.cores} equal cores under linux ({_relative(check.makespan_ns, wall_ns)})"
        )
    for line in [*lines, *report["notes"]]:
        console.print(line, soft_wrap=True)


def _replay_line(recorded: Recording, path: Path) -> str:
    """How good the recording's replay is, for comparison: it is as literal as can be."""
    from ampsched.recording.check import reproduce

    try:
        found = reproduce(recorded, path, Catalog.shipped())
    except InputError as error:
        return f"replay: none ({error})"
    return f"replay: {found.replayed_s * 1e3:.4g} ms on the recording's own cores ({found.error:+.1%})"


def _relative(value: float, by: float) -> str:
    return f"{value / by - 1:+.1%}" if by else "-"


def _groups(lifted: Lifted) -> Table:
    table = render.table("threads", "recorded", "count", "work ms", "program", "simulated")
    simulated = lifted.check.group_ns if lifted.check else {}
    for group in lifted.report["groups"]:
        recorded_ns = group["recorded_ns"]
        table.add_row(
            group["name"],
            str(group["threads"]),
            group["count"],
            f"{recorded_ns / NS_PER_MS:.4g}",
            _relative(group["lifted_ns"], recorded_ns),
            _relative(simulated[group["name"]], recorded_ns) if group["name"] in simulated else "-",
        )
    return table


def _objects(objects: list[dict[str, Any]]) -> Table:
    table = render.table("object", render.label("kind"), render.prose("recorded as"))
    for row in objects[:OBJECTS_MAX]:
        table.add_row(row["name"], row["kind"], row["was"])
    if len(objects) > OBJECTS_MAX:
        table.add_row(f"and {len(objects) - OBJECTS_MAX} more", "", "")
    return table
