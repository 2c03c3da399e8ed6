"""``ampsched live``: policies on this computer."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ampsched.cli import options as read
from ampsched.cli import render, reporting
from ampsched.cli.forwarding import PassedOn, knows_cores, pass_on, with_session_options
from ampsched.cli.output import Output, with_format
from ampsched.cli.progress import progress_bar
from ampsched.live import LiveComparison, compare_live, read_mix
from ampsched.live.commands import subcommands

app = typer.Typer(
    name="live",
    help="Run programs under a policy on this computer, and compare policies.",
    epilog=render.examples("ampsched live run --policy abreast --big 0-3 --little 4-7 -- ./my_program"),
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
)


THEIRS = "Options: `--help`, or the man page of `ampsched-live`, which gets all arguments as they are."
MACHINE = " `--machine NAME|FILE|this` takes classes, speeds and power of cores from a machine file."

for _each in subcommands().values():
    _note = MACHINE if knows_cores(_each.name) else ""
    app.command(_each.name, cls=PassedOn, help=f"{_each.about}.", epilog=THEIRS + _note)(pass_on)

COMPARED = ["default,abreast"]
COMPARE_EXAMPLES = render.examples("ampsched live compare mix.toml -p default,abreast --big 0-3 --little 4-7")


@app.command("compare", epilog=COMPARE_EXAMPLES)
@with_format
@with_session_options
def compare(
    mix: Annotated[
        Path,
        typer.Argument(metavar="MIX", help="TOML file with tables [[programs]]: name, command, delay_s."),
    ],
    policy: Annotated[
        list[str],
        typer.Option(
            "--policies",
            "--policy",
            "-p",
            metavar="NAMES",
            help="Policies a,b with parameters, compared with the first. Repeatable. default is the kernel's own, scx_X a program.",
            autocompletion=read.complete_policy,
        ),
    ] = COMPARED,
    repeat: Annotated[
        int,
        typer.Option(
            "--repeat", "-r", parser=read.whole, metavar="N", help="Number of rounds, each a sample."
        ),
    ] = 5,
    seed: Annotated[
        int, typer.Option("--seed", parser=read.whole, metavar="N", help="Seed of the order of runs.")
    ] = 1,
    limit_s: Annotated[
        float, typer.Option("--limit-s", parser=read.number, metavar="S", help="Longest time of a run.")
    ] = 3600.0,
    html: read.Html = None,
    *,
    output: Output,
    options: list[str],
) -> None:
    """Run a mix of real programs under each policy, repeatedly and in random order, and compare.

    H_ANTT is the mean slowdown of the programs against running alone on the fast CPUs (lower is better); H_STP is the
    sum of their progress (higher is better). Changes are against the first policy.
    """
    programs = read_mix(mix)
    with progress_bar("Running", hidden=output.is_data) as progress:
        result = compare_live(
            programs,
            [name for names in policy for name in read.split(names, "policies")],
            rounds=repeat,
            seed=seed,
            options=options,
            limit_s=limit_s,
            progress=progress,
        )
    output.show(
        value=result.to_dict,
        rows=lambda: map(dataclasses.asdict, result.summary()),
        text=lambda console: print_live(console, result),
    )
    reporting.live(html, result, quiet=output.is_data)


def print_live(console: Console, result: LiveComparison) -> None:
    """Prints the tables of a comparison."""
    rows = result.summary()
    measured = ["wake-up p99 ms"] if any(row.latency_p99_ms for row in rows) else []
    table = render.table("policy", "H_ANTT", render.tied("change %"), "H_STP", render.tied("change %"))
    details = render.table("policy", "makespan s", *measured, "unfairness", "uniformity", "session's CPU %")
    for number, row in enumerate(rows):
        table.add_row(
            row.policy,
            render.interval(row.h_antt, 3),
            "" if number == 0 else render.change(row.h_antt_change, lower_is_better=True),
            render.interval(row.h_stp, 3),
            "" if number == 0 else render.change(row.h_stp_change, lower_is_better=False),
        )
        details.add_row(
            row.policy,
            render.interval(row.makespan_s, 2),
            *([render.interval(row.latency_p99_ms, 3) if row.latency_p99_ms else ""] if measured else []),
            render.interval(row.unfairness, 2),
            render.interval(row.uniformity, 2),
            render.share(row.overhead),
        )
    for each in (table, details):
        console.print(each)
        console.print()
    slowdowns = render.table("program", "alone s", *result.policies)
    for number, program in enumerate(result.mix.programs):
        means = [_slowdown(result, policy, number) for policy in result.policies]
        slowdowns.add_row(program.name, render.fixed(result.alone_s[number], 2), *means)
    console.print(slowdowns)
    console.print()
    rounds = len(result.select(result.policies[0]))
    console.print(f"{rounds} rounds; ± is the 95 % interval over rounds", style="dim", soft_wrap=True)
    for note in result.notes():
        console.print(note, style="dim", soft_wrap=True, markup=False)


def _slowdown(result: LiveComparison, policy: str, program: int) -> str:
    runs = result.select(policy)
    return render.fixed(sum(run.metrics.h_ntt[program] for run in runs) / len(runs), 2)
