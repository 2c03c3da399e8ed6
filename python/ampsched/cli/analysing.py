"""``ampsched analytic``."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ampsched._core import InputError
from ampsched.cli import options, render
from ampsched.cli.completing import listed
from ampsched.cli.output import Output, with_format

if TYPE_CHECKING:
    from ampsched.analytic import Mix, Prediction

EXAMPLES = render.examples(
    "ampsched analytic --workload W6",
    "ampsched analytic --speedups 2.5,2.1,1.6,1.2 --fast 2 --slow 2 --policy rr,prop-sp --weights 2,1,1,1",
    "ampsched analytic --format csv >predictions.csv",
)
OWN = "own"
"""Name of the programs of ``--speedups``."""


def _complete_workload(incomplete: str) -> list[str]:
    from ampsched.analytic import TABLE_1

    return listed(incomplete, list(TABLE_1))


def _complete_policy(incomplete: str) -> list[str]:
    from ampsched.analytic import POLICIES

    return listed(incomplete, list(POLICIES))


@with_format
def analytic(
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload",
            "-w",
            metavar="NAMES",
            help="Workloads of the paper's Table 1, such as W1,W6; all nine by default.",
            autocompletion=_complete_workload,
        ),
    ] = None,
    speedups: Annotated[
        str | None,
        typer.Option(
            "--speedups",
            metavar="NUMBERS",
            help="Instead of workloads: each program's speed-up on a fast core, such as 2.5,1.2.",
        ),
    ] = None,
    fast: Annotated[
        int, typer.Option("--fast", parser=options.whole, metavar="N", help="Number of fast cores.")
    ] = 2,
    slow: Annotated[
        int, typer.Option("--slow", parser=options.whole, metavar="N", help="Number of slow cores.")
    ] = 2,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            "-p",
            metavar="NAMES",
            help="Policies, such as rr,prop-sp; all five by default.",
            autocompletion=_complete_policy,
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights", metavar="NUMBERS", help="Static weights (priorities) of the programs for prop-sp."
        ),
    ] = None,
    *,
    output: Output,
) -> None:
    """Compare policies by the analytical model of Prop-SP, without simulation, for single-threaded programs.

    F is the share of time and f the share of instructions on fast cores; slowdown is against running alone on a fast
    core. ASP is the sum of the programs' speed-ups over a slow core, each less 1 (higher is better), unfairness the
    greatest slowdown / the smallest (1 is fair). opt-unfairness is the fairest schedule there is, opt-asp-ref the one
    with the highest ASP that is not less fair than prop-sp.
    """
    from ampsched.analytic import POLICIES, predict_all

    names = list(POLICIES) if policy is None else options.split(policy, "policy")
    policies = _distinct("policy", names)
    mixes = _mixes(workload, speedups, fast, slow, weights)
    predictions = [predict_all(mix, policies) for mix in mixes]

    def text(console: Console) -> None:
        for mix, rows in zip(mixes, predictions, strict=True):
            _print(console, mix, rows)

    output.show(
        value=lambda: _as_dict(mixes, predictions),
        rows=lambda: [
            {"workload": mix.name, **asdict(row)}
            for mix, found in zip(mixes, predictions, strict=True)
            for row in found
        ],
        text=text,
    )


def _mixes(
    workload: str | None, speedups: str | None, fast: int, slow: int, weights: str | None
) -> list["Mix"]:
    from ampsched.analytic import TABLE_1, Mix, table_1

    static = None if weights is None else _numbers("weights", weights)
    if speedups is None:
        names = list(TABLE_1) if workload is None else options.split(workload, "workload")
        return [table_1(name, fast, slow, static) for name in _distinct("workload", names)]
    if workload is not None:
        raise InputError("--workload and --speedups exclude each other")
    return [Mix(OWN, _numbers("speedups", speedups), fast, slow, static)]


def _numbers(what: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(map(options.number, options.split(text, what)))
    except typer.BadParameter as error:
        raise InputError(f'--{what} "{text}": {error.message}') from None


def _distinct(what: str, names: list[str]) -> list[str]:
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InputError(f'{what} "{name}" is given twice')
    return names


def _as_dict(mixes: Sequence["Mix"], predictions: Sequence[Sequence["Prediction"]]) -> dict[str, object]:
    return {
        "mixes": [
            {**asdict(mix), "policies": [asdict(row) for row in rows]}
            for mix, rows in zip(mixes, predictions, strict=True)
        ],
    }


def _print(console: Console, mix: "Mix", rows: Sequence["Prediction"]) -> None:
    """One table with the columns of the paper's quantities."""
    weights = "" if mix.weights is None else f", weights {_list(mix.weights)}"
    title = f"{mix.name}: speed-ups {_list(mix.speedups)} on {mix.fast} fast + {mix.slow} slow cores{weights}"
    lists = map(render.prose, ("F", "f", "slowdown"))
    table = render.table("policy", *lists, "ASP", "unfairness")
    for row in rows:
        values = (row.fast_shares, row.instruction_shares, row.slowdowns)
        table.add_row(
            row.policy,
            *(" ".join(render.fixed(value, 3) for value in each) for each in values),
            render.fixed(row.asp, 4),
            render.fixed(row.unfairness, 4),
        )
    render.print_table(console, title, table)


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
