#!/usr/bin/env python3
"""Fits all program models to the recordings.

    python lab/calibration/fit/fit.py            writes the program and workload files and the tables, prints the tables
    python lab/calibration/fit/fit.py --check    compares with the committed files instead; exit code 1 if they differ
    python lab/calibration/fit/fit.py fft radix  only these programs, no tables

Needs numpy and zstandard. Deterministic: the same recordings give the same bytes.
"""

import argparse
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import barrier_programs
import pipelines
import pool_programs
import report
import simple_programs
import workloads
from model import Fitted

DATA = Path(__file__).resolve().parents[3] / "python" / "ampsched" / "data"

FITS: dict[str, Callable[[], Fitted]] = {
    "blackscholes": simple_programs.blackscholes,
    "bodytrack": pool_programs.bodytrack,
    "dedup": pipelines.dedup,
    "ferret": pipelines.ferret,
    "freqmine": pool_programs.freqmine,
    "swaptions": simple_programs.swaptions,
    **{subject.name: partial(barrier_programs.fit, subject) for subject in barrier_programs.SUBJECTS},
    "mcf": simple_programs.mcf,
    "bzip2": simple_programs.bzip2,
}
"""The programs, each with its fit."""


def outputs(fits: Iterable[Fitted]) -> dict[Path, str]:
    """Program files by path."""
    return {DATA / "programs" / f"{fitted.name}.toml": fitted.text for fitted in fits}


def workload_files() -> dict[Path, str]:
    """Workload files by path."""
    return {DATA / "workloads" / f"{name}.toml": text for name, text in workloads.files().items()}


def differing(files: dict[Path, str]) -> list[Path]:
    """Files that are missing or whose content is another."""
    return [path for path, text in files.items() if not path.exists() or path.read_text() != text]


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description="Fit the program models to the recordings.")
    parser.add_argument("programs", nargs="*", choices=[[], *FITS], help="only these, without tables")
    parser.add_argument(
        "--check", action="store_true", help="write nothing, compare with the committed files"
    )
    arguments = parser.parse_args()
    fits = [FITS[name]() for name in arguments.programs or FITS]
    files = outputs(fits)
    if not arguments.programs:
        files |= workload_files()
        tables = report.tables([report.compare(fitted) for fitted in fits])
        print("\n\n".join(tables.values()))
        files[report.DOCUMENT] = report.fill_in(report.DOCUMENT.read_text(), tables)
    changed = differing(files)
    if arguments.check:
        for path in changed:
            print(f"differs: {path}", file=sys.stderr)
        return 1 if changed else 0
    for path in changed:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
