"""Measures how long the command line takes to begin, as a multiple of an interpreter that does nothing.

Every program runs in turn, in the same rounds; the time is that of the clock, as a user waits for it.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from run import replace_measured, verdict

from ampsched.markdown import wrapped

MARKERS = ("<!-- start-up: begin -->", "<!-- start-up: end -->")
TARGET = 3.0
BARE = "python -c pass"
JUDGED = ("ampsched --version", "ampsched --help")
WORDS = {
    BARE: [sys.executable, "-c", "pass"],
    **{
        line: [sys.executable, "-c", "from ampsched.cli import main; main()", *line.split()[1:]]
        for line in (*JUDGED, "ampsched simulate --help")
    },
    "import ampsched": [sys.executable, "-c", "import ampsched"],
}


def main() -> None:
    """Prints the table, or writes it into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50, help="rounds (50)")
    parser.add_argument("--report", type=Path, help="Markdown file whose measured part is replaced")
    options = parser.parse_args()
    text = wrapped(table(measured(options.rounds)))
    print(text)
    if options.report:
        replace_measured(options.report, text, MARKERS)


def measured(rounds: int) -> dict[str, list[float]]:
    """Seconds of each program in each round, after one that fills the caches."""
    found: dict[str, list[float]] = {name: [] for name in WORDS}
    environment = {**os.environ, "COLUMNS": "80"}
    for number in range(rounds + 1):
        for name, words in WORDS.items():
            start_s = time.perf_counter()
            subprocess.run(words, env=environment, stdout=subprocess.DEVNULL, check=True)
            if number:
                found[name].append(time.perf_counter() - start_s)
    return found


def table(found: dict[str, list[float]]) -> str:
    """Means, and how many times as long as nothing they take."""
    bare_s = statistics.fmean(found[BARE])
    lines = ["| command | ms | times `python -c pass` | target |", "|---|---|---|---|"]
    for name, all_s in found.items():
        ratio = statistics.fmean(all_s) / bare_s
        aim = f"<= {TARGET:g}: {verdict(ratio <= TARGET)}" if name in JUDGED else ""
        lines.append(f"| `{name}` | {1000 * statistics.fmean(all_s):.0f} | {ratio:.1f} | {aim} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
