"""``ampsched import`` and ``ampsched import-rtapp``."""

from pathlib import Path
from typing import Annotated

import typer

from ampsched._core import InputError
from ampsched.catalog import Catalog
from ampsched.cli import options, recorded, render
from ampsched.recording import files, imports, summary

IMPORT_EXAMPLES = render.examples(
    "ampsched import perf.data --command my_program",
    "ampsched import trace.dat --speeds 1,1,0.5,0.5 -o my_program.ampr",
)
EXAMPLES = render.examples("ampsched import-rtapp /usr/share/doc/rt-app/examples/example1.json")


def import_rtapp(
    file: Annotated[Path, typer.Argument(help="An rt-app workload (.json).")],
    json: options.Json = False,
) -> None:
    """Check whether an rt-app workload can be simulated, and say what is honoured differently.

    A key that cannot be honoured is refused by name, never skipped. The file itself is what the other commands take:
    ampsched compare --workload FILE.json
    """
    if file.suffix != ".json":
        raise InputError(f'{file}: rt-app workloads end with ".json"')
    catalog = Catalog.shipped()
    (_, text), *_ = catalog.describe(str(file))
    notes = catalog.notes(str(file))
    if json:
        workload = catalog.workload(str(file))
        threads = sum(count for _, _, count in workload.apps)
        render.print_json({"file": str(file), "threads": threads, "notes": notes, "text": text})
        return
    console = render.console()
    console.print(text, markup=False, soft_wrap=True)
    console.print(
        f"use it with: ampsched compare --machine 2B2S --workload {file}", style="dim", soft_wrap=True
    )


def import_trace(
    file: Annotated[Path, typer.Argument(help="A trace.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help=f"Write the recording ({files.SUFFIX})."),
    ] = None,
    command: Annotated[
        list[str] | None,
        typer.Option(
            "--command",
            metavar="NAME",
            help="Only threads of that program, and of all that it starts; repeatable. By default those of all programs.",
        ),
    ] = None,
    pid: Annotated[
        list[int] | None,
        typer.Option(
            "--pid", metavar="N", help="The same for the number of a process or thread; repeatable."
        ),
    ] = None,
    speeds: Annotated[
        str | None,
        typer.Option(
            "--speeds",
            metavar="LIST",
            help="Speeds of the cores that recorded, the first that of core 0: CPU time becomes time on the fastest.",
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Read another tool's trace as a recording of programs, and say what is in it and what it cannot know.

    Read are: text of ftrace and of `trace-cmd report`, `perf script`, `perf.data`, `trace.dat`, Perfetto's traces of
    Linux, and columns of numpy (`.npz`, `.npz.zst`). A file's content tells which it is.
    """
    found = imports.import_file(
        file,
        commands=command or [],
        pids=pid or [],
        speeds=_speeds(speeds) if speeds else [],
    )
    if out:
        files.save(found, out)
    if json:
        render.print_json(summary.to_json(found))
        return
    console = render.console()
    recorded.print_recording(console, found)
    if out:
        console.print(f"written: {out}", style="dim", soft_wrap=True)


def _speeds(text: str) -> list[float]:
    try:
        return [float(item) for item in options.split(text, "speeds")]
    except ValueError:
        raise InputError(f'--speeds "{text}" is no list of numbers (such as 1,1,0.5,0.5)') from None
