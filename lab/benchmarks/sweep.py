"""How much of a sweep's CPU time is simulating, and what is left if somebody is killed.

    make -C lab bench-sweep [SWEEP_SIMULATIONS=100000]

The same sweep three times, each into a folder of its own: on two processes; on two, where a worker is killed after a
third of it and the whole sweep after two thirds, which then goes on; and in one process. All three must leave the same
bytes. Reported is user and system time of all processes, from their start to their end, against that within the core's
batch calls.
"""

import argparse
import ctypes
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

REGION = ("<!-- sweep: begin -->", "<!-- sweep: end -->")
WORKERS = 2
POLICIES = ["cfs", "colab:decay=0.5..1.0:24"]
WORKLOADS = ["comm-1", "nsync-1"]
PER_SEED = 2 * 25 * len(WORKLOADS)
"""Core orders, policies, workloads."""
TARGET = 90.0
"""In %."""
_PR_SET_CHILD_SUBREAPER = 36
"""include/uapi/linux/prctl.h."""


def sweep(folder: Path, simulations: int, jobs: int, log: Path) -> None:
    """The sweep itself, in a process of its own: writes down what its processes use, and what is left to do."""
    import ampsched
    from ampsched.sweeps import running

    begin = running._begin

    def timed_begin() -> None:
        begin()
        _time_batches(log)

    def progress(done: int, total: int) -> None:
        temporary = log / "left.new"
        temporary.write_text(str(total - done))
        temporary.rename(log / "left")

    running._begin = timed_begin
    _time_batches(log)
    ampsched.sweep(
        "2B2S",
        WORKLOADS,
        POLICIES,
        repeat=simulations // PER_SEED,
        folder=folder,
        jobs=jobs,
        progress=progress,
    )


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
            (log / f"{os.getpid()}.batches").write_text(str(used_s))

    _core.run_batch = timed


@dataclass
class Use:
    """What a sweep has used, in s."""

    all_s: float
    """CPU time of all its processes."""
    batches_s: float
    """Of that, in the core's batch calls."""

    @property
    def share(self) -> float:
        """In %."""
        return 100 * self.batches_s / self.all_s


class Run:
    """A sweep in a process of its own."""

    def __init__(self, folder: Path, simulations: int, jobs: int) -> None:
        self.simulations = simulations
        self._log = Path(tempfile.mkdtemp(dir=folder.parent))
        numbers = ["--simulations", str(simulations), "--jobs", str(jobs)]
        self._command = [sys.executable, __file__, "--run", str(folder), "--log", str(self._log), *numbers]
        self._before_s = _children_s()
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(self._command)

    def kill_worker(self) -> None:
        """Kills one of those that simulate."""
        workers = [int(each.stem) for each in self._log.glob("*.batches")]
        os.kill(next(pid for pid in workers if pid != self._process.pid), signal.SIGKILL)

    def kill_and_go_on(self) -> None:
        """Kills the process that hands out work, and starts the same sweep again."""
        self._process.kill()
        self._process.wait()
        _reap()
        self._start()

    def wait_until_left(self, simulations: int) -> None:
        """Waits until not more are left to do."""
        left = self._log / "left"
        while not left.exists() or int(left.read_text()) > simulations:
            if self._process.poll() is not None:
                sys.exit("the sweep ended before somebody could be killed: take more simulations")
            time.sleep(0.05)

    def end(self) -> Use:
        """Waits for the end."""
        if code := self._process.wait():
            sys.exit(f"the sweep failed: {code}")
        _reap()
        batches_s = sum(float(each.read_text()) for each in self._log.glob("*.batches"))
        return Use(_children_s() - self._before_s, batches_s)


def _adopt() -> None:
    """Makes this process the parent of those whose parent is killed, so that their time counts, too."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _reap() -> None:
    """Waits for all processes of a sweep that has ended."""
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(folder: Path, simulations: int) -> str:
    """Runs the three sweeps; returns what is reported."""
    _adopt()
    whole = Run(folder / "whole", simulations, WORKERS).end()
    print(f"two processes: {whole.share:.1f} % of {whole.all_s:,.0f} s", flush=True)
    run = Run(folder / "killed", simulations, WORKERS)
    run.wait_until_left(simulations * 2 // 3)
    run.kill_worker()
    run.wait_until_left(simulations // 3)
    run.kill_and_go_on()
    killed = run.end()
    print(f"two processes, some killed: {killed.share:.1f} % of {killed.all_s:,.0f} s", flush=True)
    Run(folder / "one", simulations, 1).end()
    tables = [(folder / name / "table.parquet").read_bytes() for name in ("whole", "killed", "one")]
    if len(set(tables)) > 1:
        sys.exit("two processes, two of which some were killed, and one process leave different bytes")
    from ampsched.markdown import wrapped

    return wrapped(
        f"{simulations:,} simulations (`comm-1` and `nsync-1` on `2B2S`, 25 policies) on two processes: "
        f"{whole.share:.1f} % of the CPU time of all processes ({whole.all_s:,.0f} s) is simulating, baselines "
        f"included. Target: at least {TARGET:.0f} %: {'reached' if whole.share >= TARGET else 'missed'}. With a "
        f"worker killed after a third, and the whole sweep killed after two thirds and started again: "
        f"{killed.share:.1f} % of {killed.all_s:,.0f} s. Both leave the same {len(tables[0]):,} bytes as one process."
    )


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--simulations", type=int, default=100_000)
    arguments.add_argument("--report", type=Path)
    arguments.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    arguments.add_argument("--jobs", type=int, help=argparse.SUPPRESS)
    arguments.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.run:
        sweep(given.run, given.simulations, given.jobs, given.log)
        return
    if given.simulations < PER_SEED or given.simulations % PER_SEED:
        arguments.error(f"--simulations {given.simulations}: must be a multiple of {PER_SEED}")
    with tempfile.TemporaryDirectory() as folder:
        text = measured(Path(folder), given.simulations)
    print(text)
    if given.report:
        from run import replace_measured

        replace_measured(given.report, text, REGION)


if __name__ == "__main__":
    main()
