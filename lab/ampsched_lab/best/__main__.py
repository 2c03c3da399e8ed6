"""Writes the report: ``python -m ampsched_lab.best FOLDER``."""

import sys
from pathlib import Path

from ampsched_lab.best.measured import measure, measure_version, write
from ampsched_lab.best.report import write_page

PAGE, VERSION = "--page", "--version"
USAGE = (
    f"error: give the folder for the report, such as docs/reports/best; {PAGE} writes the page only, {VERSION} measures the "
    "policy of this build alone and keeps it in that folder"
)


def main() -> None:
    """Measures, unless only the page is asked for, and writes."""
    options = {each for each in sys.argv[1:] if each.startswith("-")}
    folders = [Path(each) for each in sys.argv[1:] if not each.startswith("-")]
    if len(folders) != 1 or not options <= {PAGE, VERSION} or len(options) > 1:
        sys.exit(USAGE)
    (folder,) = folders
    if VERSION in options:
        measure_version(folder, progress=_tell)
        return
    if not (optimum := folder.parent / "optimum").is_dir():
        sys.exit(f"error: {optimum} is missing: python -m ampsched_lab.optimum {optimum} writes it")
    if PAGE not in options:
        write(folder, measure(progress=_tell))
    write_page(folder)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
