"""Runs `reproduce hfee` and says what came out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from ampsched.experiments.hfee import claims, figures, grid, hold, programs, schedulers
from ampsched.experiments.hfee.hold import EPOCHS, SETTLED, Series
from ampsched.experiments.hfee.programs import Alone
from ampsched.experiments.hfee.schedulers import Results
from ampsched.experiments.hfee.setup import MACHINES, PAPER, SCHEDULERS, UNIFORMITY_THRESHOLD, WORKLOADS
from ampsched.experiments.reproduction import Findings, Reproduction, command_of

if TYPE_CHECKING:
    pass

PARTS = ("programs", "grid", "hold", "schedulers")
RESIDENCY_MIX = "w3"


def reproduce_hfee(
    only: str | None = None, jobs: int = 0, repeats: int = 3, progress: schedulers.Progress | None = None
) -> Reproduction:
    """Runs HFEE's experiments, or a part of them, and judges the claims.

    Args:
        only: One of `PARTS`, or None for all.
        jobs: Processors to use; 0: all. Results do not depend on it.
        repeats: Orders in which the programs of each workload are started.
        progress: Called with the number of finished simulations and of all.
    """
    found = Findings()
    run: Mapping[str, Callable[[], None]] = {
        "programs": lambda: _programs(found, programs.run(jobs)),
        "grid": lambda: _grid(found, grid.run(jobs)),
        "hold": lambda: _hold(found, hold.run(jobs)),
        "schedulers": lambda: _schedulers(found, schedulers.run(jobs, repeats, progress)),
    }
    for part in PARTS:
        if only in (None, part):
            run[part]()
    command = command_of("hfee", only, repeats)
    return found.reproduction(
        title="HFEE (IEEE Transactions on Computers 2020), reproduced in simulation",
        introduction=(
            f"Made by `{command}` on a simulated Exynos 5422: {MACHINES[0]} as in the paper, {MACHINES[1]} as in its authors' "
            "scripts. Programs run at the published instruction rates and lengths, and policies read the published energy-efficiency "
            "ratios; energy is that of our power model, which was fitted to another board of the kind. Nothing was tuned to a claim; "
            "the explanations of the power model and of HFEE's programs tell the rest."
        ),
        rules=claims.RULE,
    )


def _programs(found: Findings, alone: tuple[Alone, ...]) -> None:
    found.claims += claims.programs(alone)
    found.figures["programs.svg"] = partial(figures.draw_programs, alone)
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
    lines = [
        "## programs: Each program alone (Figures 5 to 7)",
        "",
        "![Instruction rate, EER and freq_eq of each program](programs.svg)",
        "",
        "| program | big, 10^9 instr/s | big / little | EER, published | EER, modelled | freq_eq, MHz |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {each.program} | {each.top_ips / 1e9:.2f} | {each.top_ips / each.little_top_ips:.2f} | {each.stated_eer:.2f} "
        f"| {each.modelled_eer:.2f} | {_or_dash(each.equal_mhz)} |"
        for each in alone
    ]
    found.sections.append("\n".join(lines))


def _or_dash(mhz: float | None) -> str:
    return "-" if mhz is None else f"{mhz:.0f}"


def _grid(found: Findings, points: tuple[grid.Point, ...]) -> None:
    found.claims += claims.frequencies(points)
    found.figures["grid.svg"] = partial(figures.draw_grid, points)
    found.figures["along-big.svg"] = partial(figures.draw_along_big, points)
    found.keep("grid", [asdict(point) for point in points])
    lines = [
        "## grid: Uniformity at fixed frequencies (Figures 8 and 9)",
        "",
        "Three big and three little cores, programs where HFEE's ranking puts them, no clock policy.",
        "",
        "![Uniformity at every pair of frequencies](grid.svg)",
        "",
        "![Uniformity along the big frequency](along-big.svg)",
        "",
        "| workload | best big MHz | uniformity there | at 1400 MHz | at 2000 MHz |",
        "|---|---:|---:|---:|---:|",
    ]
    for mix in WORKLOADS:
        line, best = grid.along_big(points, mix), grid.best_big_mhz(points, mix)
        lines.append(f"| {mix.upper()} | {best} | {line[best]:.3f} | {line[1400]:.3f} | {line[2000]:.3f} |")
    found.sections.append("\n".join(lines))


def _hold(found: Findings, series: Sequence[Series]) -> None:
    found.figures["hold.svg"] = partial(figures.draw_hold, series)
    found.keep("hold", [asdict(each) | {"verdict": each.verdict} for each in series])
    lines = [
        "## hold: Does HFEE hold its threshold?",
        "",
        f"Workloads whose programs all run for {EPOCHS} epochs; threshold {UNIFORMITY_THRESHOLD}. *Steady* is the uniformity of what "
        f"was done after epoch {SETTLED}; *reachable* the best at a fixed big frequency of 1300 MHz or more, where HFEE's state machine "
        "can stay: below, it raises the clock whenever uniformity is too low. *Attainable* is the best at any fixed frequency, with "
        "HFEE's mapping. *Since epoch* is from when on the uniformity since the start, which HFEE observes, has stayed above the "
        "threshold.",
        "",
        "![Uniformity and clock, epoch by epoch](hold.svg)",
        "",
        "| machine | workload | steady | reachable | attainable | at MHz | since epoch | verdict |",
        "|---|---|---:|---:|---:|---:|---:|---|",
    ]
    lines += [
        f"| {each.machine} | {each.mix.upper()} | {each.steady:.3f} | {each.reachable:.3f} | {each.attainable:.3f} | {each.attainable_mhz} "
        f"| {each.reached_after or '-'} | {each.verdict} |"
        for each in series
    ]
    found.sections.append("\n".join(lines))


def _schedulers(found: Findings, results: Results) -> None:
    found.claims += claims.comparison(results)
    found.keep("schedulers", [row.record() for row in results.rows])
    lines = ["## schedulers: HFEE and its opponents (Figures 10 to 14)"]
    for machine in MACHINES:
        figure = figures.comparison(results, machine)
        lines += ["", found.draw(figure), "", _changes(results, machine)]
    found.figures["usage.svg"] = partial(figures.draw_usage, results)
    found.figures["residency.svg"] = partial(figures.draw_residency, results, RESIDENCY_MIX)
    lines += [
        "",
        f"![Share of time on big cores, {PAPER}](usage.svg)",
        "",
        f"![Big frequency under {RESIDENCY_MIX.upper()}, {PAPER}](residency.svg)",
    ]
    found.sections.append("\n".join(lines))


def _changes(results: Results, machine: str) -> str:
    """Means over the workloads of every metric and scheduler."""
    lines = [
        f"**{machine}: means over workloads, geometric but of uniformity**",
        "",
        "| | uniformity | makespan s | energy J | power W | EDP kJ s | ED2P MJ s^2 | instructions/nJ "
        "| peak °C, highest | throttled s, most |",
        "|---|" + "---:|" * 9,
    ]

    mean = partial(results.overall, machine)

    for scheduler in SCHEDULERS:
        name = scheduler.name
        throttled = max(results.mean(machine, mix, name, "throttled_s").mean for mix in WORKLOADS)
        peak = max(results.mean(machine, mix, name, "peak_c").mean for mix in WORKLOADS)
        lines.append(
            f"| {name} | {mean(name, 'uniformity'):.3f} | {mean(name, 'makespan_s'):.1f} | {mean(name, 'energy_j'):.1f} "
            f"| {mean(name, 'power_w'):.3f} | {mean(name, 'edp_js') / 1e3:.2f} | {mean(name, 'ed2p_js2') / 1e6:.3f} "
            f"| {mean(name, 'instructions_per_j') / 1e9:.3f} | {peak:.1f} | {throttled:.1f} |"
        )
    return "\n".join(lines)
