"""``ampsched vm``: commands in a virtual machine whose kernel can load schedulers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ampsched._core import InputError
from ampsched.cli import options, render

if TYPE_CHECKING:
    from ampsched import vm

app = typer.Typer(
    name="vm",
    help="A virtual machine with this computer's files, big and little cores, and a kernel that loads schedulers (sched_ext).",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

Big = Annotated[
    str,
    typer.Option("--big", metavar="CORES:PERCENT", help="Big cores, and the share of a host core of each."),
]
Little = Annotated[str, typer.Option("--little", metavar="CORES:PERCENT", help="The same for little cores.")]
Memory = Annotated[
    int, typer.Option("--memory-mb", parser=options.whole, metavar="MB", help="Memory of the machine.")
]
Steady = Annotated[
    bool,
    typer.Option(
        "--steady", help="Cores use up their share even while they idle, so that waiting makes none faster."
    ),
]
Batch = Annotated[
    bool,
    typer.Option(
        "--batch",
        help="No core loses its host core because another one wakes up: less jitter, more failures of the kernel.",
    ),
]


@app.command("run", epilog=render.examples("sudo ampsched vm run -- uname -r"))
def run(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND", help="Program and arguments.")],
    big: Big = "2:40",
    little: Little = "2:16",
    memory_mb: Memory = 2048,
    limit_s: Annotated[
        float,
        typer.Option("--limit-s", parser=options.number, metavar="S", help="The machine is stopped after."),
    ] = 300.0,
    throttle: Annotated[
        bool,
        typer.Option(help="Give cores their speeds from the start, or when the command calls `throttle`."),
    ] = True,
    steady: Steady = False,
    batch: Batch = False,
) -> None:
    """Run a command as root in a virtual machine and pass its output and exit code on.

    The root file system is this computer's, read-only; only `/tmp`, `/run` and `/dev/shm` are new and writable. Needs root, QEMU and
    virtiofsd; the kernel comes from Debian's archive at the first use.
    """
    from ampsched import vm

    shape = _shape(big, little, steady, batch)
    done = vm.run(
        command,
        shape=shape,
        memory_mb=memory_mb,
        limit_s=limit_s,
        throttle=throttle,
        echo=lambda text: print(text, end="", flush=True),
    )
    if done.code is None:
        why = f"did not end within {limit_s:g} s" if done.timed_out else "went away"
        raise InputError(f"the virtual machine {why}; the kernel's last words: {_last_words(done.console)}")
    sys.exit(done.code)


@app.command("shell", epilog=render.examples("sudo ampsched vm shell"))
def shell(
    big: Big = "2:40",
    little: Little = "2:16",
    memory_mb: Memory = 2048,
    steady: Steady = False,
    batch: Batch = False,
) -> None:
    """Open a root shell in a virtual machine; `throttle` in it gives the cores their speeds."""
    from ampsched import vm

    sys.exit(vm.shell(shape=_shape(big, little, steady, batch), memory_mb=memory_mb))


@app.command("speeds", epilog=render.examples("sudo ampsched vm speeds"))
def speeds(
    big: Big = "2:40",
    little: Little = "2:16",
    steady: Steady = False,
    batch: Batch = False,
    json: options.Json = False,
) -> None:
    """Measure how fast the virtual cores are inside the machine."""
    from ampsched import vm

    found = vm.measure(_shape(big, little, steady, batch))
    if json:
        render.print_json({"rounds_per_s": list(found.rounds_per_s), "ratio": found.ratio})
        return
    for core, speed in enumerate(found.rounds_per_s):
        print(f"core {core}: {speed:,.0f} rounds/s")
    if found.ratio is not None:
        print(f"big:little = {found.ratio:.2f}")


def _shape(big: str, little: str, steady: bool, batch: bool) -> vm.Shape:
    from ampsched import vm

    return vm.Shape(_kind("--big", big), _kind("--little", little), steady=steady, batch=batch)


def _kind(option: str, text: str) -> vm.CoreShape:
    from ampsched import vm

    count, _, percent = text.partition(":")
    try:
        return vm.CoreShape(int(count), float(percent))
    except ValueError:
        raise InputError(
            f'{option} "{text}" is not of the form CORES:PERCENT (two cores of 40 % each are 2:40)'
        ) from None


def _last_words(console: str) -> str:
    return " | ".join(console.strip().splitlines()[-3:]) or "none"
