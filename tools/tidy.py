"""Checks texts for what no formatter looks at: white space at ends of lines, the last line's end, marks of conflicts.

``python tools/tidy.py [--fix] FILE...``; exit code 1 if something was, or is, wrong.
"""

import argparse
import re
import sys
from pathlib import Path

CONFLICT = re.compile(r"^(?:<{7} |>{7} |={7}$)", re.MULTILINE)


def tidied(text: str) -> str:
    """The text without white space at ends of lines, with one end of line at its end."""
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    body = "\n".join(lines).rstrip("\n")
    return f"{body}\n" if body else ""


def problems(text: str) -> list[str]:
    """What is wrong with a text, each with its line."""
    found = [
        f"{text.count(chr(10), 0, mark.start()) + 1}: mark of a conflict" for mark in CONFLICT.finditer(text)
    ]
    for number, line in enumerate(text.split("\n"), 1):
        if line != line.rstrip():
            found.append(f"{number}: white space at the end of the line")
    if text and (not text.endswith("\n") or text.endswith("\n\n")):
        found.append(f"{text.count(chr(10)) + 1}: the file does not end with one end of line")
    return found


def main() -> int:
    """Checks the files of the command line, or mends them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fix", action="store_true", help="mend what can be mended")
    parser.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    wrong = False
    for file in options.files:
        text = file.read_bytes().decode("utf-8")
        for problem in problems(text):
            wrong = True
            print(f"{file}:{problem}")
        if options.fix and tidied(text) != text:
            file.write_text(tidied(text), encoding="utf-8", newline="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
