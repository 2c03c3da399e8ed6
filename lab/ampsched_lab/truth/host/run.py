"""Compares simulations with real programs on this computer's kernel; see docs/explanation/truth.md.

A measurement, not a test: nothing fails if the figures differ, and nothing is tuned to make them agree. What was
measured is kept in --results; without --measure only the simulations are made again.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from statistics import mean, median

from ampsched import Catalog, InputError, _core
from ampsched.markdown import page
from ampsched_lab.shared import summaries
from ampsched_lab.truth.host import measure
from ampsched_lab.truth.host.measure import Host, Run
from ampsched_lab.truth.host.report import INTRODUCTION, Pair, text_of
from ampsched_lab.truth.host.scenarios import SCENARIOS
from ampsched_lab.truth.pairs.machine import Costs, machine_file
from ampsched_lab.truth.pairs.simulated import Simulator
from ampsched_lab.truth.pairs.workloads import Workload

REPETITIONS = 5
SEEDS = 8
"""Simulations of a scenario: a kernel leaves to chance whether a core that falls idle looks for threads."""
MACHINE = "sym-2"
MHZ = 3000.0
"""Of the machine's file. Work is stated in time, so any number would do."""
COSTS, RUNS = "costs.json", "runs.json"


def policy_of(host: Host) -> str:
    """What stands for the scheduler of a computer: the last generation that is not younger than its kernel."""
    row = next(row for row in _core.policies() if row["name"] == "linux")
    versions = next(param["one_of"] for param in row["params"] if param["name"] == "kernel")
    own = _parts(host.kernel)
    older = [version for version in versions if version > 0 and _parts(f"{version:g}") <= own]
    if not older:
        sys.exit(f"Linux {host.kernel} is older than every generation of the policy linux")
    newest = max(older, key=lambda version: _parts(f"{version:g}"))
    return f"linux:kernel={newest:g}:hz={host.hz}:lazy={int(host.preemption == 'lazy')}"


def _parts(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def measure_all(folder: Path, results: Path, cpus: Sequence[int], patience_s: float) -> None:
    """Measures costs and all scenarios, and keeps what was found."""
    host = measure.host()
    costs = measure.costs(folder, cpus, host.tick_ns, REPETITIONS, patience_s)
    runs = {
        scenario.name: [
            asdict(run) for run in measure.measure(folder, scenario, cpus, REPETITIONS, patience_s)
        ]
        for scenario in SCENARIOS
    }
    day = datetime.now().astimezone().date().isoformat()
    results.mkdir(parents=True, exist_ok=True)
    costs.save(results / COSTS)
    text = json.dumps({"day": day, "host": asdict(host), "runs": runs}, indent=1)
    (results / RUNS).write_text(text + "\n", "utf-8")


def simulate(folder: Path, scenario: Workload, costs: Costs, ns_per_iteration: float, policy: str) -> Run:
    """A scenario in the simulator: means over all seeds."""
    machine = Catalog.shipped().machine(MACHINE)
    path = folder / "host.toml"
    path.write_text(machine_file("host", "this computer", machine, [MHZ], costs), "utf-8")
    simulator = Simulator(folder, path, ns_per_iteration, 1.0, costs.start_us)
    turnarounds_ns, switches = [], []
    for seed in range(1, SEEDS + 1):
        outcome = simulator.outcome(scenario, [0], policy, seed)
        _main, *own = outcome.threads
        turnarounds_ns.append(outcome.makespan_ns - min(thread.start_ns for thread in own))
        switches.append(sum(thread.voluntary + thread.involuntary for thread in own))
    return Run(round(mean(turnarounds_ns)), ns_per_iteration, round(mean(switches)), 0.0)


def compare(results: Path) -> str:
    """The page's part: what was measured beside simulations that are made now."""
    kept = json.loads((results / RUNS).read_text("utf-8"))
    host, costs = Host(**kept["host"]), Costs.load(results / COSTS)
    policy = policy_of(host)
    plain = costs.without("wakeup_latency_ns", "wake_ns")
    pairs = []
    with tempfile.TemporaryDirectory(prefix="ampsched-host-") as name:
        for scenario in SCENARIOS:
            real = median_of([Run(**run) for run in kept["runs"][scenario.name]])
            ours, free = (
                simulate(Path(name), scenario, each, real.ns_per_iteration, policy) for each in (costs, plain)
            )
            pairs.append(Pair(scenario, real, ours, free))
    return text_of(pairs, host, costs, policy, kept["day"], REPETITIONS)


def median_of(runs: Sequence[Run]) -> Run:
    """The medians of every figure, each taken by itself; the most that others took."""
    return Run(
        round(median(run.turnaround_ns for run in runs)),
        median(run.ns_per_iteration for run in runs),
        round(median(run.switches for run in runs)),
        max(run.foreign for run in runs),
    )


def main() -> None:
    """Measures, simulates, prints and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, required=True, help="folder of the compiled C programs")
    parser.add_argument("--results", type=Path, required=True, help="folder of what is measured")
    parser.add_argument("--measure", action="store_true", help="measure anew on this computer")
    parser.add_argument("--report", type=Path, help="page that is written")
    parser.add_argument("--cpus", default="0,1", help="the two CPUs to use (default %(default)s)")
    parser.add_argument(
        "--patience",
        type=float,
        default=60,
        help="seconds to wait for an idle computer before each run (default %(default)s)",
    )
    arguments = parser.parse_args()
    try:
        cpus = _core.parse_cpus("--cpus", arguments.cpus)
    except InputError as error:
        parser.error(str(error))
    if len(cpus) != 2 or not set(cpus) <= os.sched_getaffinity(0):
        parser.error(f"--cpus {arguments.cpus}: two CPUs that this process may use are needed")
    if arguments.measure or not (arguments.results / RUNS).exists():
        measure_all(arguments.programs, arguments.results, cpus, arguments.patience)
    text = compare(arguments.results)
    print(text)
    if arguments.report:
        whole = page("# The kernel of a computer as it is", INTRODUCTION, text)
        summaries.write(arguments.report, whole, summaries.kind_of(Path("host.md")))


if __name__ == "__main__":
    main()
