"""``ampsched explain``."""

import dataclasses
from typing import Annotated

import typer
from rich.console import Console

from ampsched import api
from ampsched.cli import options, render
from ampsched.cli.output import Output, with_format
from ampsched.cli.settings import SIMULATION, with_settings
from ampsched.settings import SimulateSettings

EXAMPLES = render.examples(
    "ampsched explain -m 2B2S -w ferret -p colab --thread ferret/rank.0 --at 20",
    "ampsched explain -m 2B2S -w sync-2 -p cfs --thread 3 --at 120 --window 1 --json",
)


@with_format
@with_settings(SimulateSettings, SIMULATION)
def explain(
    machine: options.Machine,
    workload: options.Workload,
    thread: Annotated[
        str,
        typer.Option("--thread", "-t", metavar="THREAD", help="The thread: app/thread, or its number."),
    ],
    at_ms: Annotated[
        float,
        typer.Option("--at", parser=options.number, metavar="MS", help="The moment, in ms since the start."),
    ],
    policy: options.Policy = "cfs",
    window_ms: Annotated[
        float,
        typer.Option(
            "--window",
            parser=options.number,
            metavar="MS",
            help="Tell what happened from so long before the moment to so long after it.",
        ),
    ] = 5.0,
    *,
    settings: SimulateSettings,
    output: Output,
) -> None:
    """Simulate one workload under one policy and tell what happened to one thread around a moment, and why.

    Where it was put, what it waited for, who ran instead, when it was chosen, interrupted or moved: each with the rule
    that decided and the values that counted.
    """
    answer = api.explain(
        machine, workload, policy, thread=thread, at_ms=at_ms, window_ms=window_ms, **settings
    )

    def text(console: Console) -> None:
        for line in answer.lines():
            style = "dim" if line.lstrip().startswith("[") else None
            console.print(line, style=style, soft_wrap=True, markup=False, highlight=False)

    output.show(
        value=lambda: dataclasses.asdict(answer),
        rows=lambda: map(dataclasses.asdict, answer.events),
        text=text,
    )
