"""``ampsched import-rtapp``."""

from pathlib import Path
from typing import Annotated

import typer

from ampsched._core import InputError
from ampsched.catalog import Catalog
from ampsched.cli import options, render

EXAMPLES = render.examples("ampsched import-rtapp /usr/share/doc/rt-app/examples/example1.json")


def import_rtapp(
    file: Annotated[Path, typer.Argument(help="An rt-app workload (.json).")],
    json: options.Json = False,
) -> None:
    """Check whether an rt-app workload can be simulated, and say what is honoured differently.

    A key that cannot be honoured is refused by name, never skipped. The file itself is what the other commands take:
    ampsched compare --workload FILE.json
    """
    if file.suffix != ".json":
        raise InputError(f'{file}: rt-app workloads end with ".json"')
    catalog = Catalog.shipped()
    (_, text), *_ = catalog.describe(str(file))
    notes = catalog.notes(str(file))
    if json:
        workload = catalog.workload(str(file))
        threads = sum(count for _, _, count in workload.apps)
        render.print_json({"file": str(file), "threads": threads, "notes": notes, "text": text})
        return
    console = render.console()
    console.print(text, markup=False, soft_wrap=True)
    console.print(
        f"use it with: ampsched compare --machine 2B2S --workload {file}", style="dim", soft_wrap=True
    )
