"""``ampsched reproduce``."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.markdown import Markdown

from ampsched._core import InputError, suggest
from ampsched.cli import options, render
from ampsched.cli.settings import with_settings
from ampsched.experiments.registry import EXPERIMENTS
from ampsched.settings import BatchSettings

EXAMPLES = render.examples(
    *(f"ampsched reproduce {row.name}{with_}" for row in EXPERIMENTS.values() for with_ in row.examples)
)
Paper = StrEnum("Paper", {name: name for name in sorted(EXPERIMENTS)})  # type: ignore[misc]
"""Papers whose experiments can be reproduced."""
PAPERS = "; ".join(f"{name}: {EXPERIMENTS[name].paper}" for name in sorted(EXPERIMENTS))
REPEATS_MAX = 1000


@with_settings(BatchSettings)
def reproduce(
    paper: Annotated[Paper, typer.Argument(help=f"Paper. {PAPERS}.")],
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
    *,
    settings: BatchSettings,
) -> None:
    """Repeat a paper's experiment, compare with its claims, and write a report.

    Prints claim, the paper's value, ours with a 95 % confidence interval, and a verdict. Nothing is tuned to a claim.
    Fewer seeds than --max-repeats are quicker; a number whose interval stays too wide is not reproduced then.
    """
    experiment = EXPERIMENTS[paper.value].load()
    parts = list(experiment.PARTS)
    if only is not None and only not in parts:
        raise InputError(f'--only "{only}" is no part of this experiment ({suggest(only, parts)})')
    for option, value in (("--repeats", repeats), ("--max-repeats", max_repeats)):
        if not 1 <= value <= REPEATS_MAX:
            raise InputError(f"{option} {value} is not within 1 to {REPEATS_MAX}")
    folder = out / paper.value
    # A folder that cannot be written is better noticed before the simulations than after them.
    folder.mkdir(parents=True, exist_ok=True)
    with render.progress_bar("Simulating") as progress:
        result = experiment.reproduce(only, settings["jobs"], repeats, progress, max_repeats)
    console = render.console()
    files = result.write(folder)
    console.print(Markdown(_without_images(result.markdown())))
    console.print(f"written: {', '.join(map(str, files))}", soft_wrap=True)


def _without_images(markdown: str) -> str:
    """A report as a terminal can show it."""
    return "\n".join(line for line in markdown.splitlines() if not line.startswith("!["))
