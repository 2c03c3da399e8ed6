"""Runs `reproduce chronaki` and says what came out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial

from ampsched.execution import Progress
from ampsched.markdown import ALL_BUT_FIRST, table
from ampsched_lab.papers.chronaki import cats, conditions, figures, runs
from ampsched_lab.papers.chronaki.figures import LABELS
from ampsched_lab.papers.chronaki.measurements import MEASUREMENTS, Facts
from ampsched_lab.papers.chronaki.runs import Results
from ampsched_lab.papers.chronaki.setup import (
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
from ampsched_lab.shared.claims.dependence import dependences
from ampsched_lab.shared.claims.reading import read_claims
from ampsched_lab.shared.conditions import PART
from ampsched_lab.shared.reproduction import Findings, Repeats, Reproduction, seeds_text

PARTS = ("programs", "loops", cats.PART, PART)
CLAIMS = read_claims(__package__, MEASUREMENTS, [fact.name for fact in fields(Facts)])


def reproduce(
    only: str | None = None,
    jobs: int = 0,
    repeats: int = 3,
    progress: Progress | None = None,
    max_repeats: int | None = None,
) -> Reproduction:
    """Runs the experiment of Chronaki et al., or a part of it, and judges the claims.

    Args:
        only: One of `PARTS`, or None for all.
        jobs: Processors to use; 0: all. Results do not depend on it.
        repeats: Seeds of the random amounts in the pools of dedup and ferret.
        progress: Called with the number of finished simulations and of all.
        max_repeats: Seeds at most where an interval is too wide; `repeats` if None.
    """
    how_many = Repeats.of(repeats, max_repeats)
    found = Findings("chronaki", only, how_many, CLAIMS)
    results, seeds = {}, {}
    for part, run in (("programs", runs.four_and_eight), ("loops", runs.loops)):
        if only in (None, part):
            results[part], seeds[part] = _run(found, part, run, jobs, how_many, progress)
    if "programs" in results:
        _programs(found, results["programs"], runs.idle_cluster_w(jobs))
    if "loops" in results:
        _loops(found, results["loops"])
    if only in (None, cats.PART):
        _cats(found, cats.run(jobs, range(1, repeats + 1), progress), repeats)
    if only in (None, PART):
        _conditions(found, results, jobs, repeats, progress)
    return found.reproduction(
        f", {seeds_text(seeds or {'': repeats})}, on a simulated Exynos 5422 with big cores at {BIG_MHZ} MHz and little "
        f"ones at {LITTLE_MHZ} MHz; "
        "clusters without cores are off. B+L stands for B big and L little cores, with as many threads. "
        "Programs are the nine of Table 1 with its speed ratios: *static* is the pthreads version with "
        "every thread pinned to a core, *GTS* the same version under ARM's global task scheduling, *task* "
        "the graph of the PARSECSs version fed from one queue by pinned workers, the *loops* are OpenMP's. "
        "Granularities are published for three programs and assumed for the others ([task "
        "programs](../../reference/task-programs.md)). Energy is that of our power model, fitted to "
        "another board of the kind, and covers the two clusters. Nothing was tuned to a claim.",
    )


def _conditions(
    found: Findings, known: Mapping[str, Results], jobs: int, repeats: int, progress: Progress | None
) -> None:
    """Judges all claims under each condition; parts that are not known are run first."""
    seeds = range(1, repeats + 1)
    programs = known.get("programs") or runs.four_and_eight(jobs, seeds, progress)
    loops = known.get("loops") or runs.loops(jobs, seeds, progress)
    idle_w = runs.idle_cluster_w(jobs)
    under = conditions.of_programs(programs, idle_w, jobs, repeats, progress)
    again = conditions.of_loops(loops, jobs, repeats, progress)
    found.depends(
        [*dependences(CLAIMS.of("programs"), under), *dependences(CLAIMS.of("loops"), again)],
        f"All claims under {len(again) - 1} conditions, and those of sections 5.1 and 5.2 under {len(under) - 1}, each "
        f"with one thing changed, seeds 1 to {repeats}. Every program states its ratio of speeds (Table 1), so that "
        "other clocks of the little cores would change nothing; the ratios themselves are changed. Programs run alone, "
        "so that other lengths change how much waits and decisions weigh.",
    )


def _cats(found: Findings, results: Mapping[str, Results], repeats: int) -> None:
    found.keep(
        cats.PART,
        [row.record() | {"policy": policy} for policy, each in results.items() for row in each.rows],
    )
    found.section(
        "cats: Ablations of CATS",
        "CATS feeds the workers of the task versions in the place of the one queue: each of its rules alone and "
        f"removed, seeds 1 to {repeats}. Less is faster. The paper does not use it; its authors did in 2015. "
        f"{cats.summary(results)}",
        *cats.tables(results),
    )


def _run(
    found: Findings,
    part: str,
    run: Callable[[int, range, Progress | None], Results],
    jobs: int,
    repeats: Repeats,
    progress: Progress | None,
) -> tuple[Results, int]:
    """A part's results, and with how many seeds."""
    wide = partial(found.wide, part)
    return repeats.until_narrow(lambda seeds, _: run(jobs, seeds, progress), Results.and_of, wide)


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
