"""What is measured for the claims of HFEE: of programs alone, at fixed frequencies, and of schedulers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Literal, NewType

from ampsched.statistics import Estimate, estimate
from ampsched_lab.papers.hfee import setup
from ampsched_lab.papers.hfee.conditions import FIXED_CLOCK
from ampsched_lab.papers.hfee.runs import grid, schedulers
from ampsched_lab.papers.hfee.runs.programs import Alone
from ampsched_lab.papers.hfee.runs.schedulers import Results, Row
from ampsched_lab.papers.hfee.setup import COMPARED, LINUX, MACHINES, PAPER, SCHEDULERS, WORKLOADS
from ampsched_lab.shared.claims.measured import UNITS, Count, Measurements, Number, Range, one_of
from ampsched_lab.shared.conditions import AS_JUDGED

FLAT = 1e-3
"""A step of uniformity that counts for nothing."""
LABELS = dict(zip(("2+2", "3+3"), MACHINES, strict=True))

Machine = NewType("Machine", str)
Mix = NewType("Mix", str)
Scheduler = NewType("Scheduler", str)
Points = tuple[grid.Point, ...]
READERS: Mapping[object, Callable[[str], object]] = {
    Machine: lambda label: LABELS[one_of("machine", tuple(LABELS))(label)],
    Mix: one_of("workload", WORKLOADS),
    Scheduler: one_of("scheduler", tuple(scheduler.name for scheduler in SCHEDULERS)),
}

of_programs = Measurements()
of_grid = Measurements(READERS)
of_schedulers = Measurements(READERS)
MEASUREMENTS = {"programs": of_programs, "grid": of_grid, "schedulers": of_schedulers}
"""By part of the experiment."""


@of_programs
def modelled_eer(alone: Sequence[Alone]) -> Range:
    """Energy-efficiency ratios by the power model."""
    return Range.of([each.modelled_eer for each in alone])


@of_programs
def equally_fast_below(alone: Sequence[Alone], *, mhz: int) -> Count:
    """For how many programs a big core below a frequency is as fast as a little one at its highest."""
    equal = [each.equal_mhz for each in alone]
    return Count(sum(each is not None and each < mhz for each in equal), len(equal))


@of_programs
def equal_mhz(alone: Sequence[Alone]) -> Range:
    """The big frequencies at which cores are equally fast, of the programs that have one."""
    return Range.of([each.equal_mhz for each in alone if each.equal_mhz is not None], digits=".0f")


@of_grid
def best_below(points: Points, *, mhz: int) -> Count:
    """For how many workloads uniformity is best at a big frequency below that one."""
    return Count(sum(grid.best_big_mhz(points, mix) < mhz for mix in WORKLOADS), len(WORKLOADS))


@of_grid
def best_big_mhz(points: Points, *, mix: Mix) -> Number:
    """The big frequency with the best uniformity."""
    return Number(grid.best_big_mhz(points, mix))


@of_grid
def single_peaks(points: Points) -> Count:
    """For how many workloads uniformity rises with the big frequency up to one peak and falls above."""
    return Count(sum(has_single_peak(grid.along_big(points, mix)) for mix in WORKLOADS), len(WORKLOADS))


def has_single_peak(line: Mapping[int, float]) -> bool:
    """Whether values rise to one peak and fall behind it; steps of less than `FLAT` count for nothing."""
    values = [line[mhz] for mhz in sorted(line)]
    steps = [after - before for before, after in pairwise(values)]
    peak = values.index(max(values))
    return min(steps[:peak], default=0.0) >= -FLAT and max(steps[peak:], default=0.0) <= FLAT


@of_schedulers
def change(
    results: Results,
    *,
    machine: Machine,
    scheduler: Scheduler,
    against: Scheduler,
    metric: Literal["uniformity", "edp_js", "makespan_s", "energy_j"],
) -> Number:
    """The change of the mean over workloads."""
    return Number(results.change(machine, scheduler, against, metric))


@of_schedulers
def big_share(results: Results, *, scheduler: Scheduler) -> Number:
    """The programs' share of time on big cores, on the paper's machine."""
    return Number(_over_mixes(results, scheduler, lambda row: row.big_share))


@of_schedulers
def time_above(results: Results, *, scheduler: Scheduler, mix: Mix, mhz: int) -> Number:
    """The share of time in which the big frequency is above that one, on the paper's machine."""
    rows = results.of(PAPER, mix, scheduler)
    share = Number(estimate([schedulers.share_at_least(row.big_mhz, mhz + 1) for row in rows]))
    return Number(share.value, text=f"above {mhz} MHz for {share.printed(UNITS['% of all'])} of the time")


@of_schedulers
def runs_with_little_changed(results: Results, *, mix: Mix) -> Number:
    """In how many runs of the schedulers of Figure 14 the little frequency changes, on the paper's cores."""
    rows = (row for scheduler in COMPARED for row in results.of(PAPER, mix, scheduler))
    changed = sum(len(row.little_mhz) > 1 for row in rows)
    return Number(changed, text=f"{changed} runs in which it changed")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the causes of misses say of the schedulers: means over workloads and seeds."""

    linux_s: float
    """Makespan under Linux on the paper's machine, geometric mean."""
    min_fair_s: float
    """The same under Min-Fair."""
    big_busy: float
    """For which share of the makespan a big core is busy under Linux on the paper's machine."""
    little_busy: float
    """The same for a little core."""

    @classmethod
    def of(cls, results: Results) -> "Facts":
        """What results of the part "schedulers" say."""

        def mean(value: Callable[[Row], float]) -> float:
            return _over_mixes(results, LINUX.name, value).mean

        cores = setup.machine(PAPER).cores / 2
        return cls(
            linux_s=results.overall(PAPER, LINUX.name, "makespan_s"),
            min_fair_s=results.overall(PAPER, "Min-Fair", "makespan_s"),
            big_busy=mean(lambda row: row.big_s / row.makespan_s / cores),
            little_busy=mean(lambda row: row.little_s / row.makespan_s / cores),
        )


@dataclass(frozen=True, slots=True)
class Tested:
    """What causes say of conditions, on the paper's machine."""

    min_fair_w4_s: float
    """Makespan of W4 under Min-Fair."""
    fixed_w4_s: float
    """The same under HFEE's mapping at a fixed 2 GHz."""

    @classmethod
    def of(cls, results: Mapping[str, Results]) -> "Tested":
        """What results say, by the name of the condition."""
        return cls(
            min_fair_w4_s=results[AS_JUDGED.name].mean(PAPER, "w4", "Min-Fair", "makespan_s").mean,
            fixed_w4_s=results[FIXED_CLOCK.name].mean(PAPER, "w4", "HFEE", "makespan_s").mean,
        )


def _over_mixes(results: Results, scheduler: str, value: Callable[[Row], float]) -> Estimate:
    """Mean over workloads on the paper's machine, interval over seeds."""
    per_mix = [[value(row) for row in results.of(PAPER, mix, scheduler)] for mix in WORKLOADS]
    return estimate([fmean(values) for values in zip(*per_mix, strict=True)])
