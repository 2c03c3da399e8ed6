"""Runs the C programs on this computer and keeps the runs that nothing else disturbed."""

import gzip
import json
import os
import platform
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import monotonic, sleep

from truth.scenarios import WAKEUP, Scenario

TRIES_MAX = 40
FOREIGN_MAX = 0.02
QUIET_S = 0.5
# With automatic groups, sessions compete as wholes; ours shall not be held up by others, if we may say so.
# Within the session nothing changes.
FAVOURED = 'echo -20 2>/dev/null >/proc/self/autogroup; exec "$0" "$@"'


@dataclass(frozen=True)
class Thread:
    """What one thread did; the same fields are filled from a simulation."""

    name: str
    end_ns: int
    cpu_ns: int
    window_ns: int
    """CPU time until the first thread ended: what it got while all competed."""
    voluntary: int
    """Times that it blocked."""
    involuntary: int
    """Times that it was preempted."""


@dataclass(frozen=True)
class Run:
    """One run of a scenario, real or simulated."""

    turnaround_ns: int
    ns_per_iteration: float
    threads: list[Thread]
    foreign: float
    """Share of the CPUs' time that other programs and the hypervisor took."""

    @property
    def voluntary(self) -> int:
        return sum(thread.voluntary for thread in self.threads)

    @property
    def involuntary(self) -> int:
        return sum(thread.involuntary for thread in self.threads)

    def shares(self) -> list[float]:
        """Each thread's share of all CPU time in the window."""
        total = sum(thread.window_ns for thread in self.threads)
        return [thread.window_ns / total for thread in self.threads]


def busy_seconds(cpus: list[int]) -> float:
    """Time since boot during which these CPUs were not idle, or were taken away by a hypervisor."""
    ticks = 0
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name in {f"cpu{cpu}" for cpu in cpus}:
            user, nice, system, _idle, _iowait, irq, softirq, steal = (int(field) for field in fields[:8])
            ticks += user + nice + system + irq + softirq + steal
    return ticks / os.sysconf("SC_CLK_TCK")


def run_once(folder: Path, scenario: Scenario, cpus: list[int]) -> Run:
    """Runs the C program once."""
    command = [str(folder / scenario.program), "--cpus", ",".join(map(str, cpus)), *scenario.arguments()]
    used = scenario.cpus(cpus)
    before_s, own_before = busy_seconds(used), os.times()
    result = subprocess.run(
        ["/bin/sh", "-c", FAVOURED, *command],
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    own_after, busy_s = os.times(), busy_seconds(used) - before_s
    if result.returncode != 0:
        sys.exit(f"{scenario.program} failed: {result.stderr.strip()}")
    report = json.loads(result.stdout)
    own_s = (own_after.children_user + own_after.children_system) - (
        own_before.children_user + own_before.children_system
    )
    capacity_s = (own_after.elapsed - own_before.elapsed) * len(used)
    threads = [
        Thread(
            name=f"{row['name']} {row['index']}",
            **{key: row[key] for key in ("end_ns", "cpu_ns", "window_ns", "voluntary", "involuntary")},
        )
        for row in report["threads"]
    ]
    foreign = max(0.0, (busy_s - own_s) / capacity_s)
    return Run(report["turnaround_ns"], report["ns_per_iteration"], threads, foreign)


def wait_until_quiet(cpus: list[int], patience_s: float) -> None:
    """Waits until other programs leave the CPUs alone for a moment, but not for ever."""
    give_up_s = monotonic() + patience_s
    while monotonic() < give_up_s:
        before_s = busy_seconds(cpus)
        sleep(QUIET_S)
        if busy_seconds(cpus) - before_s <= FOREIGN_MAX * QUIET_S * len(cpus):
            return


def measure(
    folder: Path, scenario: Scenario, cpus: list[int], repetitions: int, patience_s: float
) -> list[Run]:
    """The first undisturbed runs; if there are too few, the least disturbed of all that were tried."""
    runs: list[Run] = []
    for _ in range(TRIES_MAX):
        wait_until_quiet(cpus, patience_s)
        runs.append(run_once(folder, scenario, cpus))
        print(
            f"  {scenario.name}: {runs[-1].turnaround_ns / 1e6:.0f} ms, others took {runs[-1].foreign:.1%}",
            flush=True,
        )
        clean = [run for run in runs if run.foreign <= FOREIGN_MAX]
        if len(clean) == repetitions:
            return clean
    return sorted(runs, key=lambda run: run.foreign)[:repetitions]


def wakeup_ns(folder: Path, cpus: list[int], repetitions: int, patience_s: float) -> float:
    """What waking a thread on an idle CPU costs on this computer, in ns."""
    run = median_run(measure(folder, WAKEUP, cpus, repetitions, patience_s))
    wakeups = 2 * WAKEUP.numbers["rounds"]
    work_ns = wakeups * WAKEUP.spins["work"] * run.ns_per_iteration
    return max(0.0, (run.turnaround_ns - work_ns) / wakeups)


def median_run(runs: list[Run]) -> Run:
    """The medians of every figure, each taken by itself."""
    threads = [
        Thread(
            same[0].name,
            *(
                round(median(getattr(thread, field) for thread in same))
                for field in ("end_ns", "cpu_ns", "window_ns", "voluntary", "involuntary")
            ),
        )
        for same in zip(*(run.threads for run in runs), strict=True)
    ]
    return Run(
        round(median(run.turnaround_ns for run in runs)),
        median(run.ns_per_iteration for run in runs),
        threads,
        max(run.foreign for run in runs),
    )


def read_or(path: str, fallback: str) -> str:
    """A file's text, if it may be read."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return fallback


def kernel_config(key: str) -> str:
    """A value of the running kernel's configuration, or "unknown"."""
    try:
        text = gzip.decompress(Path("/proc/config.gz").read_bytes()).decode()
    except OSError:
        text = read_or(f"/boot/config-{platform.release()}", "")
    found = re.search(rf"^CONFIG_{key}=(.*)$", text, re.MULTILINE)
    return found[1] if found else "unknown"


def host() -> dict[str, str]:
    """What a reader has to know of this computer."""
    cpu = re.search(r"^model name\s*: (.*)$", read_or("/proc/cpuinfo", ""), re.MULTILINE)
    flags = re.search(r"^flags\s*: (.*)$", read_or("/proc/cpuinfo", ""), re.MULTILINE)
    virtual = flags is not None and "hypervisor" in flags[1].split()
    version = re.match(r"[\d.]*\d", platform.release())
    slice_ns = read_or("/sys/kernel/debug/sched/base_slice_ns", "not readable")
    return {
        "kernel": f"Linux {version[0] if version else platform.release()}",
        "CONFIG_HZ": kernel_config("HZ"),
        "preemption": read_or("/sys/kernel/debug/sched/preempt", preemption_by_config()),
        "base slice": slice_ns,
        "CPU": (cpu[1] if cpu else platform.machine()) + (" (virtual machine)" if virtual else ""),
    }


def preemption_by_config() -> str:
    """The preemption model that the kernel was built with."""
    for key in ("NONE", "VOLUNTARY", "LAZY"):
        if kernel_config(f"PREEMPT_{key}") == "y":
            return key.lower()
    return "full" if kernel_config("PREEMPT") == "y" else "unknown"
