"""``ampsched reproduce``."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ampsched._core import InputError, suggest
from ampsched.cli import options, render, reporting
from ampsched.cli.output import Output, with_format
from ampsched.cli.progress import progress_bar
from ampsched.cli.settings import with_settings
from ampsched.cli.tables import Table
from ampsched.report.asked import Asked
from ampsched.settings import BatchSettings
from ampsched_lab.papers.registry import EXPERIMENTS
from ampsched_lab.shared.html import page

if TYPE_CHECKING:
    from ampsched_lab.shared.reproduction import Reproduction

EXAMPLES = render.examples(
    *(f"ampsched reproduce {row.name}{with_}" for row in EXPERIMENTS.values() for with_ in row.examples),
    "ampsched reproduce all --out results",
)
ALL = "all"
Paper = StrEnum("Paper", {name: name for name in (*sorted(EXPERIMENTS), ALL)})  # type: ignore[misc]
"""Papers whose experiments can be reproduced."""
PAPERS = "; ".join(f"{name}: {EXPERIMENTS[name].paper}" for name in sorted(EXPERIMENTS))
REPEATS_MAX = 1000
app = typer.Typer(
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command("reproduce", epilog=EXAMPLES)
@with_format
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
    output: Output,
) -> None:
    """Repeat a paper's experiment, compare with its claims, and write a report.

    Prints verdicts by figure of the paper, then each claim with the paper's value, ours with a 95 % confidence interval
    and the verdict, and where the report is. Nothing is tuned to a claim.
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
        _show(result, files, output)
    elif only is not None:
        raise InputError(f'--only "{only}": names a part of one paper, not of all')
    else:
        _show_all(_reproduce_all(settings["jobs"], how_many, out), output)
    names = list(EXPERIMENTS) if paper.value == ALL else [paper.value]
    folders = [out / name for name in names]
    asked = Asked(reporting.command())
    reporting.write(
        html,
        lambda: [page(folder, asked, figures=len(folders) == 1) for folder in folders],
        quiet=output.is_data,
    )


def _show(result: "Reproduction", files: "list[Path]", output: Output) -> None:
    """Prints verdicts by figure, the claims, and where the report is."""
    from ampsched_lab.shared.claims.tables import verdict_counts, verdicts_by_figure

    records = result.records()
    figures = [
        {"figure": figure, **verdict_counts(counts)}
        for figure, counts in verdicts_by_figure(result.claims).items()
    ]

    def text(console: Console) -> None:
        if figures:
            render.print_table(console, result.title, _counts("figure", figures))
        else:
            render.print_title(console, f"{result.title}: no claim of this part is counted")
            console.print()
        render.print_table(console, "Claims", _claims(records))
        console.print(f"report: {files[0]}", style="bold", soft_wrap=True)
        console.print(f"written: {', '.join(map(str, files))}", soft_wrap=True)

    output.show(
        value=lambda: {
            "title": result.title,
            "figures": figures,
            "claims": records,
            "files": list(map(str, files)),
        },
        rows=lambda: records,
        text=text,
    )


def _counts(first: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """How many claims have which verdict, and the sums."""
    sums = [name for name in rows[0] if name != first] if rows else []
    table = render.table(first, *sums)
    for row in rows:
        table.add_row(row[first], *(render.count(row[name]) for name in sums))
    if len(rows) > 1:
        table.add_row("all", *(render.count(sum(row[name] for row in rows)) for name in sums), style="bold")
    return table


def _claims(records: Sequence[Mapping[str, Any]]) -> Table:
    """The claims; those that are not counted say why."""
    keys = ["claim", "paper", "ours", "verdict", *(["apart"] if any(row["apart"] for row in records) else [])]
    heads = ["why it is not counted" if key == "apart" else key for key in keys]
    table = render.table("id", *map(render.prose, heads))
    for row in records:
        table.add_row(row["id"], *(row[key] or "" for key in keys))
    return table


def _show_all(rows: "list[dict[str, Any]]", output: Output) -> None:
    """Prints how each paper's claims have fared, and where its report is."""

    def text(console: Console) -> None:
        counts = [{key: value for key, value in row.items() if key != "report"} for row in rows]
        render.print_table(console, "Verdicts", _counts("paper", counts))
        for row in rows:
            console.print(f"report: {row['report']}", soft_wrap=True)

    output.show(value=lambda: rows, rows=lambda: rows, text=text)


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
    with progress_bar(f"Simulating {name}") as progress:
        result = EXPERIMENTS[name].load().reproduce(only, jobs, repeats, progress, max_repeats)
    return result, result.write(folder)


def _reproduce_all(jobs: int, how_many: tuple[int, int], out: Path) -> "list[dict[str, Any]]":
    """Runs what is not there yet; returns of each paper how its claims fared and where the report is."""
    from ampsched_lab.shared import resuming
    from ampsched_lab.shared.claims.tables import verdict_counts

    made_with = resuming.stamp(*how_many)
    rows = []
    for name, experiment in EXPERIMENTS.items():
        if resuming.is_done(out, name, made_with):
            again = f"{name}: is there already, made by this version with as many seeds"
            render.errors().print(again, soft_wrap=True)
        else:
            _reproduce(name, None, jobs, how_many, out)
            resuming.mark_done(out, name, made_with)
        counts = verdict_counts(resuming.verdicts_of(out / name))
        rows.append({"paper": experiment.paper, **counts, "report": str(out / name / "report.md")})
    return rows
