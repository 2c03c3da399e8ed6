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

from ampsched import Catalog
from ampsched.vm.exact import Exact, loader
from ampsched.vm.exact.costs import SHARES, ClassCosts
from truth.campaign.boot import KERNEL, Guest, Scheduler, ours
from truth.campaign.run import Group, carry_out_all
from truth.campaign.store import Store
from truth.page import replace_region
from truth.sides import quanta, report
from truth.sides.machine import FIELDS, Costs, look_us, machine_file, measure
from truth.sides.simulated import Ended, Simulator
from truth.sides.workloads import CHOSEN, WORKLOADS, Workload

BEGIN = "<!-- begin: written by make truth -->"
END = "<!-- end: written by make truth -->"
MACHINE = "2B2S"
MIPS = (1000.0, 400.0)
"""Of big and little cores: a ratio of 2.5 and no other difference."""
QUANTUM_US = 10.0
POLICIES = ("cfs", "colab", "wash", "max-fair", "equal-progress", "acfs")
BESIDE = "eevdf"
"""The kernel's own, and what stands for it in the simulator."""
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


def exact_machine() -> Exact:
    """Two big and two little cores that differ by nothing but their speed."""
    plain = (SHARES,) * 5
    speeds = [ClassCosts(round(mips * 1000), plain) for mips in MIPS]
    return Exact(Catalog.shipped().machine(MACHINE), quantum_us=QUANTUM_US, speeds=speeds)


def costs_of(results: Path, exact: Exact, programs: Path, policy: str | None) -> Costs:
    """What was measured, or is measured now."""
    path = results / f"costs-{BACK_END_NAME if policy else BESIDE}.json"
    if not path.exists():
        print(f"micro-benchmarks under {policy or BESIDE} ...", flush=True)
        found = measure(exact, programs, policy)
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


def write_machines(folder: Path, exact: Exact, costs: Mapping[str, Costs]) -> dict[str, Path]:
    """The machine's files, one per scheduler of the costs."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, own in costs.items():
        path = folder / f"exact-{MACHINE}-{name}.toml"
        what = f"The exact virtual machine of {MACHINE} at {MIPS[0]:.0f} and {MIPS[1]:.0f} MIPS under {name}"
        path.write_text(machine_file(path.stem, what, exact.machine, MIPS, own), "utf-8")
        found[name] = path
    return found


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
    kernel: Sequence[list[dict]],
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
    costs = {
        BACK_END_NAME: costs_of(results, exact, arguments.programs, BACK_END),
        BESIDE: costs_of(results, exact, arguments.programs, None),
    }
    machines = write_machines(arguments.machines, exact, costs)
    guest = Guest(MACHINE, exact, arguments.programs.resolve())
    store = kernel_runs(guest, schedulers(exact), arguments.offsets, arguments.jobs, results)
    looks = looks_of(results, exact, arguments.programs)
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
        report.aims("Workloads drawn by lot", [cell for cell in our_own if cell.workload not in chosen]),
        report.aims("Those of them that no tie decides", [cell for cell in our_own if not cell.is_tied]),
    ]
    return "\n\n".join(
        [
            "## Kernel and simulator",
            " ".join([*aims, f"{arguments.offsets} start offsets."]),
            report.summary(cells),
            "## What scheduling costs",
            report.costs_table(costs, names),
            "What they explain:",
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


def by_quantum(arguments: argparse.Namespace, exact: Exact) -> str:
    """Which results depend on the quantum."""
    store = Store(arguments.results)
    guest = Guest(MACHINE, exact, arguments.programs.resolve())
    few = [each for each in schedulers(exact) if each.name in (*quanta.POLICIES, KERNEL)]
    quanta.measure(guest, few, store, arguments.jobs)
    return "\n\n".join(["## By quantum", quanta.quanta_table(guest, few, store)])


def main() -> None:
    """Measures what was not measured yet, simulates, prints and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, required=True, help="folder of the compiled C programs")
    parser.add_argument("--results", type=Path, required=True, help="folder of what is measured")
    parser.add_argument("--machines", type=Path, required=True, help="folder of the machines' files")
    parser.add_argument("--report", type=Path, help="page in which the tables are replaced")
    parser.add_argument(
        "--offsets", type=int, default=10, help="start offsets per workload and scheduler (default 10)"
    )
    parser.add_argument("--parts", default="sides,quanta", help="what is measured and shown (default: all)")
    parser.add_argument("--jobs", type=int, default=1, help="virtual machines at a time (default 1)")
    arguments = parser.parse_args()
    exact = exact_machine()
    with tempfile.TemporaryDirectory(prefix="ampsched-truth-") as name:
        folder = Path(name)
        makers: dict[str, Callable[[], str]] = {
            "sides": lambda: compare(arguments, exact, folder),
            "quanta": lambda: by_quantum(arguments, exact),
        }
        chosen = arguments.parts.split(",")
        if not set(chosen) <= set(makers):
            sys.exit(f"--parts {arguments.parts}: some of {', '.join(makers)}, separated by commas")
        text = "\n\n".join(make() for name, make in makers.items() if name in chosen)
    print(text)
    if arguments.report:
        replace_region(arguments.report, BEGIN, END, text)


if __name__ == "__main__":
    main()
