"""Writes the report: ``python -m ampsched.experiments.best FOLDER``."""

import sys
from pathlib import Path

from ampsched.experiments.best.report import measure, write, write_page

USAGE = "error: give the folder for the report, such as docs/reports/best, and --page to write the page only"


def main() -> None:
    """Measures, unless only the page is asked for, and writes."""
    page_only, folders = "--page" in sys.argv[1:], [each for each in sys.argv[1:] if each != "--page"]
    if len(folders) != 1:
        sys.exit(USAGE)
    folder = Path(folders[0])
    if not (optimum := folder.parent / "optimum").is_dir():
        sys.exit(f"error: {optimum} is missing: python -m ampsched.experiments.optimum {optimum} writes it")
    if page_only:
        write_page(folder)
    else:
        write(folder, measure(progress=lambda line: print(line, file=sys.stderr, flush=True)))


if __name__ == "__main__":
    main()
