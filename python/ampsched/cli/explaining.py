"""``ampsched explain``."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ampsched import api
from ampsched._core import InputError
from ampsched.cli import explaining_traces, options, render
from ampsched.cli.output import Output, with_format
from ampsched.cli.settings import SIMULATION, with_settings
from ampsched.settings import SimulateSettings

EXAMPLES = render.examples(
    "ampsched explain -m 2B2S -w ferret -p colab --thread ferret/rank.0 --at 20",
    "ampsched explain -m 2B2S -w sync-2 -p cfs --thread 3 --at 120 --window 1 --json",
    "ampsched explain trace.dat -m juno --thread RenderThread --at 812   (what the real scheduler did)",
)


@with_format
@with_settings(SimulateSettings, SIMULATION)
def explain(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="TRACE", help="A trace of a real scheduler, to explain what it did.", show_default=False
        ),
    ] = None,
    *,
    thread: Annotated[
        str,
        typer.Option(
            "--thread",
            "-t",
            metavar="THREAD",
            help="The thread: app/thread, or its number; of a trace its name or number.",
        ),
    ],
    at_ms: Annotated[
        float,
        typer.Option("--at", parser=options.number, metavar="MS", help="The moment, in ms since the start."),
    ],
    machine: options.MachineOfTrace = None,
    cpus: options.CpusOfTrace = None,
    workload: options.WorkloadOrTrace = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            "-p",
            metavar="NAME",
            help=f"{options.POLICY_HELP}; cfs by default. For a trace a list a,b; linux of its kernel by default.",
            autocompletion=options.complete_policy,
        ),
    ] = None,
    window_ms: Annotated[
        float,
        typer.Option(
            "--window",
            parser=options.number,
            metavar="MS",
            help="How long before and after the moment to look.",
        ),
    ] = 5.0,
    settings: SimulateSettings,
    values: Annotated[
        bool,
        typer.Option("--values", help="Print the rule and the numbers behind each sentence, too."),
    ] = False,
    output: Output,
) -> None:
    """Explain what happened to one thread around a moment, and why: in a simulation, or in a trace.

    Where it was put, what it waited for, who ran instead, when it was chosen, interrupted or moved; --values adds the
    rule that decided and the values that counted. Of a TRACE: what its scheduler did, and with a machine what a policy
    (by default `linux` of that kernel) does in a replay, and where they first differ.
    """
    if file is not None:
        if workload is not None:
            raise InputError(f"--workload {workload} and the trace {file} exclude each other")
        asked = thread, at_ms, window_ms
        explaining_traces.show(file, (machine, cpus or ""), policy, asked, settings, output, values=values)
        return
    if cpus is not None:
        raise InputError(f"--cpus {cpus} needs a TRACE: it states which of its CPUs are of which cluster")
    if machine is None or workload is None:
        raise InputError(f"--{'workload' if machine else 'machine'} NAME is missing (or give a TRACE)")
    answer = api.explain(
        machine, workload, policy or "cfs", thread=thread, at_ms=at_ms, window_ms=window_ms, **settings
    )

    def text(console: Console) -> None:
        explaining_traces.print_lines(console, answer.lines(), values=values)

    output.show(
        value=lambda: dataclasses.asdict(answer),
        rows=lambda: map(dataclasses.asdict, answer.events),
        text=text,
    )
