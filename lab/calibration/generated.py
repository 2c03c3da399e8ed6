"""Files that a script generates: written, or compared with what is committed."""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path


def replaced(document: Path, name: str, table: str) -> str:
    """A document's text with another table between ``<!-- table NAME -->`` and the next ``<!-- end -->``."""
    mark = f"<!-- table {name} -->"
    before, rest = document.read_text().split(mark, 1)
    return f"{before}{mark}\n{table}\n<!-- end -->{rest.split('<!-- end -->', 1)[1]}"


def command(description: str, outputs: Callable[[], Mapping[Path, str]]) -> int:
    """Command line of a generator: writes its files, or with ``--check`` says which differ.

    Returns:
        Exit code; 1 if a committed file differs.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--check", action="store_true", help="write nothing, compare with the committed files"
    )
    arguments = parser.parse_args()
    files = outputs()
    changed = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    for path in changed:
        if arguments.check:
            print(f"differs: {path}", file=sys.stderr)
        else:
            path.write_text(files[path])
    return 1 if arguments.check and changed else 0
