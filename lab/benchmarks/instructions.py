"""Counts the machine instructions that a dispatch takes, and compares them with what they may be; prints Markdown.

What CPU-bound threads take in a run of twice the length, less what they take in the run: starting is in neither. Counts
of valgrind's callgrind are exact, and the same on every computer with the same compiler, so a limit of 2 % tells what a
change costs where a clock cannot. The exit code is 1 if a policy takes more.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import measure
import run

ROOT = Path(__file__).resolve().parents[2]
MARKERS = ("<!-- instructions: begin -->", "<!-- instructions: end -->")
CORES, THREADS, SIM_MS = 8, 64, 5_000
# What a dispatch took when that was changed last on purpose: by policy.
KNOWN = {"rr": 779, "cfs": 1_167, "eevdf": 2_257, "linux": 1_966, "abreast": 3_279}
TOLERANCE = 0.02


def main() -> int:
    """Builds, counts, prints and judges."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", type=Path, help="Markdown file whose marked part is replaced")
    options = parser.parse_args()
    engine = str(measure.build_example(ROOT, "ampsched-sim", "engine_bench"))
    found = {policy: per_dispatch(engine, policy) for policy in KNOWN}
    text = "\n".join(table(found))
    print(text)
    if options.report:
        run.replace_measured(options.report, text, MARKERS)
    return int(any(exceeds(policy, count) for policy, count in found.items()))


def table(found: dict[str, float]) -> Iterator[str]:
    """The counts beside what they were."""
    yield f"| policy, {CORES} cores, {THREADS} threads | instructions a dispatch | at most |"
    yield "|---|---:|---:|"
    for policy, count in found.items():
        verdict = ": exceeded" if exceeds(policy, count) else ""
        yield f"| `{policy}` | {count:,.0f} | {limit(policy):,.0f}{verdict} |"
    yield ""


def limit(policy: str) -> float:
    """What a dispatch may take."""
    return KNOWN[policy] * (1 + TOLERANCE)


def exceeds(policy: str, count: float) -> bool:
    """Whether it takes more."""
    return count > limit(policy)


def per_dispatch(engine: str, policy: str) -> float:
    """Instructions for each dispatch of the second half of a run."""
    (few, start), (many, end) = (counted(engine, policy, sim_ms) for sim_ms in (SIM_MS, 2 * SIM_MS))
    return (end - start) / (many - few)


def counted(engine: str, policy: str, sim_ms: int) -> tuple[int, int]:
    """Dispatches and instructions of a run."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command += run.hogs(engine, policy, CORES, THREADS, sim_ms)
    try:
        told = subprocess.run(command, check=True, capture_output=True, text=True)
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"instructions.py: {error}; it needs valgrind") from error
    collected = re.search(r"Collected : (\d+)", told.stderr)
    if collected is None:
        raise SystemExit(f"instructions.py: valgrind counted nothing:\n{told.stderr}")
    return int(json.loads(told.stdout)["dispatches"]), int(collected[1])


if __name__ == "__main__":
    sys.exit(main())
