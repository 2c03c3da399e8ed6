"""Runs the C programs on this computer and keeps the runs that nothing else disturbed."""

import gzip
import json
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import monotonic, sleep

from ampsched.recording.disturbance import Disturbance, busy_s
from ampsched_lab.truth.host.scenarios import arguments, cpus_of
from ampsched_lab.truth.pairs.machine import NS_PER_S, Costs, Measured, read
from ampsched_lab.truth.pairs.workloads import Workload

TRIES_MAX = 15
FOREIGN_MAX = 0.02
"""Share of the CPUs' time that others may take of a run that counts."""
QUIET_S = 0.5
FAVOURED = 'echo -20 2>/dev/null >/proc/self/autogroup; exec "$0" "$@"'
"""With automatic groups, sessions compete as wholes; others shall not hold ours up, if we may say so. Within the
session nothing changes."""
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Run:
    """One run of a scenario.

    Attributes:
        turnaround_ns: From the start of its first thread to the end of its last.
        ns_per_iteration: Of the loop, when nothing interferes.
        switches: How often its threads blocked or were preempted.
        foreign: Share of the CPUs' time that other programs and the hypervisor took.
    """

    turnaround_ns: int
    ns_per_iteration: float
    switches: int
    foreign: float


@dataclass(frozen=True)
class Host:
    """What a reader, and the simulation, have to know of this computer.

    Attributes:
        kernel: Version.
        hz: CONFIG_HZ.
        preemption: none, voluntary, full or lazy.
        cpu: What it calls itself.
        is_virtual: A hypervisor runs below the kernel.
    """

    kernel: str
    hz: int
    preemption: str
    cpu: str
    is_virtual: bool

    @property
    def tick_ns(self) -> int:
        """Period of the tick."""
        return NS_PER_S // self.hz


def host() -> Host:
    """This computer. Exits if its kernel does not tell how often it ticks."""
    text = _text("/proc/cpuinfo")
    cpu = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    flags = re.search(r"^flags\s*: (.*)$", text, re.MULTILINE)
    version = re.match(r"[\d.]*\d", platform.release())
    hz = _config("HZ")
    if not hz:
        sys.exit("CONFIG_HZ is unknown: neither /proc/config.gz nor /boot/config-* can be read")
    return Host(
        version[0] if version else platform.release(),
        int(hz),
        _preemption(),
        cpu[1] if cpu else platform.machine(),
        flags is not None and "hypervisor" in flags[1].split(),
    )


def _preemption() -> str:
    """The model in use: debugfs marks it by brackets; else that with which the kernel was built."""
    chosen = re.search(r"\((\w+)\)", _text("/sys/kernel/debug/sched/preempt"))
    if chosen:
        return chosen[1]
    for key in ("NONE", "VOLUNTARY", "LAZY"):
        if _config(f"PREEMPT_{key}") == "y":
            return key.lower()
    return "full" if _config("PREEMPT") == "y" else UNKNOWN


def _config(key: str) -> str:
    """A value of the running kernel's configuration, or nothing."""
    try:
        text = gzip.decompress(Path("/proc/config.gz").read_bytes()).decode()
    except OSError:
        text = _text(f"/boot/config-{platform.release()}")
    found = re.search(rf"^CONFIG_{key}=(.*)$", text, re.MULTILINE)
    return found[1] if found else ""


def _text(path: str) -> str:
    """A file's text, if it may be read."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def costs(folder: Path, cpus: Sequence[int], tick_ns: int, repetitions: int, patience_s: float) -> Costs:
    """What scheduling costs here: of each micro-benchmark the median of several runs."""
    words = [str(folder / "costs"), "--cpus", ",".join(map(str, cpus)), "--tick-ns", str(tick_ns)]
    runs: list[Measured] = []
    for _ in range(repetitions):
        wait_until_quiet(cpus, patience_s)
        print("  micro-benchmarks ...", flush=True)
        runs.append(read(_run(words)))
    return Costs({key: median(run[key] for run in runs) for key in runs[0]}, tick_ns)


def measure(
    folder: Path, scenario: Workload, cpus: Sequence[int], repetitions: int, patience_s: float
) -> list[Run]:
    """The first undisturbed runs; if there are too few, the least disturbed of all that were tried."""
    runs: list[Run] = []
    for _ in range(TRIES_MAX):
        wait_until_quiet(cpus, patience_s)
        runs.append(run_once(folder, scenario, cpus))
        last = runs[-1]
        print(
            f"  {scenario.name}: {last.turnaround_ns / 1e6:.0f} ms, others took {last.foreign:.1%}",
            flush=True,
        )
        clean = [run for run in runs if run.foreign <= FOREIGN_MAX]
        if len(clean) == repetitions:
            return clean
    return sorted(runs, key=lambda run: run.foreign)[:repetitions]


def run_once(folder: Path, scenario: Workload, cpus: Sequence[int]) -> Run:
    """Runs the C program of a scenario once."""
    (program,) = scenario.programs
    used = cpus_of(program, cpus)
    disturbance = Disturbance(used)
    report = json.loads(_run([str(folder / program.binary), *arguments(program, cpus)]))
    return Run(
        report["turnaround_ns"],
        report["ns_per_iteration"],
        sum(row["voluntary"] + row["involuntary"] for row in report["threads"]),
        disturbance.share() or 0.0,
    )


def wait_until_quiet(cpus: Sequence[int], patience_s: float) -> None:
    """Waits until other programs leave the CPUs alone for a moment, but not for ever."""
    give_up_s = monotonic() + patience_s
    while monotonic() < give_up_s:
        before_s = busy_s(cpus)
        sleep(QUIET_S)
        if busy_s(cpus) - before_s <= FOREIGN_MAX * QUIET_S * len(cpus):
            return


def _run(words: Sequence[str]) -> str:
    done = subprocess.run(
        ["/bin/sh", "-c", FAVOURED, *words],
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    if done.returncode != 0:
        sys.exit(f"{words[0]} failed: {done.stderr.strip()}")
    return done.stdout
