"""Linux on cores with two threads: `python -m ampsched_lab.truth.siblings` writes docs/reports/truth/siblings.md.

A measurement, not a test: nothing fails if the figures differ, and nothing is tuned to make them agree.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from statistics import mean
from typing import Any

from ampsched import Catalog, Timeline
from ampsched.markdown import page
from ampsched.vm.exact import Exact
from ampsched.vm.exact.costs import SHARES, ClassCosts
from ampsched.vm.exact.priorities import KERNELS as TAKE_PRIORITIES
from ampsched.vm.exact.siblings import Pairs
from ampsched_lab.campaign.boot import KERNEL, Guest, Scheduler, boot
from ampsched_lab.campaign.plan import Run
from ampsched_lab.campaign.store import Store, digest
from ampsched_lab.shared import summaries
from ampsched_lab.truth.pairs.machine import Costs, machine_file
from ampsched_lab.truth.pairs.report import table
from ampsched_lab.truth.pairs.simulated import Simulator
from ampsched_lab.truth.pairs.systems import MIPS as COSTS_MIPS
from ampsched_lab.truth.pairs.traces import LINE, VALUE
from ampsched_lab.truth.pairs.workloads import Workload, hogs

MACHINE = Catalog.shipped().machine("i7-1360p")
MIPS = (500.0, 360.0)
"""Of P-cores and E-cores, which differ by nothing else: as the core model has it for programs such as swaptions."""
SPEEDS = [MIPS[0] if class_ else MIPS[1] for *_, class_ in MACHINE.clusters]
OFFSETS, KERNELS = (1, 2, 3), ("6.18", "7.3")
WORKLOADS = [Workload(f"hogs-{n}", f"{n} equal hogs", (hogs(n, 500),)) for n in (4, 6, 8, 12, 16, 20)]
"""500 ms at 1000 MIPS are 1 s on a P-core."""
SEES = {"nothing": "none", "priorities": "ITMT"}
"""How the kernel tells cores apart, and what the page calls it."""
HEAD = f"""\
Written by `make -C lab truth-siblings`. Equal hogs, each with 1 s of work for a P-core, on four P-cores of two threads
and eight E-cores (i7-1360P at {MIPS[0]:g} and {MIPS[1]:g} MIPS; of two busy siblings each has 0.6 of its speed): Linux
(x86-64) in an exact virtual machine beside `linux` of the same version, which has the kernel's costs of [the other
pages](linux.md). Averages over {len(OFFSETS)} start offsets. *Mean* and *last*: when hogs have ended, in ms. *Idle
beside shared*: the share of time in which hogs share a P-core while another P-core is wholly idle."""
HEADER = [
    "hogs", "kernel, priorities", "mean, kernel", "simulated", "last, kernel", "simulated", "error (of mean, of last)",
    "idle beside shared, kernel", "simulated",
]  # fmt: skip

Stay = tuple[int, int, int]
"""Core, begin and end in ns of a hog's stay there."""
Ends = tuple[float, float, float]
"""Of a run: mean and last of its hogs' ends in ns, and the share of time with an idle core beside a shared one."""


def beside_idle(stays: Iterable[Stay], pairs: Pairs) -> float:
    """The share of the time in which two hogs share a core while another pair of CPUs is wholly idle."""
    changes = sorted(change for core, begin, end in stays for change in ((begin, 1, core), (end, -1, core)))
    busy: Counter[int] = Counter()
    wasted = 0
    for (at, step, core), (until, *_) in pairwise(changes):
        busy[core] += step
        loads = [busy[one] + busy[other] for one, other, _ in pairs]
        wasted += (until - at) * (2 in loads and 0 in loads)
    return wasted / (changes[-1][0] - changes[0][0])


def kernel_stays(lines: Iterable[str]) -> Iterator[Stay]:
    """Stays of hogs in a kernel's trace."""
    since: dict[int, int] = {}
    for found in filter(None, map(LINE.match, lines)):
        if found["event"] == "sched_switch":
            core, at_ns = int(found["cpu"]), 1000 * (1_000_000 * int(found["s"]) + int(found["us"]))
            if core in since:
                yield core, since.pop(core), at_ns
            if dict(VALUE.findall(found["rest"]))["next_comm"] == "hogs":
                since[core] = at_ns


def guest_of(sees: str, programs: Path, kernel: str = KERNELS[0]) -> Guest:
    """The exact machine with a version of Linux, and with compiled programs."""
    speeds = [ClassCosts(round(1000 * mips), (SHARES,) * 5) for mips in SPEEDS]
    exact = Exact(MACHINE, kernel, speeds=speeds, priorities=sees == "priorities")
    return Guest(f"{MACHINE.name}-{sees}", exact, programs.resolve())


def measure(guest: Guest, store: Store) -> None:
    """Boots the machine once for all runs, unless the store has them."""
    scheduler = Scheduler(KERNEL)
    runs = [Run(workload.mix(), offset) for offset in OFFSETS for workload in WORKLOADS]
    if not store.missing(guest, scheduler, runs):
        return
    rows = []
    with tempfile.TemporaryDirectory(prefix="ampsched-siblings-") as folder:
        for run, told in zip(runs, boot(guest, scheduler, runs, Path(folder)), strict=True):
            with (Path(folder) / f"{run.key}.txt").open(encoding="utf-8", errors="replace") as lines:
                share = beside_idle(kernel_stays(lines), guest.exact.siblings())
            named = {"mix": run.mix.name, "offset": run.offset, "digest": digest(guest, scheduler, run)}
            rows.append(named | {"programs": told["programs"], "beside_idle": share})
    store.add(guest.name, guest.system, scheduler.name, rows)


def kernel_ends(row: dict[str, Any]) -> Ends:
    """Of a run that was measured."""
    ends_ns = [thread["end_ns"] for thread in row["programs"][0]["report"]["threads"]]
    return mean(ends_ns), max(ends_ns), row["beside_idle"]


def simulator(sees: str, folder: Path, costs: Costs) -> Simulator:
    """On a machine with the guest's speeds and siblings; costs, measured on faster cores, grow as these are slower."""
    scales = [fast / own for fast, own in zip(COSTS_MIPS, MIPS, strict=True)]
    own = replace(costs, measured={(name, at): ns * scales[at] for (name, at), ns in costs.measured.items()})
    path = folder / f"{sees}.toml"
    path.write_text(machine_file(sees, "as the guest", MACHINE, SPEEDS, own, sees=sees), "utf-8")
    return Simulator(
        folder, path, own.ns_per_iteration, MIPS[0] / MIPS[1], own.start_us, director_uclamp_min=0
    )


def simulated_ends(found: Timeline) -> Ends:
    """Of a simulation; ends count from when the first hog is made, as in the program."""
    own = {number for number, (*_, name) in enumerate(found.threads) if name.startswith("hog.")}
    threads = [found.outcome.threads[number] for number in own]
    begin_ns = min(thread.start_ns for thread in threads)
    ends_ns = [thread.end_ns - begin_ns for thread in threads]
    stays = [(turn.core, turn.start_ns, turn.end_ns) for turn in found.turns if turn.thread in own]
    return mean(ends_ns), max(ends_ns), beside_idle(stays, found.machine.siblings)


def cells(what: str, priorities: str, kernel: Sequence[Ends], simulated: Sequence[Ends]) -> list[str]:
    """A row of the page, of a run on each side for each offset."""
    real, ours = ([mean(each) for each in zip(*runs, strict=True)] for runs in (kernel, simulated))
    pairs = list(zip(real, ours, strict=True))
    times = [f"{ns / 1e6:.0f}" for pair in pairs[:2] for ns in pair]
    errors = ", ".join(f"{own / measured - 1:+z.1%}" for measured, own in pairs[:2])
    return [what, priorities, *times, errors, *(f"{share:.1%}" for share in pairs[2])]


def rows_of(store: Store, folder: Path, programs: Path) -> Iterator[list[str]]:
    """The page's rows."""
    for (sees, name), version in product(SEES.items(), KERNELS):
        if sees == "priorities" and version not in TAKE_PRIORITIES:
            continue
        costs = Costs.load(store.root / f"costs-eevdf-x86_64-{version}.json")
        guest, own = guest_of(sees, programs, version), simulator(sees, folder, costs)
        measure(guest, store)
        kept = store.read(guest.name, guest.system, KERNEL)
        for workload in WORKLOADS:
            real = [kernel_ends(kept[workload.name, offset]) for offset in OFFSETS]
            starts = map(workload.mix().starts_us, OFFSETS)
            ours = [
                simulated_ends(own.timeline(workload, each, f"linux:kernel={version}")) for each in starts
            ]
            yield cells(workload.what, f"{version}, {name}", real, ours)


def main() -> None:
    """Measures what was not measured yet, simulates, and writes the page."""
    options = argparse.ArgumentParser(description=__doc__)
    for name in ("programs", "results", "page"):
        options.add_argument(name, type=Path)
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="ampsched-siblings-") as folder:
        text = table(HEADER, list(rows_of(Store(arguments.results), Path(folder), arguments.programs)))
    print(text)
    whole = page("# Linux on cores with two threads", HEAD, text)
    summaries.write(arguments.page, whole, summaries.kind_of(arguments.page))


if __name__ == "__main__":
    main()
