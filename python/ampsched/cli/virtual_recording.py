"""``ampsched vm record``."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ampsched.catalog import Catalog
from ampsched.cli import options, recorded, render, virtual
from ampsched.recording import files
from ampsched.vm.kernel import DEFAULT_KERNEL

EXAMPLES = render.examples(
    "ampsched vm record -o my_program.ampr -- ./my_program",
    "ampsched vm record --arch arm64 -m hybrid-8P16E:p=2:e2=0:e3=0 -o my_program.ampr -- ./my_program",
)


def record(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND", help="Program and arguments.")],
    recording: Annotated[
        Path,
        typer.Option("--recording", "-o", metavar="FILE", help=f"Where the recording goes ({files.SUFFIX})."),
    ],
    machine: options.Machine = "2B2S",
    name: Annotated[
        str | None,
        typer.Option(
            "--command",
            metavar="NAME",
            help="Only threads of that program, and of all that it starts; that of the command by default.",
        ),
    ] = None,
    kernel: virtual.Kernel = DEFAULT_KERNEL,
    arch: virtual.ArchOption = "x86",
    include: virtual.Include = None,
    out: virtual.Out = None,
    cpu: virtual.CpuModel = None,
    mips: virtual.Mips = 1000.0,
    quantum_us: virtual.Quantum = 50.0,
    caches: virtual.Caches = False,
    memory_mb: virtual.Memory = 1536,
    limit_s: virtual.Limit = 600.0,
    mirror: virtual.Mirror = None,
) -> None:
    """Run a command as `ampsched vm run` does, under Linux alone, and record it; pass its output and exit code on.

    The recording says how much each thread had to do in instructions, whichever core it was on: CPU time is weighted by
    the core's speed. Its cores are those of the machine.
    """
    from ampsched.vm import exact
    from ampsched.vm.archive import Archive

    archive = Archive(mirror=mirror) if mirror else Archive()
    guest = exact.Exact(
        Catalog.shipped().machine(machine),
        kernel,
        virtual.ARCHITECTURES[arch],
        mips,
        quantum_us,
        memory_mb,
        caches=caches,
        archive=archive,
        cpu=cpu,
    )
    done, found = exact.record(
        guest,
        exact.Work(command, include or []),
        name=name,
        out=out,
        limit_s=limit_s,
        echo=lambda text: print(text, end="", flush=True),
    )
    if found is not None:
        files.save(found, recording)
        recorded.print_recording(render.errors(), found)
        print(f"ampsched: written: {recording}", file=sys.stderr)
    virtual.end(done.code, done.console, done.timed_out, limit_s)
