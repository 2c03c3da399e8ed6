"""``ampsched calibrate``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ampsched._core import InputError
from ampsched.cli import options, render
from ampsched.cli.output import Output, with_format
from ampsched.cli.progress import progress_bar

if TYPE_CHECKING:
    from ampsched.calibration.calibrate import Calibration

EXAMPLES = render.examples(
    "ampsched calibrate --out my-board", "ampsched compare -m my-board/machine.toml -w fft"
)
WINDOW_MS_MAX, WINDOWS_MAX = 10_000.0, 1000


@with_format
def calibrate(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder for the results.")
    ] = Path("calibration"),
    window_ms: Annotated[
        float,
        typer.Option(
            "--window-ms",
            parser=options.number,
            metavar="MS",
            help="Approximate CPU time of each measurement.",
        ),
    ] = 50.0,
    windows: Annotated[
        int,
        typer.Option(
            "--windows", parser=options.whole, metavar="N", help="Measurements per kernel and kind of core."
        ),
    ] = 5,
    *,
    output: Output,
) -> None:
    """Measure this computer's cores and counters: kinds of cores, and their speed on small kernels.

    Writes a machine file, speeds, a counter table and, if there are cores of several speeds and a PMU, a model. Pins
    itself to one CPU of each kind; changes nothing else. Other programs that run meanwhile make the results worse.
    """
    from ampsched.calibration.calibrate import calibrate as measure

    if not 0 < window_ms <= WINDOW_MS_MAX:
        raise InputError(f"--window-ms {window_ms:g} is not above 0 and at most {WINDOW_MS_MAX:g}")
    if not 1 <= windows <= WINDOWS_MAX:
        raise InputError(f"--windows {windows} is not within 1 to {WINDOWS_MAX}")
    with progress_bar("Measuring") as step:
        found = measure(out, window_ms=window_ms, windows=windows, step=step)
    output.show(
        value=lambda: {
            "kinds": {kind.name: list(kind.cpus) for kind in found.kinds},
            "speeds": found.speeds.to_dicts(),
            "counters": found.counters,
            "written": list(map(str, found.files)),
            "not_measured": found.missing,
        },
        rows=found.speeds.to_dicts,
        text=lambda console: _print(console, found),
    )


def _print(console: Console, found: "Calibration") -> None:
    import polars

    table = render.table("million rounds/s", *(kind.name for kind in found.kinds))
    for (kernel,), rows in found.speeds.group_by(["kernel"], maintain_order=True):
        by_kind = dict(rows.select("kind", polars.col("rounds_per_s") / 1e6).rows())
        table.add_row(str(kernel), *(render.thousands(by_kind[kind.name]) for kind in found.kinds))
    console.print(table)
    console.print(f"counters: {', '.join(found.counters) or 'none'}", soft_wrap=True)
    for note in found.missing:
        console.print(f"not measured: {note}", soft_wrap=True, markup=False)
    console.print(f"written: {', '.join(map(str, found.files))}", soft_wrap=True, markup=False)
