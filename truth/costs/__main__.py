"""Writes what docs/explanation/costs.md says of each mechanism: ``python -m truth.costs [PAGE]``.

What was measured is kept in docs/reports/truth/costs; ``--measure FOLDER`` measures anew with the compiled programs of
a folder.
"""

import argparse
from pathlib import Path

from truth.costs import devices, handover, power, refill, spins, windows
from truth.page import replace_region

BEGIN = "<!-- begin: written by make truth-costs -->"
END = "<!-- end: written by make truth-costs -->"
SECTIONS = (spins, devices, windows, handover, refill, power)


def main() -> None:
    """Checks all mechanisms, prints what was found, and writes the page if one is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path, nargs="?", help="page in which the tables are replaced")
    parser.add_argument("--measure", type=Path, help="folder of the compiled C programs; measures anew")
    arguments = parser.parse_args()
    if arguments.measure:
        spins.keep(arguments.measure / "spins")
        windows.keep(arguments.measure / "tasks")
        refill.keep(arguments.measure / "migrate")
    text = "\n\n".join(part.text() for part in SECTIONS)
    print(text)
    if arguments.page:
        replace_region(arguments.page, BEGIN, END, text)


if __name__ == "__main__":
    main()
