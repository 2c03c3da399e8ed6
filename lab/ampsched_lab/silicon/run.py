"""Judges the machine files of real chips and writes docs/reports/models/silicon.md: ``make -C lab silicon``."""

import argparse
import sys
from pathlib import Path

from ampsched_lab.silicon import report
from ampsched_lab.silicon.data import SHIPPED, keep, kept
from ampsched_lab.silicon.fit import fit
from ampsched_lab.silicon.judge import judged
from ampsched_lab.silicon.machines import write


def main() -> None:
    """Writes the machine files, fits if asked, judges, and writes what came out."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--page", type=Path, required=True)
    options.add_argument("--fit", action="store_true", help="fit anew on the chips that do not judge")
    options.add_argument("--only-page", action="store_true", help="write the page from what was judged")
    arguments = options.parse_args()
    if not arguments.only_page:
        # What is judged is what is shipped, so that is written before, and with what came out behind it.
        write(SHIPPED)
        if arguments.fit:
            share = kept("fitted").get("memory_share")
            fit()
            if kept("fitted")["memory_share"] != share:
                sys.exit("the memory's share has changed, and with it machine files: judge without --fit")
        keep("judged", judged())
        write(SHIPPED)
    report.write(arguments.page)


if __name__ == "__main__":
    main()
