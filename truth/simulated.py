"""The same scenarios in the simulator."""

import re
from importlib.resources import files
from pathlib import Path

import ampsched
from ampsched import Outcome, ThreadOutcome
from truth.measure import Run, Thread
from truth.scenarios import Scenario

MACHINE = "sym-2"
POLICY = "eevdf"
PROGRAMS = Path(__file__).resolve().parent / "programs"


def write_workload(folder: Path, scenario: Scenario, ns_per_iteration: float) -> Path:
    """Writes the workload file: the scenario's program with the amounts that were measured on this computer."""
    params = ", ".join(f"{name} = {value!r}" for name, value in scenario.params(ns_per_iteration).items())
    path = folder / f"{scenario.name}.workload.toml"
    program = PROGRAMS / f"{scenario.name}.toml"
    path.write_text(
        f'[workloads.{scenario.name}]\ndescription = "{scenario.what}"\n'
        f'apps = [{{ program = "{program}", params = {{ {params} }} }}]\n'
    )
    return path


def cpu_ns(thread: ThreadOutcome) -> int:
    """CPU time of a thread."""
    return thread.big_ns + thread.little_ns


def machine_with_wakeup(folder: Path, wakeup_ns: float) -> Path:
    """Writes the machine with another wake-up latency; all else stays."""
    text = (files("ampsched") / "data/machines" / f"{MACHINE}.toml").read_text(encoding="utf-8")
    changed, count = re.subn(r"(?m)^wakeup_latency_ns = \d+", f"wakeup_latency_ns = {wakeup_ns:.0f}", text)
    assert count == 1, "the machine states its wake-up latency"
    path = folder / f"{MACHINE}-wakeup.toml"
    path.write_text(changed.replace(f'name = "{MACHINE}"', f'name = "{path.stem}"'))
    return path


def simulate(folder: Path, scenario: Scenario, ns_per_iteration: float, machine: str | Path = MACHINE) -> Run:
    """Simulates the scenario, and once more up to the end of its first thread for the shares."""
    workload = write_workload(folder, scenario, ns_per_iteration)
    outcome: Outcome = ampsched.simulate(machine, workload, POLICY)
    first_end_ns = min(thread.end_ns for thread in outcome.threads)
    window = ampsched.simulate(machine, workload, POLICY, until_ms=first_end_ns / 1e6)
    threads = [
        Thread(
            thread.name, thread.end_ns, cpu_ns(thread), cpu_ns(early), thread.voluntary, thread.involuntary
        )
        for thread, early in zip(outcome.threads, window.threads, strict=True)
    ]
    return Run(outcome.makespan_ns, ns_per_iteration, threads, 0.0)
