"""Writes the tables of docs/explanation/contention.md: `python -m truth.contention.run`.

A measurement, not a test: nothing fails if the figures differ, and nothing is tuned to make them agree.
"""

import argparse
import tempfile
from pathlib import Path

from truth.contention import bandwidth, l2, smt
from truth.page import replace_region

SECTIONS = {"l2": l2.section, "bandwidth": bandwidth.section, "smt": smt.section}


def main() -> None:
    """Compares, and writes."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--page", type=Path, default=Path("docs/explanation/contention.md"))
    options.add_argument("--only", choices=SECTIONS, action="append", help="only these tables")
    arguments = options.parse_args()
    for name in arguments.only or SECTIONS:
        with tempfile.TemporaryDirectory() as folder:
            text = SECTIONS[name](Path(folder))
        begin = f"<!-- begin: {name}, written by make truth-contention -->"
        replace_region(arguments.page, begin, f"<!-- end: {name} -->", text)
        print(f"{name}\n\n{text}\n")


if __name__ == "__main__":
    main()
