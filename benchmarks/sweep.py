"""How much of a sweep's CPU time is simulating.

    make bench-sweep [SWEEP_SIMULATIONS=100000] [MORE=--check]

A sweep on two processes; user and system time of all processes, from their start to their end, against that within the
core's batch calls. One worker is killed on the way, and what comes out is compared with the bytes of a sweep that is
killed as a whole and goes on (`--check`, which takes twice as long).
"""

import argparse
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REGION = ("<!-- sweep: begin -->", "<!-- sweep: end -->")
WORKERS = 2
POLICIES = ["cfs", "colab:decay=0.5..1.0:24"]
WORKLOADS = ["comm-1", "nsync-1"]
PER_SEED = 2 * 25 * len(WORKLOADS)
"""Core orders, policies, workloads."""


def sweep(folder: Path, simulations: int, log: Path) -> None:
    """The sweep itself, in a process of its own: writes down what its workers use."""
    import ampsched
    from ampsched.sweeps import running

    begin = running._begin

    def timed_begin() -> None:
        begin()
        _time_batches(log)

    running._begin = timed_begin
    _time_batches(log)
    ampsched.sweep("2B2S", WORKLOADS, POLICIES, repeat=simulations // PER_SEED, folder=folder, jobs=WORKERS)


def _time_batches(log: Path) -> None:
    """Writes the CPU time of this process' batch calls into a file of its own after each."""
    from ampsched import _core

    run_batch, used_s = _core.run_batch, 0.0

    def timed(*arguments: object) -> object:
        nonlocal used_s
        before = time.process_time()
        try:
            return run_batch(*arguments)
        finally:
            used_s += time.process_time() - before
            (log / str(os.getpid())).write_text(str(used_s))

    _core.run_batch = timed


def run(folder: Path, simulations: int, kill: str) -> tuple[float, float]:
    """CPU time of all processes and of their batch calls, in s; somebody is killed on the way."""
    log = Path(tempfile.mkdtemp())
    command = [
        sys.executable,
        __file__,
        "--run",
        str(folder),
        "--log",
        str(log),
        "--simulations",
        str(simulations),
    ]
    before = _children_s()
    process = subprocess.Popen(command)
    if kill:
        while not list(log.iterdir()):
            time.sleep(0.1)
        time.sleep(10)
        victims = [int(each.name) for each in log.iterdir() if int(each.name) != process.pid]
        os.kill(victims[0] if kill == "worker" else process.pid, signal.SIGKILL)
    if process.wait() and kill == "coordinator":
        time.sleep(2)
        subprocess.run(command, check=True)
    elif process.returncode:
        sys.exit(f"the sweep failed: {process.returncode}")
    batches_s = sum(float(each.read_text()) for each in log.iterdir())
    shutil.rmtree(log)
    return _children_s() - before, batches_s


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--simulations", type=int, default=100_000)
    arguments.add_argument("--report", type=Path)
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("--run", type=Path, help=argparse.SUPPRESS)

    arguments.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.run:
        sweep(given.run, given.simulations, given.log)
        return
    with tempfile.TemporaryDirectory() as folder:
        text = measured(
            *run(Path(folder) / "a", given.simulations, "worker" if given.check else ""), given.simulations
        )
        print(text, flush=True)
        if given.report:
            from run import replace_measured

            replace_measured(given.report, text, REGION)
        if given.check:
            run(Path(folder) / "b", given.simulations, "coordinator")
            tables = [(Path(folder) / name / "table.parquet").read_bytes() for name in "ab"]
            if tables[0] != tables[1]:
                sys.exit("a sweep whose worker was killed and one that was killed as a whole differ")
            print("the same bytes after a killed worker and after a killed sweep")


def measured(all_s: float, batches_s: float, simulations: int) -> str:
    """What is reported."""
    share = 100 * batches_s / all_s
    return (
        f"{simulations // PER_SEED * PER_SEED:,} simulations (`comm-1` and `nsync-1` on `2B2S`, 25 policies) on two\n"
        f"processes: {share:.1f} % of the CPU time of all processes ({all_s:,.0f} s) is simulating, baselines included.\n"
        f"Target: at least 90 %: {'reached' if share >= 90 else 'missed'}."
    )


if __name__ == "__main__":
    main()
