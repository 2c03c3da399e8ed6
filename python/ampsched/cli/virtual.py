"""``ampsched vm``: commands in a virtual machine whose kernel can load schedulers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer

from ampsched._core import InputError
from ampsched.catalog import Catalog
from ampsched.cli import options, perfetto, render
from ampsched.vm.kernel import DEFAULT_KERNEL

GUEST = "The virtual machine"
"""Group of options in the help."""

app = typer.Typer(
    name="vm",
    help="Run commands in a virtual machine with unequal cores, whose kernel loads schedulers (sched_ext).",
    no_args_is_help=True,
)
Memory = Annotated[
    int,
    typer.Option(
        "--memory-mb",
        parser=options.whole,
        metavar="MB",
        help="Memory of the machine.",
        rich_help_panel=GUEST,
    ),
]
Limit = Annotated[
    float,
    typer.Option(
        "--limit-s",
        parser=options.number,
        metavar="S",
        help="Stop the machine after this many seconds of this computer's time.",
    ),
]
Arch = Literal["x86", "arm64"]
ARCHITECTURES: dict[Arch, str] = {"x86": "x86_64", "arm64": "aarch64"}
Kernel = Annotated[
    str,
    typer.Option(
        "--kernel",
        metavar="VERSION",
        help="Version of Linux, such as 7.3; an unknown one is answered with the list.",
        rich_help_panel=GUEST,
    ),
]
ArchOption = Annotated[
    Arch,
    typer.Option(
        "--arch",
        help="arm64 guests are told how fast their cores are, so Linux's own scheduler makes use of it; programs "
        "must be built for it. Common libraries are fetched.",
        rich_help_panel=GUEST,
    ),
]
Governor = Annotated[
    str | None,
    typer.Option(
        "--governor",
        metavar="NAME",
        help="Linux's governor that changes the clusters' frequencies, such as schedutil, in arm64 guests; an unknown "
        "one is answered with the list. If absent, they stay at the highest.",
        rich_help_panel=GUEST,
    ),
]
Priorities = Annotated[
    bool,
    typer.Option(
        "--priorities",
        help="Tell x86-64 guests which cores are faster, as on Intel's hybrids (ITMT), so Linux uses them first.",
        rich_help_panel=GUEST,
    ),
]
Include = Annotated[
    list[Path] | None,
    typer.Option(
        "--include",
        metavar="FILE",
        help="Another file, folder or program that the command needs. Repeatable.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FOLDER",
        help="Copy the files that the command leaves in its working folder to this folder.",
    ),
]
CpuModel = Annotated[
    str | None,
    typer.Option(
        "--cpu",
        metavar="MODEL",
        help="QEMU's model of all cores, which says what instructions they have; by default all that it imitates, on "
        "arm64 `cortex-a57` if the machine has cores of Armv8.0, else `cortex-a76`.",
        rich_help_panel=GUEST,
    ),
]
Mips = Annotated[
    float,
    typer.Option(
        "--mips",
        parser=options.number,
        metavar="N",
        help="Million integer instructions per second of the fastest core; the others follow from their types.",
        rich_help_panel=GUEST,
    ),
]
Quantum = Annotated[
    float,
    typer.Option(
        "--quantum-us",
        parser=options.number,
        metavar="US",
        help="How long each core runs before the next one's turn: 2 to 4 shows contended locks but takes several times as long.",
        rich_help_panel=GUEST,
    ),
]
Caches = Annotated[
    bool,
    typer.Option(
        "--caches",
        help="Loads and stores that miss caches cost more, so that programs that wait for memory gain less; takes up "
        "to three times as long.",
        rich_help_panel=GUEST,
    ),
]
Mirror = Annotated[
    str | None,
    typer.Option(
        "--mirror",
        metavar="URL",
        help="Debian archive to use, if not this computer's own.",
        rich_help_panel=GUEST,
    ),
]
EXAMPLES = render.examples(
    "ampsched vm run -- uname -r",
    "ampsched vm run --arch arm64 --kernel 7.3 -- cat /sys/devices/system/cpu/cpu0/cpu_capacity",
    "ampsched vm run -m hybrid-8P16E:p=6:e2=0:e3=0 --policy abreast --out results -- ./my_program",
)


@app.command("run", epilog=EXAMPLES)
def run(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND", help="Program and arguments.")],
    machine: options.Machine = "2B2S",
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            "-p",
            metavar="NAME",
            help="Policy with parameters; without it, Linux schedules alone.",
            autocompletion=options.complete_policy,
        ),
    ] = None,
    kernel: Kernel = DEFAULT_KERNEL,
    arch: ArchOption = "x86",
    governor: Governor = None,
    priorities: Priorities = False,
    include: Include = None,
    out: Out = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            metavar="FILE",
            help="Write who ran on which core, as the kernel tells it: into a name that ends in .pftrace as simulations are "
            "traced, into another one as text of Linux's function tracer. https://ui.perfetto.dev opens both.",
        ),
    ] = None,
    open_: perfetto.Open = False,
    cpu: CpuModel = None,
    mips: Mips = 1000.0,
    quantum_us: Quantum = 50.0,
    caches: Caches = False,
    memory_mb: Memory = 1536,
    limit_s: Limit = 600.0,
    mirror: Mirror = None,
) -> None:
    """Run a command as root in a virtual machine with exactly unequal cores; pass its output and exit code on.

    Each core executes its own number of instructions per second of the guest's time. Nothing else counts: two runs are
    the same, however busy this computer is. Neither rights nor packages are needed; QEMU and kernels come from Debian's
    archive at the first use. The guest has the program with its libraries and what `--include` names, in their places.
    """
    from ampsched.vm import exact
    from ampsched.vm.archive import Archive

    perfetto.check(open_, trace)
    archive = Archive(mirror=mirror) if mirror else Archive()
    guest = exact.Exact(
        Catalog.shipped().machine(machine),
        kernel,
        ARCHITECTURES[arch],
        mips,
        quantum_us,
        memory_mb,
        caches=caches,
        governor=governor,
        archive=archive,
        cpu=cpu,
        priorities=priorities,
    )
    words, needed = exact.under(policy, guest, command) if policy else (command, [])
    files = [*(include or []), *needed]
    done = exact.run(
        guest,
        exact.Work(words, files),
        out=out,
        trace=trace,
        limit_s=limit_s,
        echo=lambda text: print(text, end="", flush=True),
    )
    if done.took_s is not None and done.report:
        host_s = done.report.host_s
        print(
            f"ampsched: took {done.took_s:.2f} s in the machine, {host_s:.0f} s here with its start",
            file=sys.stderr,
        )
    if done.lost_events:
        print(f"ampsched: the trace lacks the first {done.lost_events:,} events", file=sys.stderr)
    if trace and open_:
        perfetto.show(trace)
    end(done.code, done.console, done.timed_out, limit_s)


def end(code: int | None, console: str, timed_out: bool, limit_s: float) -> NoReturn:
    """Exits as the command in a machine has; an error if it has not ended."""
    if code is None:
        why = f"did not end within {limit_s:g} s" if timed_out else "went away"
        raise InputError(f"the virtual machine {why}; the kernel's last words: {_last_words(console)}")
    sys.exit(code)


def _last_words(console: str) -> str:
    return " | ".join(console.strip().splitlines()[-3:]) or "none"
