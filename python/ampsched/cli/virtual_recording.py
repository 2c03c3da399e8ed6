"""``ampsched vm record``."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ampsched.catalog import Catalog
from ampsched.cli import options, recorded, render, virtual
from ampsched.files import check_writable
from ampsched.kinds import RECORDING
from ampsched.recording import files
from ampsched.vm.kernel import DEFAULT_KERNEL

EXAMPLES = render.examples(
    "ampsched vm record -o my_program.ampr -- ./my_program",
    "ampsched vm record --system --arch arm64 -m hybrid-8P16E:p=2:e2=0:e3=0 -o my_program.ampr -- ./my_program",
)

app = virtual.app


@app.command("record", epilog=EXAMPLES)
def record(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND", help="Program and arguments.")],
    recording: Annotated[
        Path,
        typer.Option("--recording", "-o", metavar="FILE", help=f"Where the recording goes ({RECORDING})."),
    ],
    machine: options.Machine = "2B2S",
    system: Annotated[
        bool,
        typer.Option(
            "--system",
            help="Let the guest's kernel tell, on the machine's own cores: also static programs and those for arm64.",
        ),
    ] = False,
    name: Annotated[
        str | None,
        typer.Option(
            "--command",
            metavar="NAME",
            help="With --system: only threads of that program, and of all that it starts; that of the command by default.",
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

    The command runs on as many cores as the machine has, all of its fastest kind, and its calls are recorded as by
    `ampsched record`; then once more on cores of the slowest kind, for its speed-up. With --system it runs on the
    machine itself, and the recording says what each thread had to do in instructions, whichever core it was on.
    """
    from ampsched.vm import exact
    from ampsched.vm.archive import Archive

    check_writable(recording)
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
    work = exact.Work(command, include or [])

    def echo(text: str) -> None:
        print(text, end="", flush=True)

    if system:
        done, found = exact.record(
            guest, work, name=name, machine=machine, out=out, limit_s=limit_s, echo=echo
        )
    else:
        done, found = exact.record_calls(guest, work, machine=machine, limit_s=limit_s, echo=echo)
    if found is not None:
        files.save(found, recording)
        recorded.print_recording(render.errors(), found)
        print(f"ampsched: written: {recording}", file=sys.stderr)
    virtual.end(done.code, done.console, done.timed_out, limit_s)
