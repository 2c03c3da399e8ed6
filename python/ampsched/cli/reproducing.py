"""``ampsched reproduce``."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markdown import Markdown

from ampsched._core import InputError, suggest
from ampsched.cli import options, render, reporting
from ampsched.cli.settings import with_settings
from ampsched.experiments.registry import EXPERIMENTS
from ampsched.settings import BatchSettings

if TYPE_CHECKING:
    from ampsched.experiments.reproduction import Reproduction

EXAMPLES = render.examples(
    *(f"ampsched reproduce {row.name}{with_}" for row in EXPERIMENTS.values() for with_ in row.examples),
    "ampsched reproduce all --out results",
)
ALL = "all"
Paper = StrEnum("Paper", {name: name for name in (*sorted(EXPERIMENTS), ALL)})  # type: ignore[misc]
"""Papers whose experiments can be reproduced."""
PAPERS = "; ".join(f"{name}: {EXPERIMENTS[name].paper}" for name in sorted(EXPERIMENTS))
REPEATS_MAX = 1000


@with_settings(BatchSettings)
def reproduce(
    paper: Annotated[Paper, typer.Argument(help=f"Paper. {PAPERS}; all: one after the other.")],
    only: Annotated[
        str | None, typer.Option("--only", metavar="PART", help="One figure or part, such as fig5.")
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", parser=options.whole, metavar="N", help="Number of seeds.")
    ] = 3,
    max_repeats: Annotated[
        int,
        typer.Option(
            "--max-repeats",
            parser=options.whole,
            metavar="N",
            help="Most seeds: they are added while an interval is too wide for a verdict.",
        ),
    ] = 50,
    out: Annotated[Path, typer.Option("--out", help="Folder for report, figures and results.")] = Path("out"),
    html: options.Html = None,
    *,
    settings: BatchSettings,
) -> None:
    """Repeat a paper's experiment, compare with its claims, and write a report.

    Prints claim, the paper's value, ours with a 95 % confidence interval, and a verdict. Nothing is tuned to a claim.
    Fewer seeds than --max-repeats are quicker; a number whose interval stays too wide is not reproduced then. What
    "all" has finished stays if it is stopped, and is not run again by the same version with the same numbers of seeds.
    """
    for option, value in (("--repeats", repeats), ("--max-repeats", max_repeats)):
        if not 1 <= value <= REPEATS_MAX:
            raise InputError(f"{option} {value} is not within 1 to {REPEATS_MAX}")
    how_many = (repeats, max_repeats)
    if paper.value != ALL:
        _check_part(paper.value, only)
        result, files = _reproduce(paper.value, only, settings["jobs"], how_many, out)
        console = render.console()
        console.print(Markdown(_without_images(result.markdown())))
        console.print(f"written: {', '.join(map(str, files))}", soft_wrap=True)
    elif only is not None:
        raise InputError(f'--only "{only}": names a part of one paper, not of all')
    else:
        _reproduce_all(settings["jobs"], how_many, out)
    names = list(EXPERIMENTS) if paper.value == ALL else [paper.value]
    reporting.reproduction(html, [out / name for name in names])


def _check_part(name: str, only: str | None) -> None:
    parts = list(EXPERIMENTS[name].load().PARTS)
    if only is not None and only not in parts:
        raise InputError(f'--only "{only}" is no part of this experiment ({suggest(only, parts)})')


def _reproduce(
    name: str, only: str | None, jobs: int, how_many: tuple[int, int], out: Path
) -> "tuple[Reproduction, list[Path]]":
    """Runs an experiment and writes its folder; returns what came out, and the files."""
    folder = out / name
    # A folder that cannot be written is better noticed before the simulations than after them.
    folder.mkdir(parents=True, exist_ok=True)
    repeats, max_repeats = how_many
    with render.progress_bar(f"Simulating {name}") as progress:
        result = EXPERIMENTS[name].load().reproduce(only, jobs, repeats, progress, max_repeats)
    return result, result.write(folder)


def _reproduce_all(jobs: int, how_many: tuple[int, int], out: Path) -> None:
    """Runs what is not there yet, and says of each experiment how its claims fared and where the report is."""
    from ampsched.experiments import resuming
    from ampsched.experiments.claims.tables import verdicts_text
    from ampsched.markdown import table

    made_with = resuming.stamp(*how_many)
    console = render.console()
    rows = []
    for name, experiment in EXPERIMENTS.items():
        if resuming.is_done(out, name, made_with):
            console.print(
                f"{name}: is there already, made by this version with as many seeds", soft_wrap=True
            )
        else:
            _reproduce(name, None, jobs, how_many, out)
            resuming.mark_done(out, name, made_with)
        verdicts = verdicts_text(resuming.verdicts_of(out / name))
        rows.append([experiment.paper, verdicts, str(out / name / "report.md")])
    console.print(Markdown(table(["paper", "verdicts", "report"], rows)))


def _without_images(markdown: str) -> str:
    """A report as a terminal can show it."""
    return "\n".join(line for line in markdown.splitlines() if not line.startswith("!["))
