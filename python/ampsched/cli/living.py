"""``ampsched live``: policies on this computer."""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from typer._click.core import Context
from typer.core import TyperCommand

from ampsched._core import InputError
from ampsched.cli import options, render
from ampsched.live import Cores, LiveComparison, compare_live, live_program, read_mix
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


class PassedOn(TyperCommand):
    """A command whose arguments, ``--`` and ``--help`` included, are those of ``ampsched-live``."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Takes the arguments as they are."""
        ctx.args = list(args)
        return []


def _pass_on(context: typer.Context) -> None:
    """Becomes ``ampsched-live`` with the same arguments."""
    program = str(live_program())
    os.execv(program, [program, str(context.info_name), *context.args])  # noqa: S606


@app.command("run", cls=PassedOn, epilog=THEIRS)
def run(context: typer.Context) -> None:
    """Run a policy for a command, for processes or for a cgroup, until it ends or is stopped."""
    _pass_on(context)


@app.command("status", cls=PassedOn, epilog=THEIRS)
def status(context: typer.Context) -> None:
    """Show what the running session does."""
    _pass_on(context)


@app.command("stop", cls=PassedOn, epilog=THEIRS)
def stop(context: typer.Context) -> None:
    """Stop the running session; everything that it touched is put back."""
    _pass_on(context)


@app.command("restore", cls=PassedOn, epilog=THEIRS)
def restore(context: typer.Context) -> None:
    """Put back what sessions left behind that were killed together with their guardians."""
    _pass_on(context)


@app.command("doctor", cls=PassedOn, epilog=THEIRS)
def doctor(context: typer.Context) -> None:
    """Say what this computer can do, and which policies it can run."""
    _pass_on(context)


COMPARE_EXAMPLES = render.examples("ampsched live compare mix.toml -p default,hsp --big 0-3 --little 4-7")


@app.command("compare", epilog=COMPARE_EXAMPLES)
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
            "--repeat", "-r", parser=options.whole, metavar="N", help="Number of rounds, each a sample."
        ),
    ] = 5,
    seed: Annotated[
        int, typer.Option("--seed", parser=options.whole, metavar="N", help="Seed of the order of runs.")
    ] = 1,
    big: Annotated[str, typer.Option("--big", metavar="CPUS", help="CPUs of the fastest class.")] = "",
    middle: Annotated[
        list[str] | None, typer.Option("--middle", metavar="CPUS", help="CPUs of a class in between.")
    ] = None,
    little: Annotated[str, typer.Option("--little", metavar="CPUS", help="CPUs of the slowest class.")] = "",
    ratio: Annotated[
        str,
        typer.Option("--ratio", metavar="RATIOS", help="Speed of the fastest class over that of the others."),
    ] = "",
    facts: Annotated[
        Path | None, typer.Option("--facts", metavar="FILE", help="What was measured of programs beforehand.")
    ] = None,
    degrade: Annotated[
        bool, typer.Option("--degrade", help="Run policies although something essential of them is missing.")
    ] = False,
    allow_dvfs: Annotated[bool, typer.Option("--allow-dvfs", help="Let policies set clocks.")] = False,
    backend: Annotated[str, typer.Option("--backend", help="auto, scx or daemon.")] = "auto",
    dilation: Annotated[
        float,
        typer.Option(
            "--dilation", parser=options.number, metavar="D", help="Let policies' time pass so much slower."
        ),
    ] = 1.0,
    limit_s: Annotated[
        float, typer.Option("--limit-s", parser=options.number, metavar="S", help="Longest time of a run.")
    ] = 3600.0,
    json: options.Json = False,
) -> None:
    """Run a mix of real programs under each policy, repeatedly and in random order, and compare.

    H_ANTT is the mean slowdown of the programs against running alone on the fast CPUs (lower is better); H_STP is the sum of their
    progress (higher is better). Changes are against the first policy.
    """
    more = [f"--backend={backend}"]
    more += [f"--facts={facts}"] if facts else []
    more += ["--degrade"] if degrade else []
    more += ["--allow-dvfs"] if allow_dvfs else []
    more += [f"--dilation={dilation:g}"] if dilation != 1 else []
    if backend not in ("auto", "scx", "daemon"):
        raise InputError(f'--backend "{backend}" is not auto, scx or daemon')
    programs = read_mix(mix)
    with render.progress_bar("Running", hidden=json) as progress:
        result = compare_live(
            programs,
            options.split(policy, "policies"),
            rounds=repeat,
            seed=seed,
            cores=Cores(big, tuple(middle or ()), little, ratio),
            options=more,
            limit_s=limit_s,
            progress=progress,
        )
    if json:
        render.print_json(result.to_dict())
    else:
        print_live(render.console(), result)


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
