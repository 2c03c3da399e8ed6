"""Runs `reproduce hfee` and says what came out."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial

from ampsched.execution import Progress
from ampsched.markdown import ALL_BUT_FIRST, table
from ampsched_lab.papers.hfee import conditions, figures
from ampsched_lab.papers.hfee.measurements import MEASUREMENTS, Facts, Tested
from ampsched_lab.papers.hfee.runs import grid, hold, programs, schedulers
from ampsched_lab.papers.hfee.runs.hold import EPOCHS, SETTLED, Series
from ampsched_lab.papers.hfee.runs.programs import Alone
from ampsched_lab.papers.hfee.runs.schedulers import Results
from ampsched_lab.papers.hfee.setup import (
    MACHINES,
    PAPER,
    SCHEDULERS,
    STAND_INS,
    UNIFORMITY_THRESHOLD,
    WORKLOADS,
)
from ampsched_lab.shared.claims.dependence import dependences
from ampsched_lab.shared.claims.reading import read_claims
from ampsched_lab.shared.conditions import PART
from ampsched_lab.shared.reproduction import Findings, Repeats, Reproduction

PARTS = ("programs", "grid", "hold", "schedulers", PART)
CLAIMS = read_claims(
    __package__, MEASUREMENTS, [fact.name for each in (Facts, Tested) for fact in fields(each)]
)
RESIDENCY_MIX = "w3"


def reproduce(
    only: str | None = None,
    jobs: int = 0,
    repeats: int = 3,
    progress: Progress | None = None,
    max_repeats: int | None = None,
) -> Reproduction:
    """Runs HFEE's experiments, or a part of them, and judges the claims.

    Args:
        only: One of `PARTS`, or None for all.
        jobs: Processors to use; 0: all. Results do not depend on it.
        repeats: Orders in which the programs of each workload are started.
        progress: Called with the number of finished simulations and of all.
        max_repeats: Orders at most where an interval is too wide; `repeats` if None.
    """
    how_many = Repeats.of(repeats, max_repeats)
    found = Findings("hfee", only, how_many, CLAIMS)
    orders = ""
    if only in (None, "programs"):
        _programs(found, programs.run(jobs))
    if only in (None, "grid"):
        _grid(found, grid.run(jobs))
    if only in (None, "hold"):
        _hold(found, hold.run(jobs))
    if only in (None, "schedulers"):
        results, count = how_many.until_narrow(
            lambda seeds, _: schedulers.run(jobs, seeds, progress),
            Results.and_of,
            partial(found.wide, "schedulers"),
        )
    facts = _conditions(found, jobs, repeats, progress) if only in (None, PART) else {}
    if only in (None, "schedulers"):
        _schedulers(found, results, facts)
        orders = f", started in {count} orders"
    return found.reproduction(
        f" on a simulated Exynos 5422: {MACHINES[0]} as in the paper, {MACHINES[1]} as in its authors' "
        f"scripts{orders}. Programs run at the published instruction rates and lengths, and policies read the "
        "published energy-efficiency ratios; energy is that of our power model, which was fitted to "
        "another board of the kind. Nothing was tuned to a claim; the explanations of the power model and "
        "of HFEE's programs tell the rest.",
    )


def _programs(found: Findings, alone: tuple[Alone, ...]) -> None:
    found.judge("programs", alone)
    records = [
        {
            "program": each.program,
            "big_ips": each.top_ips,
            "little_ips": each.little_top_ips,
            "stated_eer": each.stated_eer,
            "modelled_eer": each.modelled_eer,
            "equal_mhz": each.equal_mhz,
        }
        for each in alone
    ]
    found.keep("programs", records)
    heads = [
        "program",
        "big, 10^9 instr/s",
        "big / little",
        "EER, published",
        "EER, modelled",
        "freq_eq, MHz",
    ]
    rows = (
        [
            each.program,
            f"{each.top_ips / 1e9:.2f}",
            f"{each.top_ips / each.little_top_ips:.2f}",
            f"{each.stated_eer:.2f}",
            f"{each.modelled_eer:.2f}",
            "-" if each.equal_mhz is None else f"{each.equal_mhz:.0f}",
        ]
        for each in alone
    )
    title = "Instruction rate, EER and freq_eq of each program"
    found.section(
        "programs: Each program alone (Figures 5 to 7)",
        found.picture("programs", title, partial(figures.draw_programs, alone)),
        table(heads, rows, ALL_BUT_FIRST),
    )


def _grid(found: Findings, points: tuple[grid.Point, ...]) -> None:
    found.judge("grid", points)
    found.keep("grid", [asdict(point) for point in points])
    rows = []
    for mix in WORKLOADS:
        line, best = grid.along_big(points, mix), grid.best_big_mhz(points, mix)
        rows.append([mix.upper(), str(best), *(f"{line[mhz]:.3f}" for mhz in (best, 1400, 2000))])
    heads = ["workload", "best big MHz", "uniformity there", "at 1400 MHz", "at 2000 MHz"]
    draw_grid, draw_line = partial(figures.draw_grid, points), partial(figures.draw_along_big, points)
    found.section(
        "grid: Uniformity at fixed frequencies (Figures 8 and 9)",
        "Three big and three little cores, programs where HFEE's ranking puts them, no clock policy.",
        found.picture("grid", "Uniformity at every pair of frequencies", draw_grid),
        found.picture("along-big", "Uniformity along the big frequency", draw_line),
        table(heads, rows, ALL_BUT_FIRST),
    )


def _hold(found: Findings, series: Sequence[Series]) -> None:
    found.keep("hold", [asdict(each) | {"verdict": each.verdict} for each in series])
    heads = ["machine", "workload", "steady", "reachable", "attainable", "at MHz", "since epoch", "verdict"]
    rows = (
        [
            each.machine,
            each.mix.upper(),
            *(f"{value:.3f}" for value in (each.steady, each.reachable, each.attainable)),
            str(each.attainable_mhz),
            str(each.reached_after or "-"),
            each.verdict,
        ]
        for each in series
    )
    found.section(
        "hold: Does HFEE hold its threshold?",
        f"Workloads whose programs all run for {EPOCHS} epochs; threshold {UNIFORMITY_THRESHOLD}. *Steady* "
        f"is the uniformity of what was done after epoch {SETTLED}; *reachable* the best at a fixed big "
        "frequency of 1300 MHz or more, where HFEE's state machine can stay: below, it raises the clock "
        "whenever uniformity is too low. *Attainable* is the best at any fixed frequency, with HFEE's "
        "mapping. *Since epoch* is from when on the uniformity since the start, which HFEE observes, has "
        "stayed above the threshold.",
        found.picture("hold", "Uniformity and clock, epoch by epoch", partial(figures.draw_hold, series)),
        table(heads, rows, slice(2, -1)),
    )


def _conditions(found: Findings, jobs: int, repeats: int, progress: Progress | None) -> dict[str, object]:
    """Judges the schedulers' claims under each condition; returns what causes say of that."""
    results = conditions.run(jobs, repeats, progress)
    how = (
        f"The claims about schedulers under {len(results) - 1} conditions, each with one thing changed, on the paper's "
        f"machine, started in {repeats} orders."
    )
    found.depends(dependences(CLAIMS.of("schedulers"), results), how)
    return asdict(Tested.of(results))


def _schedulers(found: Findings, results: Results, tested: Mapping[str, object]) -> None:
    others = {each.name: results.with_linux(each) for each in STAND_INS}
    found.judge("schedulers", results, facts=asdict(Facts.of(results)) | dict(tested), stand_ins=others)
    found.keep("schedulers", [row.record() for row in results.rows])
    blocks = []
    for machine in MACHINES:
        title = f"**{machine}: means over workloads, geometric but of uniformity**"
        blocks += [
            found.draw(figures.comparison(results, machine)),
            f"{title}\n\n{_means(results, machine)}",
        ]
    mix = RESIDENCY_MIX.upper()
    draw_residency = partial(figures.draw_residency, results, RESIDENCY_MIX)
    found.section(
        "schedulers: HFEE and its opponents (Figures 10 to 14)",
        *blocks,
        found.picture("usage", f"Share of time on big cores, {PAPER}", partial(figures.draw_usage, results)),
        found.picture("residency", f"Big frequency under {mix}, {PAPER}", draw_residency),
    )


COLUMNS: dict[str, tuple[str, float, str]] = {
    "uniformity": ("uniformity", 1.0, ".3f"),
    "makespan s": ("makespan_s", 1.0, ".1f"),
    "energy J": ("energy_j", 1.0, ".1f"),
    "power W": ("power_w", 1.0, ".3f"),
    "EDP kJ s": ("edp_js", 1e3, ".2f"),
    "ED2P MJ s^2": ("ed2p_js2", 1e6, ".3f"),
    "instructions/nJ": ("instructions_per_j", 1e9, ".3f"),
}
"""Means in the table of schedulers: metric, what it is divided by, format."""
GREATEST = {"peak °C, highest": "peak_c", "throttled s, most": "throttled_s"}
"""The greatest of all workloads."""


def _means(results: Results, machine: str) -> str:
    """Means over the workloads of every metric and scheduler."""
    rows = []
    for scheduler in (each.name for each in (*SCHEDULERS, *STAND_INS)):
        means = (
            f"{results.overall(machine, scheduler, metric) / unit:{shown}}"
            for metric, unit, shown in COLUMNS.values()
        )
        greatest = (
            f"{max(results.mean(machine, mix, scheduler, metric).mean for mix in WORKLOADS):.1f}"
            for metric in GREATEST.values()
        )
        name = f"`{scheduler}`" if scheduler in {each.name for each in STAND_INS} else scheduler
        rows.append([name, *means, *greatest])
    return table(["", *COLUMNS, *GREATEST], rows, ALL_BUT_FIRST)
