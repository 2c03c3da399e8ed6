"""Writes what docs/explanation/costs.md says of each mechanism: ``python -m truth.costs [PAGE]``."""

import sys
from pathlib import Path

from truth.costs import devices
from truth.page import replace_region

BEGIN = "<!-- begin: written by make truth-costs -->"
END = "<!-- end: written by make truth-costs -->"
SECTIONS = (devices,)


def main() -> None:
    """Checks all mechanisms, prints what was found, and writes the page if one is named."""
    text = "\n\n".join(part.text() for part in SECTIONS)
    print(text)
    for page in sys.argv[1:]:
        replace_region(Path(page), BEGIN, END, text)


if __name__ == "__main__":
    main()
