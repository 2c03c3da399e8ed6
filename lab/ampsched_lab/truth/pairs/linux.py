"""Linux's own scheduler: what kernels make of the workloads, and what the simulator makes of them.

``python -m ampsched_lab.truth.pairs.linux`` simulates workloads on one system, prints them beside what was measured;
it boots nothing.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from ampsched_lab.campaign.boot import KERNEL, Scheduler
from ampsched_lab.campaign.run import Group, carry_out_all
from ampsched_lab.campaign.store import Store
from ampsched_lab.truth.pairs import causes
from ampsched_lab.truth.pairs import linux_report as report
from ampsched_lab.truth.pairs.machine import Costs, machine_file, measure
from ampsched_lab.truth.pairs.report import costs_table
from ampsched_lab.truth.pairs.simulated import Ended, Simulator
from ampsched_lab.truth.pairs.systems import POLICY_OF, SYSTEMS, System, speeds_of, system
from ampsched_lab.truth.pairs.workloads import WORKLOADS, Workload

ROOT = Path(__file__).resolve().parents[4]
RESULTS = ROOT / "lab/data/truth"
MACHINES = ROOT / "lab/ampsched_lab/truth/machines"
OFFSETS = 10
SEEDS = 8
"""Simulations per offset: the kernel leaves to chance whether a core that falls idle looks for threads."""
BLOCK = 2
"""Start offsets per boot."""
NOISE = "idle"
"""What a kernel does beside the programs, for comparison."""
REVERSED = "-reversed"
"""Ends the name of a machine whose runs come in reverse order."""


def runs(
    found: System, programs: Path, results: Path, offsets: int, jobs: int, *, reverse: bool = False
) -> None:
    """Runs all workloads in the kernel, as far as that was not done before.

    Args:
        found: The system.
        programs: Folder with a folder of compiled programs for each architecture.
        results: Folder of what is measured.
        offsets: Start offsets.
        jobs: Virtual machines at a time.
        reverse: The last workload comes first after a boot, to see what depends on what the kernel remembers.
    """
    numbers = list(range(1, offsets + 1))
    blocks = [numbers[first : first + BLOCK] for first in range(0, offsets, BLOCK)]
    mixes = tuple(workload.mix() for workload in WORKLOADS)
    guest = found.guest(programs)
    if reverse:
        mixes, guest = mixes[::-1], replace(guest, name=guest.name + REVERSED)
    carry_out_all([Group(guest, Scheduler(KERNEL), mixes)], blocks, Store(results), jobs)


def costs_of(found: System, programs: Path, results: Path) -> Costs:
    """What scheduling costs there: measured, or measured now."""
    path = results / f"costs-{found.costs_name}.json"
    if not path.exists():
        print(f"micro-benchmarks on {found.name} ...", flush=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        measure(found.exact(), programs / found.architecture, None).save(path)
    return Costs.load(path)


def write_machine(found: System, costs: Costs, folder: Path) -> None:
    """The machine's file for the simulator."""
    machine = found.exact().machine
    folder.mkdir(parents=True, exist_ok=True)
    path = found.machine_file(folder)
    speeds = speeds_of(machine.clusters)
    what = (
        f"The exact virtual machine of {found.machine} at {max(speeds):.0f} and {min(speeds):.0f} MIPS "
        f"with the kernel of {found.name}"
    )
    energy = [machine.energy_model(index) for index in range(len(speeds))] if found.governor else []
    path.write_text(machine_file(path.stem, what, machine, speeds, costs, energy, sees=found.sees), "utf-8")


def simulator_of(found: System, folder: Path, results: Path, machines: Path) -> Simulator:
    """Simulates that system, by what was measured."""
    costs = Costs.load(results / f"costs-{found.costs_name}.json")
    machine = found.machine_file(machines)
    return Simulator(
        folder,
        machine,
        costs.ns_per_iteration,
        costs.ratio,
        costs.start_us,
        governor=found.governor,
        director_uclamp_min=found.director_uclamp_min,
    )


Sides = list[list[list[Ended]]]
"""What became of programs, by workload, run and place in the workload."""


def simulated(
    workloads: Sequence[Workload], offsets: int, simulator: Simulator, policy: str, pool: Executor
) -> Sides:
    """What the simulator makes of workloads, with :data:`SEEDS` seeds per offset; simulations run in the pool."""
    jobs = [
        [
            pool.submit(simulator.run, each, each.mix().starts_us(offset), policy, SEEDS * offset + seed)
            for offset in range(1, offsets + 1)
            for seed in range(SEEDS)
        ]
        for each in workloads
    ]
    return [[job.result() for job in own] for own in jobs]


def measured(
    found: System, workloads: Sequence[Workload], offsets: int, results: Path, order: str = ""
) -> Sides:
    """What the kernel has made of workloads.

    Args:
        found: The system.
        workloads: All that were measured there, or some of them.
        offsets: Start offsets.
        results: Folder of what was measured.
        order: REVERSED, or as they are listed.
    """
    rows = Store(results).read(found.machine + order, f"{found.architecture}-{found.kernel}", KERNEL)
    wanted = {(each.name, offset) for each in workloads for offset in range(1, offsets + 1)}
    missing = wanted - set(rows)
    if missing:
        sys.exit(
            f"{found.name}{order}: {len(missing)} of {len(wanted)} runs were not measured yet (make -C lab truth)"
        )
    return [
        [_ended(rows[each.name, offset]["programs"]) for offset in range(1, offsets + 1)]
        for each in workloads
    ]


def together(one: Sides, other: Sides) -> Sides:
    """All runs of both."""
    return [[*ours, *theirs] for ours, theirs in zip(one, other, strict=True)]


def pairs(workloads: Sequence[Workload], kernel: Sides, others: Sides) -> list[report.Row]:
    """A row per workload and program."""
    return [
        report.Row(
            workload.name,
            program.name,
            tuple(run[number] for run in real),
            tuple(run[number] for run in other),
        )
        for workload, real, other in zip(workloads, kernel, others, strict=True)
        for number, program in enumerate(workload.programs)
    ]


def _ended(programs: Sequence[dict[str, Any]]) -> list[Ended]:
    """What the director says of a run's programs."""
    found = []
    for program in programs:
        *little_us, big_us = program["on_class_us"]
        found.append(
            Ended(
                program["name"],
                program["report"]["turnaround_ns"],
                program["switches"],
                program["moves"],
                1000 * big_us,
                1000 * sum(little_us),
            )
        )
    return found


INTRODUCTION = f"""\
Written by `make -C lab truth`. The same workloads under each kernel's own scheduler, without sched_ext, and under its model in
the simulator. Kernels for x86-64 treat all cores as equal; those for arm64 are told how fast each core is. Systems
named *energy* also have frequencies and an energy model: schedutil and the HiKey 960's.

Aims: turnaround within {report.MEAN_AIM:.0%} on average and {report.WORST_AIM:.0%} at worst; the share of its time that
a program has on big cores within {100 * report.SHARE_AIM:.0f} points; switches and moves of threads to other cores
within a factor of {report.FACTOR_AIM:g}. There are {{offsets}} start offsets. Each is run twice in the kernel, after
different programs, and simulated with {SEEDS} seeds, because a kernel leaves it to chance whether a core that becomes
idle looks for threads.

*The kernel again* compares the kernel with itself: the same runs in reverse order after a boot. These differences come
from what a kernel remembers between runs, which no simulation of a single run can know.

*The same with noise*: simulated with the background work of an idle system (`--noise {NOISE}`)."""


def section(folder: Path, results: Path, machines: Path, offsets: int, pool: Executor) -> str:
    """Of the page: all systems."""
    found, tables, missed = [], [], []
    fixed: dict[str, list[report.Row]] = {}
    for each in SYSTEMS:
        kernel, policy = measured(each, WORKLOADS, offsets, results), POLICY_OF[each.name]
        other = measured(each, WORKLOADS, offsets, results, REVERSED)
        both = together(kernel, other)
        simulator = simulator_of(each, folder, results, machines)
        rows, noisy = (
            pairs(WORKLOADS, both, simulated(WORKLOADS, offsets, one, policy, pool))
            for one in (simulator, replace(simulator, noise=NOISE))
        )
        again = pairs(WORKLOADS, kernel, other)
        found.append((each.name, f"`{policy}`", rows))
        found.append((each.name, "the same with noise", noisy))
        found.append((each.name, "the kernel again", again))
        missed += causes.misses(each.name, rows, again, noisy, fixed.get(each.costs), offsets)
        fixed[each.name] = rows
        tables += [f"## {each.name}", report.details(rows)]
    costs = {
        each.name: Costs.load(results / f"costs-{each.costs_name}.json") for each in SYSTEMS if not each.costs
    }
    return "\n\n".join(
        [
            INTRODUCTION.format(offsets=offsets),
            report.summary(found),
            "## Causes of misses",
            causes.RULE,
            causes.causes_table(missed),
            "## What scheduling costs there",
            costs_table(costs, ["big", "little"]),
            *tables,
        ]
    )


def show(rows: Sequence[report.Row], *, each_offset: bool) -> None:
    """Prints rows for a terminal."""
    lines = [list(report.HEADER)]
    for row in rows:
        lines.append([cell.replace("`", "") for cell in row.cells()])
        if each_offset:
            parts = row.by_offset(max(1, len(row.simulated) // SEEDS))
            lines += [[f"  offset {number}", *part.columns()] for number, part in enumerate(parts, 1)]
    print(report.aligned(lines))


def main() -> None:
    """Simulates and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--system", default=SYSTEMS[0].name, help="by default %(default)s")
    parser.add_argument("--only", help="workloads, separated by commas (default: all)")
    parser.add_argument("--policy", help="what stands for the kernel's scheduler, if not what the page has")
    parser.add_argument("--noise", default="none", help="what the system does beside (default %(default)s)")
    parser.add_argument("--offsets", type=int, default=OFFSETS, help="the first so many start offsets")
    parser.add_argument("--each", action="store_true", help="print each start offset, too")
    parser.add_argument(
        "--again", action="store_true", help="show the kernel's runs in reverse order instead of simulations"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of what was measured")
    parser.add_argument("--machines", type=Path, default=MACHINES, help="folder of the machines' files")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="simulations at a time")
    arguments = parser.parse_args()
    try:
        found = system(arguments.system)
    except ValueError as error:
        parser.error(f"--system {error}")
    known = {workload.name: workload for workload in WORKLOADS}
    names = arguments.only.split(",") if arguments.only else list(known)
    if not set(names) <= set(known):
        parser.error(f"--only {arguments.only}: some of {', '.join(known)}")
    workloads = [known[name] for name in names]
    kernel = measured(found, workloads, arguments.offsets, arguments.results)
    again = measured(found, workloads, arguments.offsets, arguments.results, REVERSED)
    if arguments.again:
        beside, others = "the kernel again", again
    else:
        kernel = together(kernel, again)
        beside = arguments.policy or POLICY_OF[found.name]
        with (
            tempfile.TemporaryDirectory(prefix="ampsched-truth-") as folder,
            ProcessPoolExecutor(arguments.jobs) as pool,
        ):
            simulator = simulator_of(found, Path(folder), arguments.results, arguments.machines)
            simulator = replace(simulator, noise=arguments.noise)
            others = simulated(workloads, arguments.offsets, simulator, beside, pool)
    rows = pairs(workloads, kernel, others)
    show(rows, each_offset=arguments.each)
    print()
    print(report.aligned([report.SUMMARY, [found.name, beside, *report.figures(rows)]]).replace("`", ""))


if __name__ == "__main__":
    main()
