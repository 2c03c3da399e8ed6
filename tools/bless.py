"""Writes generated files that are committed anew and shows what changed: ``make bless``, ``make bless ONLY=golden``.

What is generated, how, and how to read its differences is in tools/generated.toml; nothing is committed.
"""

import argparse
import shlex
import subprocess
import sys
import textwrap
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tools/generated.toml"
FRESH = "FRESH"


@dataclass(frozen=True)
class Generated:
    """A row of the list; its fields are described there."""

    name: str
    files: tuple[str, ...]
    command: str
    read: str
    asked: bool = False

    def changed(self) -> list[str]:
        """Its files that differ from the last commit, new ones included."""
        return git("status", "--porcelain", "--untracked-files=all", "--", *self.pathspecs()).splitlines()

    def pathspecs(self) -> list[str]:
        """The patterns for git; a star does not cross a slash."""
        return [f":(glob){pattern}" for pattern in self.files]


def generated(text: str) -> list[Generated]:
    """The rows of the list."""
    rows = tomllib.loads(text)["generated"]
    return [Generated(**{**row, "files": tuple(row["files"])}) for row in rows]


def git(*arguments: str) -> str:
    """What git prints."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout


def chosen(rows: list[Generated], only: list[str]) -> list[Generated]:
    """The rows of these names, or those that need not be asked for."""
    names = [row.name for row in rows]
    for name in only:
        if name not in names:
            sys.exit(f'error: nothing generated is called "{name}" (known: {", ".join(names)})')
    return [row for row in rows if (row.name in only if only else not row.asked)]


def write(row: Generated, fresh: str) -> bool:
    """Writes the files of a row; returns whether that worked."""
    print(f"==> {row.name}: {row.command}", flush=True)
    command = " ".join(fresh if word == FRESH else word for word in row.command.split())
    return subprocess.run(["sh", "-c", command], cwd=ROOT, check=False).returncode == 0


def report(row: Generated) -> None:
    """Shows what differs from the last commit, and how to read it."""
    lines = row.changed()
    if not lines:
        print(f"\n{row.name}: nothing differs from the last commit")
        return
    print(f"\n{row.name}:")
    print(git("diff", "--stat", "HEAD", "--", *row.pathspecs()).rstrip())
    for new in (line[3:] for line in lines if line.startswith("??")):
        print(f" {new} (new)")
    print(textwrap.indent(row.read.strip(), "   "))


def main() -> int:
    """Runs what the options ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fresh", default=sys.executable, help="Python that has the checkout's package")
    parser.add_argument("--list", action="store_true", help="say what is generated, and how")
    parser.add_argument("only", nargs="*", help="names; by default all that need not be asked for")
    options = parser.parse_args()
    rows = generated(LIST.read_text(encoding="utf-8"))
    if options.list:
        for row in rows:
            print(f"{row.name:14} {'asked  ' if row.asked else ''}{shlex.join(row.files)}\n    {row.command}")
        return 0
    todo = chosen(rows, options.only)
    failed = [row.name for row in todo if not write(row, options.fresh)]
    for row in todo:
        report(row)
    if any(row.changed() for row in todo):
        print(
            "\nRead the differences (git diff --word-diff) before you commit them; each has a reason or is a mistake."
        )
    rest = [row.name for row in rows if row not in todo]
    if not options.only:
        print(f"\nOnly when asked for (make bless ONLY=...): {', '.join(rest)}.")
    if failed:
        print(f"error: {', '.join(failed)}: failed, see above", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
