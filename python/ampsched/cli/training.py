"""``ampsched train``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console

from ampsched import _core
from ampsched._core import DATA_BYTES_MAX, FEATURES_MAX, InputError
from ampsched.cli import options, render
from ampsched.cli.output import Output, with_format
from ampsched.cli.settings import with_settings
from ampsched.files import read_text, shown
from ampsched.settings import CatalogSettings, catalog_of

if TYPE_CHECKING:
    from ampsched.training.rows import TrainingSet
    from ampsched.training.train import Trained

Per = Literal["cycles", "instructions"]
Kind = Literal["linear", "costs", "ridge", "trees"]
EXAMPLES = render.examples(
    "ampsched train --machine 2B2S -o model.json",
    "ampsched train big.parquet little.parquet --big cortex-a15 --little cortex-a7 -o model.json",
    "ampsched compare -m 2B2S -w sync-2 -p cfs,colab --factors predicted:model.json",
)


@with_format
@with_settings(CatalogSettings)
def train(
    tables: Annotated[
        list[Path] | None, typer.Argument(help="Counter tables (see 'ampsched counters import').")
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine",
            "-m",
            metavar="NAME",
            help="Instead of tables: use simulated counters of this machine.",
            autocompletion=options.complete_machine,
        ),
    ] = None,
    big: Annotated[
        str | None,
        typer.Option(
            "--big",
            metavar="TYPE",
            help="core_type of the faster cores in the tables.",
            autocompletion=options.complete_core_type,
        ),
    ] = None,
    little: Annotated[
        str | None,
        typer.Option(
            "--little",
            metavar="TYPE",
            help="core_type of the slower cores.",
            autocompletion=options.complete_core_type,
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Model file to write (.json).")] = Path(
        "model.json"
    ),
    counters: Annotated[
        int,
        typer.Option("--counters", "-k", parser=options.whole, metavar="N", help="Most counters per model."),
    ] = 6,
    per: Annotated[
        Per | None,
        typer.Option("--per", help="Divide counts by cycles, or by instructions as in the papers."),
    ] = None,
    regression: Annotated[
        Kind | None,
        typer.Option(
            "--regression",
            help="linear, ridge, trees (gradient boosting), or costs (cycle accounting). By default costs for big cores, ridge for "
            "little ones; linear if --per is given.",
        ),
    ] = None,
    *,
    settings: CatalogSettings,
    output: Output,
) -> None:
    """Train models that predict speed-ups from performance counters: what a thread gains on a big core.

    One model per kind of core. It reads no more counters than the PMU counts at once; --per or --regression select them
    by principal components, as the papers do. Errors are those on programs left out of the training, beside three
    baselines.
    """
    from ampsched.training import require_sklearn

    require_sklearn()
    from ampsched.training.model import Method
    from ampsched.training.pmu import pmu_of
    from ampsched.training.simulated import simulated_rows
    from ampsched.training.train import model_file, write_model
    from ampsched.training.train import train as train_models

    if not 1 <= counters <= FEATURES_MAX:
        raise InputError(f"--counters {counters} is not within 1 to {FEATURES_MAX}")
    if regression == "costs" and per == "instructions":
        raise InputError("--regression costs counts per cycle; leave out --per instructions")
    named = per is not None or regression is not None
    method = Method(per or "cycles", regression or "linear", counters) if named else None
    if out.suffix != ".json":
        raise InputError(f'--out {out}: a model file ends with ".json"')
    if machine is not None:
        if tables or big or little:
            raise InputError("--machine and counter tables exclude each other")
        catalog = catalog_of(settings)
        found = catalog.machine(machine)
        pmus = {core_type: pmu_of(core_type) for _, core_type, *_ in found.clusters}
        sets = simulated_rows(found, pmus, catalog)
    else:
        if settings.get("catalog") is not None:
            raise InputError("--file adds to the catalogue, which --machine reads; counter tables need none")
        sets = _from_tables(tables or [], big, little)
    models = train_models(sets, method, counters=counters)
    source = shown(machine) if machine else [shown(path) for path in tables or []]
    content = model_file(shown(out.stem), models, {"source": source})
    write_model(out, content)
    # What was written can be read.
    _core.Models.parse(shown(out), read_text(out, DATA_BYTES_MAX))
    output.show(
        value=lambda: content,
        rows=lambda: _rows(models),
        text=lambda console: _print(console, models, out),
    )


def _rows(models: "list[Trained]") -> list[dict[str, Any]]:
    """The errors of each model and of its baselines."""
    return [
        {"core_type": made.rows.core_type, "method": name, **found.to_json()}
        for made in models
        for name, found in {str(made.fitted.method): made.errors, **made.baselines}.items()
    ]


def _from_tables(tables: list[Path], big: str | None, little: str | None) -> "list[TrainingSet]":
    import polars

    from ampsched.counters import read_counters
    from ampsched.training.measured import measured_rows

    if not tables:
        raise InputError("nothing to train from: name counter tables, or --machine")
    if big is None or little is None:
        raise InputError(
            "counter tables need --big and --little: the core_type of the faster and of the slower cores"
        )
    return measured_rows(polars.concat([read_counters(path) for path in tables]), big, little)


def _print(console: Console, models: "list[Trained]", out: Path) -> None:
    for made in models:
        rows = made.rows
        title = (
            f"{rows.core_type}: {made.fitted.method}; {len(rows)} rows of {len(set(rows.groups))} programs"
        )
        render.print_title(console, title)
        console.print(f"reads {', '.join(map(str, made.fitted.features))}", soft_wrap=True, markup=False)
        for note in rows.notes:
            console.print(note, style="dim", soft_wrap=True, markup=False)
        table = render.table("", "mean error %", "95 %", "worst %", "R²", "rank", "labels %", "loss %")
        for name, found in {"model": made.errors, **made.baselines}.items():
            low, high = found.mean_interval
            table.add_row(
                name,
                render.share(found.mean),
                f"{100 * low:.1f} to {100 * high:.1f}",
                render.share(found.worst, 0),
                render.fixed(found.r2, 2),
                render.fixed(found.rank, 2),
                render.share(found.labels, 0),
                render.share(found.loss),
            )
        console.print(table)
        console.print()
    console.print(f"written: {out} (use it with: --factors predicted:{out})", soft_wrap=True, markup=False)
