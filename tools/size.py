"""How large the checkout is, by room: ``python tools/size.py [COMMIT]``.

Lines are those of sources (Rust, Python, C, shell, TOML, templates); generated and vendored files count as bytes only.
A Rust module `mod tests` inside a source file counts with the source.
"""

import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = re.compile(r"\.(rs|pyi?|c|h|cpp|sh|toml|m?js|css|html|j2|proto)$|(^|/)Makefile$|^\.ci/run$")
NO_SOURCE = re.compile(r"/vendor/|^packaging/|^lab/data/|^docs/reference/")
ROOMS = (
    (
        "laboratory",
        re.compile(r"^(lab|truth|calibration|benchmarks|docs/reports|python/ampsched/experiments)/"),
    ),
    ("tests", re.compile(r"^(tests|fuzz)/|/tests/|/tests\.rs$")),
    ("examples", re.compile(r"/examples/|^docs/")),
    ("shipped data", re.compile(r"^python/ampsched/data/")),
    ("product", re.compile(r"")),
)
"""The first whose pattern fits a path has it."""


@dataclass(slots=True)
class Size:
    """What a commit tracks."""

    files: int = 0
    size_bytes: int = 0
    lines: Counter[str] = field(default_factory=Counter)
    """Of sources, by room."""


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout


def room_of(path: str) -> str:
    """The room that a tracked file belongs to."""
    return next(name for name, pattern in ROOMS if pattern.search(path))


def measure(commit: str = "HEAD") -> Size:
    """The size of a commit."""
    size = Size()
    listed = _git("ls-tree", "-r", "-z", "--long", commit).split(b"\0")
    sources: list[tuple[str, str]] = []
    for entry in filter(None, listed):
        facts, _, name = entry.partition(b"\t")
        _mode, _kind, blob, length = facts.split()
        path = name.decode("utf-8", "surrogateescape")
        size.files += 1
        size.size_bytes += int(length)
        if SOURCE.search(path) and not NO_SOURCE.search(path):
            sources.append((blob.decode(), path))
    asked = "".join(f"{blob}\n" for blob, _ in sources).encode()
    texts = subprocess.run(
        ["git", "cat-file", "--batch"], cwd=ROOT, input=asked, capture_output=True, check=True
    ).stdout
    at = 0
    for _, path in sources:
        end = texts.index(b"\n", at)
        length = int(texts[at:end].split()[2])
        size.lines[room_of(path)] += texts.count(b"\n", end + 1, end + 1 + length)
        at = end + 1 + length + 1
    return size


def main() -> None:
    """Prints the table."""
    size = measure(*sys.argv[1:2])
    for name, _ in ROOMS:
        print(f"{name:<14}{size.lines[name]:>9,} lines")
    print(f"{'tracked files':<14}{size.files:>9,}")
    print(f"{'tracked size':<14}{size.size_bytes / 1e6:>9.1f} MB")


if __name__ == "__main__":
    main()
