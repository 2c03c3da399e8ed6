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
    parser.add_argument("--boots", type=int, default=4, help="boots, each with its own orders (default 4)")
    parser.add_argument(
        "--repetitions", type=int, default=3, help="rounds per boot (default 3; some 2 min each)"
    )
    parser.add_argument(
        "--first", type=int, default=1, help="number of the first round, a seed of the orders"
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
        schedulers = measure.find_schedulers(arguments.schedulers)
        arguments.out.mkdir(parents=True, exist_ok=True)
        for boot in range(arguments.boots):
            begin = arguments.first + boot * arguments.repetitions
            rounds = list(range(begin, begin + arguments.repetitions))
            print(f"boot {boot + 1} of {arguments.boots}: rounds {rounds}", flush=True)
            measured, more, said = measure.measure(MIXES, rounds, arguments.programs.resolve(), schedulers)
            boots, runs, notes = [*boots, measured], runs + more, notes + said
            data.write_text(measure.to_json(boots, runs, notes), encoding="utf-8")
    report.write(arguments.out, MIXES, boots, runs, notes)
    print(f"wrote {arguments.out / 'report.md'}")


if __name__ == "__main__":
    main()
