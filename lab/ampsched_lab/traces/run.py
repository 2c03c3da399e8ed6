"""Judges policies by traces of real chips and writes docs/reports/models/traces.md: ``make -C lab traces``."""

import argparse
import json
from pathlib import Path

from ampsched_lab.traces import report
from ampsched_lab.traces.data import FOLDER
from ampsched_lab.traces.judge import judged


def main() -> None:
    """Judges by a folder's traces, keeps what came out beside them and writes the page."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--folder", type=Path, default=FOLDER, help="traces and traces.toml")
    options.add_argument("--page", type=Path, help="the page to write; the numbers are in judged.json anyway")
    arguments = options.parse_args()
    rows = judged(arguments.folder)
    (arguments.folder / "judged.json").write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    print(report.tables(rows))
    if arguments.page:
        report.write(arguments.page, arguments.folder)


if __name__ == "__main__":
    main()
