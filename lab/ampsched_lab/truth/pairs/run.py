"""Kernel and simulator side by side in exact virtual machines; see docs/explanation/truth.md.

A measurement, not a test: nothing fails if the figures differ, and nothing is tuned to make them agree. It may be
stopped at any time; what it has measured is kept in --results.
"""

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from ampsched.markdown import page
from ampsched.vm.exact import Exact, loader
from ampsched_lab.campaign.boot import KERNEL, Guest, Scheduler, ours
from ampsched_lab.campaign.run import Group, carry_out_all
from ampsched_lab.campaign.store import Store
from ampsched_lab.shared import summaries
from ampsched_lab.truth.pairs import linux, quanta, report
from ampsched_lab.truth.pairs.machine import FIELDS, Costs, look_us, machine_file, measure
from ampsched_lab.truth.pairs.simulated import Ended, Simulator
from ampsched_lab.truth.pairs.systems import BESIDE, MACHINE, MIPS, SYSTEMS, exact_machine
from ampsched_lab.truth.pairs.workloads import CHOSEN, WORKLOADS, Workload

PAGES = {
    "sides": ("kernel.md", "Our policies in a kernel and in the simulator", report.INTRODUCTION),
    "linux": ("linux.md", "Linux's own scheduler in a kernel and in the simulator", ""),
    "quanta": ("quantum.md", "What depends on the quantum", quanta.INTRODUCTION),
}
"""For each part its page, the title and what stands before the tables."""
POLICIES = ("cfs", "colab", "wash", "max-fair", "equal-progress", "acfs")
BACK_END_NAME = "back-end"
BACK_END = "cfs"
"""Under which the kernel back end's costs are measured."""
BLOCK = 2
"""Start offsets per boot."""
TIES, TIE_US = 8, 50
"""Further simulations of each run, in which programs begin up to so much earlier or later than planned. In a kernel
that is as much as the interrupts of a tick take."""
LEFT_OUT = {
    "everything": (),
    "no ticks": ("tick_ns", "tick_cost_ns"),
    "ticks that cost nothing": ("tick_cost_ns",),
    "no cost of starting threads": ("fork_ns",),
    "no cost of waking": ("wake_ns", "wakeup_latency_ns"),
    "no cost of switching": ("context_switch_ns",),
    "nothing": ("tick_ns", *FIELDS),
}
"""What is left out to see what it explains."""


def back_end_costs(results: Path, exact: Exact, programs: Path) -> Costs:
    """What was measured, or is measured now."""
    path = results / f"costs-{BACK_END_NAME}.json"
    if not path.exists():
        print(f"micro-benchmarks under {BACK_END} ...", flush=True)
        found = measure(exact, programs, BACK_END)
        path.parent.mkdir(parents=True, exist_ok=True)
        found.save(path)
    return Costs.load(path)


def looks_of(results: Path, exact: Exact, programs: Path) -> dict[str, float]:
    """What a look takes, by policy, in us: measured, or measured now."""
    path = results / "looks.json"
    found: dict[str, float] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for policy in POLICIES:
        if policy not in found:
            print(f"looks of {policy} ...", flush=True)
            found[policy] = look_us(exact, programs, policy)
            path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return found


def write_back_end(folder: Path, exact: Exact, costs: Costs) -> Path:
    """The machine's file with the costs of the kernel back end."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"exact-{MACHINE}-{BACK_END_NAME}.toml"
    what = f"The exact virtual machine of {MACHINE} at {MIPS[0]:.0f} and {MIPS[1]:.0f} MIPS under {BACK_END_NAME}"
    path.write_text(machine_file(path.stem, what, exact.machine, MIPS, costs), "utf-8")
    return path


def kernel_runs(
    guest: Guest, schedulers: Sequence[Scheduler], offsets: int, jobs: int, results: Path
) -> Store:
    """Runs all workloads in the kernel, as far as that was not done before."""
    store = Store(results)
    mixes = tuple(workload.mix() for workload in WORKLOADS)
    numbers = list(range(1, offsets + 1))
    blocks = [numbers[first : first + BLOCK] for first in range(0, offsets, BLOCK)]
    groups = [Group(guest, scheduler, mixes) for scheduler in schedulers]
    carry_out_all(groups, blocks, store, jobs)
    return store


def cells_of(
    store: Store, guest: Guest, scheduler: str, simulator: Simulator, offsets: int, pool: Executor
) -> list[report.Cell]:
    """Both sides of all workloads under a scheduler; simulations run in the pool."""
    rows = store.read(guest.name, guest.system, scheduler)
    policy = BESIDE if scheduler == KERNEL else scheduler
    numbers = range(1, offsets + 1)
    runs = [
        [pool.submit(_simulated, workload, offset, simulator, policy) for offset in numbers]
        for workload in WORKLOADS
    ]
    cells = []
    for workload, own in zip(WORKLOADS, runs, strict=True):
        kernel = [rows[workload.name, offset]["programs"] for offset in numbers]
        simulated = [run.result() for run in own]
        cells += [
            _cell(workload, number, policy, kernel, simulated) for number in range(len(workload.programs))
        ]
    return cells


def _simulated(workload: Workload, offset: int, simulator: Simulator, policy: str) -> list[list[Ended]]:
    """A workload whose programs begin as planned, and a few us earlier or later."""
    planned_us = workload.mix().starts_us(offset)
    draw = random.Random(f"{workload.name} {offset}")
    others_us = [[start_us + draw.randint(-TIE_US, TIE_US) for start_us in planned_us] for _ in range(TIES)]
    return [simulator.run(workload, starts_us, policy) for starts_us in [planned_us, *others_us]]


def _cell(
    workload: Workload,
    number: int,
    policy: str,
    kernel: Sequence[list[dict[str, Any]]],
    simulated: Sequence[list[list[Ended]]],
) -> report.Cell:
    real = [programs[number] for programs in kernel]
    ended = [[run[number] for run in runs] for runs in simulated]
    return report.Cell(
        workload.name,
        workload.programs[number].name,
        policy,
        tuple(program["report"]["turnaround_ns"] for program in real),
        tuple(runs[0].turnaround_ns for runs in ended),
        tuple(min(run.turnaround_ns for run in runs) for runs in ended),
        tuple(max(run.turnaround_ns for run in runs) for runs in ended),
        tuple(program["switches"] for program in real),
        tuple(runs[0].switches for runs in ended),
    )


def compare(arguments: argparse.Namespace, exact: Exact, folder: Path) -> str:
    """Costs, and all workloads under all schedulers on both sides."""
    with ProcessPoolExecutor(arguments.jobs) as pool:
        return _compare(arguments, exact, folder, pool)


def _compare(arguments: argparse.Namespace, exact: Exact, folder: Path, pool: Executor) -> str:
    results = arguments.results
    programs = arguments.programs / exact.architecture
    beside = SYSTEMS[0]
    costs = {
        BACK_END_NAME: back_end_costs(results, exact, programs),
        BESIDE: linux.costs_of(beside, arguments.programs, results),
    }
    linux.write_machine(beside, costs[BESIDE], arguments.machines)
    machines = {
        BACK_END_NAME: write_back_end(arguments.machines, exact, costs[BACK_END_NAME]),
        BESIDE: beside.machine_file(arguments.machines),
    }
    guest = Guest(MACHINE, exact, programs.resolve())
    store = kernel_runs(guest, schedulers(exact), arguments.offsets, arguments.jobs, results)
    looks = looks_of(results, exact, programs)
    simulators = {
        kind: Simulator(folder, machines[kind], own.ns_per_iteration, own.ratio, own.start_us, looks)
        for kind, own in costs.items()
    }
    cells = []
    for scheduler in schedulers(exact):
        simulator = simulators[BESIDE if scheduler.name == KERNEL else BACK_END_NAME]
        cells += cells_of(store, guest, scheduler.name, simulator, arguments.offsets, pool)
    names = [cluster for cluster, *_ in exact.machine.clusters]
    our_own = [cell for cell in cells if cell.scheduler != BESIDE]
    chosen = {workload.name for workload in CHOSEN}
    aims = [
        report.aims("Our own policies", our_own),
        report.aims("Randomly drawn workloads", [cell for cell in our_own if cell.workload not in chosen]),
        report.aims("Our own policies where no tie decides", [cell for cell in our_own if not cell.is_tied]),
    ]
    return "\n\n".join(
        [
            " ".join([*aims, f"{arguments.offsets} start offsets."]),
            report.summary(cells),
            "## What scheduling costs",
            report.costs_table(costs, names),
            "How far off simulations are on a machine whose file leaves some of them out:",
            what_costs_explain(
                store, guest, exact, simulators[BACK_END_NAME], costs[BACK_END_NAME], arguments.offsets, pool
            ),
            "A look of a policy's slow plane takes "
            + ", ".join(f"{us:.0f} us (`{policy}`)" for policy, us in looks.items() if us)
            + ".",
            "## Workload by workload",
            report.details(cells),
        ]
    )


def what_costs_explain(
    store: Store,
    guest: Guest,
    exact: Exact,
    like: Simulator,
    costs: Costs,
    offsets: int,
    pool: Executor,
) -> str:
    """How far off our own policies are if the machine does not state some of its costs."""
    rows = []
    for what, fields in LEFT_OUT.items():
        own = costs.without(*fields)
        path = like.folder / "less.toml"
        path.write_text(machine_file("less", what, exact.machine, MIPS, own), "utf-8")
        simulator = replace(like, machine=path)
        cells = [
            cell for policy in POLICIES for cell in cells_of(store, guest, policy, simulator, offsets, pool)
        ]
        rows.append([what, *report.errors_of(cells)])
    return report.table(["the machine states", "error, mean", "worst", "single runs, mean"], rows)


def schedulers(exact: Exact) -> list[Scheduler]:
    """Ours, and the kernel's own."""
    return [*(ours(policy, loader(exact.architecture)) for policy in POLICIES), Scheduler(KERNEL)]


def of_linux(arguments: argparse.Namespace, folder: Path) -> str:
    """The kernels' own schedulers."""
    for system in SYSTEMS:
        for reverse in (False, True):
            linux.runs(
                system,
                arguments.programs,
                arguments.results,
                arguments.offsets,
                arguments.jobs,
                reverse=reverse,
            )
        costs = linux.costs_of(system, arguments.programs, arguments.results)
        linux.write_machine(system, costs, arguments.machines)
    with ProcessPoolExecutor(arguments.jobs) as pool:
        return linux.section(folder, arguments.results, arguments.machines, arguments.offsets, pool)


def by_quantum(arguments: argparse.Namespace, exact: Exact) -> str:
    """Which results depend on the quantum."""
    store = Store(arguments.results)
    guest = Guest(MACHINE, exact, (arguments.programs / exact.architecture).resolve())
    few = [each for each in schedulers(exact) if each.name in (*quanta.POLICIES, KERNEL)]
    quanta.measure(guest, few, store, arguments.jobs)
    return quanta.quanta_table(guest, few, store)


def main() -> None:
    """Measures what was not measured yet, simulates, prints and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--programs",
        type=Path,
        required=True,
        help="folder of a folder of compiled C programs for each architecture",
    )
    parser.add_argument("--results", type=Path, required=True, help="folder of what is measured")
    parser.add_argument("--machines", type=Path, required=True, help="folder of the machines' files")
    parser.add_argument("--report", type=Path, help="folder of the pages that are written")
    parser.add_argument(
        "--offsets", type=int, default=10, help="start offsets per workload and scheduler (default 10)"
    )
    parser.add_argument(
        "--parts", default="sides,linux,quanta", help="what is measured and shown (default: all)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="virtual machines at a time (default 1)")
    arguments = parser.parse_args()
    exact = exact_machine()
    with tempfile.TemporaryDirectory(prefix="ampsched-truth-") as name:
        folder = Path(name)
        makers: dict[str, Callable[[], str]] = {
            "sides": lambda: compare(arguments, exact, folder),
            "linux": lambda: of_linux(arguments, folder),
            "quanta": lambda: by_quantum(arguments, exact),
        }
        chosen = arguments.parts.split(",")
        if not set(chosen) <= set(makers):
            sys.exit(f"--parts {arguments.parts}: some of {', '.join(makers)}, separated by commas")
        texts = {name: make() for name, make in makers.items() if name in chosen}
    print("\n\n".join(texts.values()))
    if arguments.report:
        write(arguments.report, texts)


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Writes the page of each part."""
    for name, text in texts.items():
        file, title, introduction = PAGES[name]
        summaries.write(folder / file, page(f"# {title}", introduction, text), summaries.kind_of(Path(file)))


if __name__ == "__main__":
    main()
