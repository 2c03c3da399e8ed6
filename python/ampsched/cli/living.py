"""``ampsched live``: policies on this computer."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ampsched.cli import options as read
from ampsched.cli import render, reporting
from ampsched.cli.passing import PassedOn, pass_on, with_session_options
from ampsched.live import LiveComparison, compare_live, read_mix
from ampsched.live.commands import subcommands
from ampsched.statistics import Estimate

app = typer.Typer(
    name="live",
    help="Policies on this computer: run them for real programs, watch, stop, compare.",
    epilog=render.examples("ampsched live run --policy hsp --big 0-3 --little 4-7 -- ./my_program"),
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
)


THEIRS = "Options: `--help`, or the man page of `ampsched-live`, which gets all arguments as they are."

for _each in subcommands().values():
    app.command(_each.name, cls=PassedOn, help=f"{_each.about}.", epilog=THEIRS)(pass_on)

COMPARE_EXAMPLES = render.examples("ampsched live compare mix.toml -p default,hsp --big 0-3 --little 4-7")


@app.command("compare", epilog=COMPARE_EXAMPLES)
@with_session_options
def compare(
    mix: Annotated[
        Path,
        typer.Argument(metavar="MIX", help="TOML file with tables [[programs]]: name, command, delay_s."),
    ],
    policy: Annotated[
        str,
        typer.Option(
            "--policies",
            "--policy",
            "-p",
            metavar="NAMES",
            help="Policies a,b with parameters; others are measured against the first; default: the kernel alone, scx_NAME: a program.",
        ),
    ] = "default,hsp",
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
    json: read.Json = False,
    *,
    options: list[str],
) -> None:
    """Run a mix of real programs under each policy, repeatedly and in random order, and compare.

    H_ANTT is the mean slowdown of the programs against running alone on the fast CPUs (lower is better); H_STP is the
    sum of their progress (higher is better). Changes are against the first policy.
    """
    programs = read_mix(mix)
    with render.progress_bar("Running", hidden=json) as progress:
        result = compare_live(
            programs,
            read.split(policy, "policies"),
            rounds=repeat,
            seed=seed,
            options=options,
            limit_s=limit_s,
            progress=progress,
        )
    if json:
        render.print_json(result.to_dict())
    else:
        print_live(render.console(), result)
    reporting.live(html, result, quiet=json)


def _plain(value: Estimate, digits: int) -> str:
    interval = f" ±{value.half_width:.{digits}f}" if value.n > 1 else ""
    return f"{value.mean:.{digits}f}{interval}"


def print_live(console: Console, result: LiveComparison) -> None:
    """Prints the tables of a comparison."""
    table = render.table("policy", "H_ANTT", "change %", "H_STP", "change %")
    details = render.table("policy", "makespan s", "unfairness", "uniformity", "session's CPU %")
    for number, row in enumerate(result.summary()):
        table.add_row(
            row.policy,
            _plain(row.h_antt, 3),
            "" if number == 0 else render.change(row.h_antt_change, lower_is_better=True),
            _plain(row.h_stp, 3),
            "" if number == 0 else render.change(row.h_stp_change, lower_is_better=False),
        )
        details.add_row(
            row.policy,
            _plain(row.makespan_s, 2),
            _plain(row.unfairness, 2),
            _plain(row.uniformity, 2),
            f"{100 * row.overhead:.1f}",
        )
    for each in (table, details):
        console.print(each)
        console.print()
    slowdowns = render.table("program", "alone s", *result.policies)
    for number, program in enumerate(result.mix.programs):
        means = [_slowdown(result, policy, number) for policy in result.policies]
        slowdowns.add_row(program.name, f"{result.alone_s[number]:.2f}", *means)
    console.print(slowdowns)
    console.print()
    rounds = len(result.select(result.policies[0]))
    console.print(f"{rounds} rounds; ± is the 95 % interval over rounds", style="dim", soft_wrap=True)
    for note in result.notes():
        console.print(note, style="dim", soft_wrap=True, markup=False)


def _slowdown(result: LiveComparison, policy: str, program: int) -> str:
    runs = result.select(policy)
    return f"{sum(run.metrics.h_ntt[program] for run in runs) / len(runs):.2f}"
