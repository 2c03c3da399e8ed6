"""``ampsched counters``."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ampsched import counters
from ampsched._core import InputError
from ampsched.cli import options, render
from ampsched.cli.output import Output, with_format

app = typer.Typer(
    help="Read performance counters of gem5, perf and others as one table.", no_args_is_help=True
)
IMPORT_EXAMPLES = render.examples(
    "ampsched counters import m5out/stats.txt --from gem5 --program mcf --core-type ex5_big -o mcf.parquet",
    "ampsched counters import perf.csv --from perf -o mcf.parquet   (written by: perf stat -x, -I 100 -o perf.csv)",
)
LIST_EXAMPLES = render.examples("ampsched counters list")


@app.command("import", epilog=IMPORT_EXAMPLES)
@with_format
def import_files(
    files: Annotated[list[Path], typer.Argument(help="Files of one kind.")],
    source: Annotated[
        counters.Source, typer.Option("--from", help="What wrote the files; csv has one column per counter.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Table to write: .parquet, or .csv.")],
    program: Annotated[
        str | None,
        typer.Option("--program", metavar="NAME", help="What ran, if the file does not say so."),
    ] = None,
    core_type: Annotated[
        str | None,
        typer.Option(
            "--core-type",
            metavar="TYPE",
            help="Type of the cores, if the file does not say so.",
            autocompletion=options.complete_core_type,
        ),
    ] = None,
    *,
    output: Output,
) -> None:
    """Read counters that other programs wrote into one table with units and sources."""
    import polars

    if out.suffix not in (".parquet", ".csv"):
        raise InputError(f'--out {out}: the table ends with ".parquet" or ".csv"')
    tables = [counters.import_counters(file, source, program=program, core_type=core_type) for file in files]
    table = polars.concat(tables)
    counters.write_counters(table, out)
    named = {counter.name for counter in counters.vocabulary()}
    other = sorted(set(table["counter"].to_list()) - named)
    summary = {
        "rows": table.height,
        "windows": table.select("file", "window").n_unique(),
        "counters": table["counter"].n_unique(),
        "outside_vocabulary": other,
        "written": str(out),
    }

    def text(console: Console) -> None:
        what = f"{summary['rows']} readings of {summary['counters']} counters in {summary['windows']} windows"
        console.print(f"{what}, written to {out}", soft_wrap=True)
        if other:
            console.print(f"kept under their own names: {', '.join(other)}", style="dim", soft_wrap=True)

    output.show(value=lambda: summary, rows=lambda: [summary], text=text)


@app.command("list", epilog=LIST_EXAMPLES)
@with_format
def list_counters(*, output: Output) -> None:
    """List the counters that have a name of their own, with units."""
    rows = [{"name": row.name, "unit": row.unit, "help": row.help} for row in counters.vocabulary()]
    table = render.table("counter", "unit", render.prose(""))
    for row in rows:
        table.add_row(*row.values())
    output.show(value=lambda: rows, rows=lambda: rows, text=lambda console: console.print(table))
