"""Writes the report: ``python -m ampsched_lab.optimum FOLDER``."""

import sys
from pathlib import Path

from ampsched_lab.optimum.report import write

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("error: give the folder for the report, such as docs/reports/optimum")
    write(Path(sys.argv[1]), lambda line: print(line, file=sys.stderr, flush=True))
