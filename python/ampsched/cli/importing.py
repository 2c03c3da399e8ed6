"""``ampsched import`` and ``ampsched import-rtapp``."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ampsched._core import InputError
from ampsched.catalog import Catalog
from ampsched.cli import options, recorded, render
from ampsched.cli.output import Output, with_format
from ampsched.kinds import RECORDING
from ampsched.recording import files, imports, summary

IMPORT_EXAMPLES = render.examples(
    "ampsched import perf.data --command my_program",
    "ampsched import trace.dat --machine rk3588 -o my_program.ampr",
    "ampsched import trace.dat --machine exynos5422 --cpus 'little=4-7 big=0-3'",
    "ampsched import trace.dat --speeds 1,1,0.5,0.5",
    "ampsched import trace.pftrace --machine pixel --cgroups cgroups.txt -o phone.ampr",
)
EXAMPLES = render.examples("ampsched import-rtapp /usr/share/doc/rt-app/examples/example1.json")


@with_format
def import_rtapp(
    file: Annotated[Path, typer.Argument(help="An rt-app workload (.json).")],
    *,
    output: Output,
) -> None:
    """Check whether an rt-app workload can be simulated, and say what is honoured differently.

    A key that cannot be honoured is refused by name, never skipped. The file itself is what the other commands take:
    ampsched compare --workload FILE.json
    """
    if file.suffix != ".json":
        raise InputError(f'{file}: rt-app workloads end with ".json"')
    catalog = Catalog.shipped()
    (_, words), *_ = catalog.describe(str(file))
    notes = catalog.notes(str(file))
    threads = sum(count for _, _, count in catalog.workload(str(file)).apps)
    row = {"file": str(file), "threads": threads, "notes": notes, "text": words}

    def text(console: Console) -> None:
        console.print(words, markup=False, soft_wrap=True)
        use = f"use it with: ampsched compare --machine 2B2S --workload {file}"
        console.print(use, style="dim", soft_wrap=True)

    output.show(value=lambda: row, rows=lambda: [row], text=text)


@with_format
def import_trace(
    file: Annotated[Path, typer.Argument(help="A trace.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help=f"Write the recording ({RECORDING})."),
    ] = None,
    command: options.ProgramsOfTrace = None,
    pid: options.PidsOfTrace = None,
    speeds: Annotated[
        str | None,
        typer.Option(
            "--speeds",
            metavar="LIST",
            help="Without --machine: speeds of the traced cores at their highest clocks, from core 0 on.",
        ),
    ] = None,
    machine: options.TracedMachine = None,
    cpus: options.CpusOfTrace = None,
    cgroups: Annotated[
        Path | None,
        typer.Option(
            "--cgroups",
            metavar="FILE",
            help="What `grep -rHs . /dev/cpuset /dev/cpuctl /dev/stune /sys/fs/cgroup /proc/cgroups` printed there, just "
            "before the trace: threads keep their CPUs, clamps and groups.",
        ),
    ] = None,
    *,
    output: Output,
) -> None:
    """Read another tool's trace as a recording of programs, and say what is in it and what it cannot know.

    Read are: text of ftrace and of `trace-cmd report` (also raw), `perf script`, `perf.data` of perf and simpleperf,
    `trace.dat`, Perfetto's traces of Linux, Android's systrace pages and `atrace`, and columns of numpy (`.npz`,
    `.npz.zst`); also packed by gzip or zstd, or in a zip such as a bugreport. A file's content tells which it is.
    """
    found = imports.import_file(
        file,
        commands=command or [],
        pids=pid or [],
        speeds=_speeds(speeds) if speeds else [],
        traced=Catalog.shipped().machine(machine) if machine else None,
        cpus=cpus or "",
        cgroups=cgroups,
    )
    if out:
        files.save(found, out)

    def text(console: Console) -> None:
        recorded.print_recording(console, found)
        if out:
            console.print(f"written: {out}", style="dim", soft_wrap=True)

    output.show(
        value=lambda: summary.to_json(found),
        rows=lambda: map(vars, summary.rows(found)),
        text=text,
    )


def _speeds(text: str) -> list[float]:
    try:
        return [float(item) for item in options.split(text, "speeds")]
    except ValueError:
        raise InputError(f'--speeds "{text}" is no list of numbers (such as 1,1,0.5,0.5)') from None
