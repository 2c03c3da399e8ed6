"""Compares simulations with real programs on this computer's kernel; see docs/explanation/truth.md.

A measurement, not a test: nothing fails if the figures differ, and nothing is tuned to make them agree.
"""

import argparse
import os
import sys
from datetime import datetime
from pathlib import Path

from ampsched._core import InputError, parse_cpus
from truth import measure, report, simulated
from truth.scenarios import SCENARIOS

REPETITIONS = 5


def main() -> None:
    """Measures, simulates, prints and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, required=True, help="folder of the compiled C programs")
    parser.add_argument("--report", type=Path, help="page in which the tables are replaced")
    parser.add_argument("--cpus", default="0,1", help="the two CPUs to use (default 0,1)")
    parser.add_argument("--only", help="a single scenario")
    parser.add_argument(
        "--patience", type=float, default=60, help="seconds to wait for an idle computer before each run"
    )
    arguments = parser.parse_args()
    try:
        cpus = parse_cpus("--cpus", arguments.cpus)
    except InputError as error:
        sys.exit(str(error))
    if len(cpus) != 2 or not set(cpus) <= os.sched_getaffinity(0):
        sys.exit(f"--cpus {arguments.cpus}: two CPUs that this process may use are needed")

    patience_s = arguments.patience
    wakeup_ns = measure.wakeup_ns(arguments.programs, cpus, REPETITIONS, patience_s)
    machine = simulated.machine_with_wakeup(arguments.programs, wakeup_ns)
    pairs = []
    for scenario in SCENARIOS:
        if arguments.only in (None, scenario.name):
            runs = measure.measure(arguments.programs, scenario, cpus, REPETITIONS, patience_s)
            real = measure.median_run(runs)
            ours = simulated.simulate(arguments.programs, scenario, real.ns_per_iteration)
            with_wakeup = simulated.simulate(arguments.programs, scenario, real.ns_per_iteration, machine)
            pairs.append(report.Pair(scenario, real, ours, with_wakeup))
    if not pairs:
        sys.exit(
            f"--only {arguments.only}: there is no such scenario ({', '.join(each.name for each in SCENARIOS)})"
        )
    text = report.tables(pairs, measure.host(), wakeup_ns, datetime.now().astimezone().date(), REPETITIONS)
    print(text)
    if arguments.report and arguments.only is None:
        report.replace_tables(arguments.report, text)


if __name__ == "__main__":
    main()
