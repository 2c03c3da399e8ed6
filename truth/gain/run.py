"""Measures what COLAB gains over other schedulers in a real kernel, simulates the same, and writes docs/reports/live.

A measurement, not a test: nothing fails if the figures differ, and nothing is tuned to make them agree.
"""

import argparse
from pathlib import Path

from truth.gain import measure, report
from truth.gain.mixes import MIXES


def main() -> None:
    """Measures, unless told to take what was measured before, and reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, required=True, help="folder of the compiled C programs")
    parser.add_argument("--schedulers", type=Path, nargs="+", required=True, help="folders of their programs")
    parser.add_argument("--out", type=Path, required=True, help="folder of the report")
    parser.add_argument("--rounds", type=int, default=10, help="repetitions (default 10; some 3 min each)")
    parser.add_argument(
        "--first", type=int, default=1, help="number of the first round, the seed of its orders"
    )
    parser.add_argument("--add", action="store_true", help="add the rounds to those of the last measurement")
    parser.add_argument(
        "--only-report", action="store_true", help="make the report anew from the last measurement"
    )
    arguments = parser.parse_args()
    data = arguments.out / "measured.json"
    boots, runs, notes = [], [], []
    if arguments.add or arguments.only_report:
        boots, runs, notes = measure.from_json(data.read_text(encoding="utf-8"))
    if not arguments.only_report:
        rounds = range(arguments.first, arguments.first + arguments.rounds)
        schedulers = measure.find_schedulers(arguments.schedulers)
        more = measure.measure(MIXES, rounds, arguments.programs, schedulers)
        boots, runs, notes = boots + more[0], runs + more[1], notes + more[2]
        arguments.out.mkdir(parents=True, exist_ok=True)
        data.write_text(measure.to_json(boots, runs, notes), encoding="utf-8")
    report.write(arguments.out, MIXES, boots, runs, notes)
    print(f"wrote {arguments.out / 'report.md'}")


if __name__ == "__main__":
    main()
