"""Judges the machine files of real chips and writes docs/reports/models/silicon.md: ``make -C lab silicon``."""

import argparse
from pathlib import Path

from ampsched_lab.silicon import report
from ampsched_lab.silicon.data import keep
from ampsched_lab.silicon.fit import fit
from ampsched_lab.silicon.judge import judged


def main() -> None:
    """Fits if asked, judges, and writes."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--page", type=Path, required=True)
    options.add_argument("--fit", action="store_true", help="fit anew on the chips that do not judge")
    options.add_argument("--only-page", action="store_true", help="write the page from what was judged")
    arguments = options.parse_args()
    if arguments.fit:
        fit()
    if not arguments.only_page:
        keep("judged", judged())
    report.write(arguments.page)


if __name__ == "__main__":
    main()
