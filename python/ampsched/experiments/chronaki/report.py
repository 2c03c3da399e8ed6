"""Runs `reproduce chronaki` and says what came out."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields

from ampsched.execution import Progress
from ampsched.experiments.chronaki import figures, runs
from ampsched.experiments.chronaki.figures import LABELS
from ampsched.experiments.chronaki.measurements import MEASUREMENTS, Facts
from ampsched.experiments.chronaki.runs import Results
from ampsched.experiments.chronaki.setup import (
    BESIDE,
    BIG_MHZ,
    CORES,
    FOUR,
    LINUX,
    LITTLE_MHZ,
    LOOPS,
    METHODS,
    PROGRAMS,
    RATIOS,
    SPINNING,
    WITH_LOOPS,
    Cores,
    Method,
)
from ampsched.experiments.claims.reading import read_claims
from ampsched.experiments.reproduction import Findings, Reproduction
from ampsched.markdown import ALL_BUT_FIRST, table

PARTS = ("programs", "loops")
CLAIMS = read_claims(__package__, MEASUREMENTS, [fact.name for fact in fields(Facts)])


def reproduce(
    only: str | None = None, jobs: int = 0, repeats: int = 3, progress: Progress | None = None
) -> Reproduction:
    """Runs the experiment of Chronaki et al., or a part of it, and judges the claims.

    Args:
        only: One of `PARTS`, or None for all.
        jobs: Processors to use; 0: all. Results do not depend on it.
        repeats: Seeds of the random amounts in the pools of dedup and ferret.
        progress: Called with the number of finished simulations and of all.
    """
    found = Findings("chronaki", only, repeats, CLAIMS)
    if only in (None, "programs"):
        _programs(found, runs.four_and_eight(jobs, repeats, progress), runs.idle_cluster_w(jobs))
    if only in (None, "loops"):
        _loops(found, runs.loops(jobs, repeats, progress))
    return found.reproduction(
        f" on a simulated Exynos 5422 with big cores at {BIG_MHZ} MHz and little ones at {LITTLE_MHZ} MHz; "
        "clusters without cores are off. B+L stands for B big and L little cores, with as many threads. "
        "Programs are the nine of Table 1 with its speed ratios: *static* is the pthreads version with "
        "every thread pinned to a core, *GTS* the same version under ARM's global task scheduling, *task* "
        "the graph of the PARSECSs version fed from one queue by pinned workers, the *loops* are OpenMP's. "
        "Granularities are published for three programs and assumed for the others ([task "
        "programs](../../reference/task-programs.md)). Energy is that of our power model, fitted to "
        "another board of the kind, and covers the two clusters. Nothing was tuned to a claim.",
    )


def _programs(found: Findings, results: Results, idle_w: Mapping[Cores, float]) -> None:
    found.judge("programs", results, facts=asdict(Facts.of(results, idle_w)))
    found.keep("programs", [row.record() for row in results.rows])
    heat = max(row.peak_c for row in results.rows)
    throttled = sum(row.throttled_s > 0 for row in results.rows)
    found.section(
        "programs: Threads, GTS and tasks (Figures 2 to 8)",
        *(found.draw(figure) for figure in figures.all_of(results)),
        "**Means over the nine programs**",
        _means(results, (*METHODS, *BESIDE)),
        f"Two are no methods of the paper. *{SPINNING.name}* is GTS that never moves a thread down "
        f"(`{SPINNING.policy}`), as if threads that wait at a barrier kept their load by spinning. "
        f"*{LINUX.name}* is the pthreads version with threads that are not pinned under `{LINUX.policy}`: a "
        "kernel without the patch that GTS is.",
        f"A cluster without cores is off. If it idled it would draw {idle_w[FOUR[0]]:.2f} W more at 0+4, "
        f"{idle_w[FOUR[-1]]:.2f} W at 4+0. The hottest node reached {heat:.0f} °C; heat capped clocks in "
        f"{throttled} of {len(results.rows)} runs.",
        "**Speed-up of each program under task, and the ideal: big x ratio + little**",
        _against_ideal(results),
    )


def _means(results: Results, methods: Sequence[Method]) -> str:
    rows = (
        [label, method.name, *(f"{results.mean(metric, method, cores).mean:.2f}" for cores in CORES[1:])]
        for metric, label in LABELS.items()
        for method in methods
    )
    return table(["", "", *map(str, CORES[1:])], rows, slice(2, None))


def _against_ideal(results: Results) -> str:
    shown = (*FOUR[1:], CORES[-1])
    heads = [f"{cores}{what}" for cores in shown for what in ("", " ideal")]
    rows = []
    for program in PROGRAMS:
        cells = []
        for cores in shown:
            value = results.mean("speedup", METHODS[-1], cores, [program]).mean
            cells += [f"{value:.2f}", f"{cores.ideal(RATIOS[program]):.2f}"]
        rows.append([program, f"{RATIOS[program]:.2f}", *cells])
    return table(["program", "ratio", *heads], rows, ALL_BUT_FIRST)


def _loops(found: Findings, results: Results) -> None:
    found.judge("loops", results)
    found.keep("loops", [row.record() for row in results.rows])
    shown = CORES[3:]
    rows = (
        [program, method.name, *_speedups(results, program, method, shown)]
        for program in WITH_LOOPS
        for method in LOOPS
    )
    found.section(
        "loops: Loops and tasks (Figure 9)",
        found.draw(figures.loops(results)),
        "**Speed-up over one little core**",
        table(["program", "", *map(str, shown)], rows, slice(2, None)),
    )


def _speedups(results: Results, program: str, method: Method, shown: Sequence[Cores]) -> list[str]:
    return [f"{results.mean('speedup', method, cores, [program]).mean:.2f}" for cores in shown]
