"""Writes docs/reports/truth/costs.md, a section per mechanism: ``python -m ampsched_lab.truth.costs [PAGE]``.

What was measured is kept in docs/reports/truth/costs; ``--measure FOLDER`` measures anew with the compiled programs of
a folder.
"""

import argparse
from pathlib import Path

from ampsched.markdown import page
from ampsched_lab.shared import summaries
from ampsched_lab.truth.costs import devices, handover, power, refill, spins, windows

HEAD = """\
# Costs beside measurements

Written by `make -C lab truth-costs`. Each mechanism beside figures that did not set it: published ones, queueing theory, exact
virtual machines, or the computer on which the command ran. The aim is an error of at most 10 %.
[Costs](../../explanation/costs.md) explains the mechanisms."""
SECTIONS = (spins, devices, windows, handover, refill, power)


def main() -> None:
    """Checks all mechanisms, prints what was found, and writes the page if one is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path, nargs="?", help="page that is written")
    parser.add_argument("--measure", type=Path, help="folder of the compiled C programs; measures anew")
    arguments = parser.parse_args()
    if arguments.measure:
        spins.keep(arguments.measure / "spins")
        windows.keep(arguments.measure / "tasks")
        refill.keep(arguments.measure / "migrate")
    text = "\n\n".join(part.text() for part in SECTIONS)
    print(text)
    if arguments.page:
        summaries.write(arguments.page, page(HEAD, text), summaries.kind_of(Path("costs.md")))


if __name__ == "__main__":
    main()
