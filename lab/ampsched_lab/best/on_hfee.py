"""HFEE's workloads: energy, delay and uniformity under our policy with governors and at fixed frequencies."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from ampsched.markdown import ALL_BUT_FIRST, table
from ampsched.metrics import geometric_mean
from ampsched.report.words import percent
from ampsched_lab.best.aims import Judged
from ampsched_lab.best.choice import POLICY
from ampsched_lab.best.variants import with_energy, with_fairness
from ampsched_lab.papers.hfee import setup
from ampsched_lab.papers.hfee.runs import schedulers
from ampsched_lab.papers.hfee.setup import BIG, COMPARED, LITTLE, PAPER, SCHEDULERS, WORKLOADS, Scheduler

HFEE = "HFEE"
GOVERNORS = ("performance", "ondemand", "schedutil", "powersave")
BIG_MHZ = (600, 800, 1000, 1200, 1400, 1600, 1800, 2000)
"""Fixed frequencies of big cores; little ones are at their highest, as under HFEE."""
FAIRNESS = (0, 2, 5)
PRICED = (with_energy(1), f"{with_energy(1)}:fairness=2")
"""Clocks by the policy itself."""
ORDERS = range(1, 4)
LESS = 0.15
"""Of energy x delay, the aim."""
LESS_TEXT = f"{100 * LESS:.0f} %"


@dataclass(frozen=True, slots=True)
class Row:
    """A scheduler on a workload: means over the orders in which programs are started."""

    mix: str
    scheduler: str
    uniformity: float
    energy_j: float
    makespan_s: float
    edp_js: float
    """Energy x makespan."""


METRICS = ("uniformity", "energy_j", "makespan_s", "edp_js")


def _name(policy: str, clock: str | int) -> str:
    return f"{policy}, {clock} MHz" if isinstance(clock, int) else f"{policy}, {clock}"


def _scheduler(policy: str, clock: str | int) -> Scheduler:
    """A policy with a governor, or with big cores at a fixed frequency in MHz."""
    if isinstance(clock, str):
        return Scheduler(_name(policy, clock), policy, clock)
    top = setup.mhz_of(setup.machine(PAPER), LITTLE)[-1]
    return Scheduler(_name(policy, clock), policy, str(setup.fixed({BIG: clock, LITTLE: top})))


def paper_schedulers() -> tuple[Scheduler, ...]:
    """The schedulers of the paper's claims."""
    return tuple(each for each in SCHEDULERS if each.name in COMPARED)


def opponents() -> dict[str, Scheduler]:
    """By label, those that leave clocks alone and are run at fixed frequencies, too."""
    return {each.name: each for each in paper_schedulers() if each.name in ("Linux", "Min-Fair")}


def ours() -> tuple[Scheduler, ...]:
    """Our policy with every governor, with a price of energy, and with `fairness` at every fixed frequency."""
    governed = [_scheduler(POLICY, governor) for governor in GOVERNORS]
    governed += [_scheduler(priced, GOVERNORS[0]) for priced in PRICED]
    return (*governed, *(_scheduler(with_fairness(value), mhz) for value in FAIRNESS for mhz in BIG_MHZ))


def measure(jobs: int, under: Sequence[Scheduler] = (), orders: range = ORDERS) -> tuple[Row, ...]:
    """Runs all workloads on the paper's machine.

    Args:
        jobs: Processors to use; 0: all. Results do not depend on it.
        under: Schedulers; those of the paper, those at fixed frequencies and ours if there are none.
        orders: Seeds of the orders.
    """
    fixed = [
        replace(_scheduler(str(each.policy), mhz), name=_name(label, mhz))
        for label, each in opponents().items()
        for mhz in BIG_MHZ
    ]
    schedulers_run = tuple(under) or (*paper_schedulers(), *fixed, *ours())
    found = schedulers.run(jobs, orders, machines=[setup.machine(PAPER)], under=schedulers_run)
    means: dict[tuple[str, str], list[schedulers.Row]] = {}
    for row in found.rows:
        means.setdefault((row.mix, row.scheduler), []).append(row)
    return tuple(
        Row(mix, name, *(fmean(getattr(row, metric) for row in rows) for metric in METRICS))
        for (mix, name), rows in means.items()
    )


class Results:
    """Rows by workload and scheduler."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = {(row.mix, row.scheduler): row for row in rows}
        self.schedulers = tuple(dict.fromkeys(row.scheduler for row in rows))
        self.ours = [name for name in self.schedulers if name.startswith(POLICY)]

    def row(self, mix: str, scheduler: str) -> Row:
        """A scheduler on a workload."""
        return self._rows[mix, scheduler]

    def mean(self, scheduler: str, metric: str, mixes: Collection[str] = WORKLOADS) -> float:
        """Over workloads: geometric, but arithmetic of uniformity, which may be below 0; as in HFEE's experiment."""
        mean = fmean if metric == "uniformity" else geometric_mean
        return mean([getattr(self.row(mix, scheduler), metric) for mix in mixes])

    def edp_change(self, scheduler: str, mixes: Collection[str] = WORKLOADS) -> float:
        """Of mean energy x delay against HFEE."""
        return self.mean(scheduler, "edp_js", mixes) / self.mean(HFEE, "edp_js", mixes) - 1.0

    def uniform(self, scheduler: str, mixes: Collection[str] = WORKLOADS) -> bool:
        """Whether mean uniformity is at least HFEE's."""
        return self.mean(scheduler, "uniformity", mixes) >= self.mean(HFEE, "uniformity", mixes)

    def best(self, mixes: Collection[str] = WORKLOADS) -> str:
        """Of ours, the one with the least energy x delay of those that are as uniform as HFEE.

        Raises:
            ValueError: If none is.
        """
        uniform = [name for name in self.ours if self.uniform(name, mixes)]
        return min(uniform, key=lambda name: self.edp_change(name, mixes))

    def by_the_others(self) -> dict[str, str]:
        """By workload, the best of ours on all other workloads."""
        return {mix: self.best([other for other in WORKLOADS if other != mix]) for mix in WORKLOADS}

    def by_itself(self) -> dict[str, str]:
        """By workload, the best of ours on it: what only hindsight tells."""
        return {mix: self.best([mix]) for mix in WORKLOADS}

    def edp_change_of(self, chosen: Mapping[str, str]) -> float:
        """Of mean energy x delay against HFEE if each workload has a scheduler of its own."""
        ratios = [self.row(mix, name).edp_js / self.row(mix, HFEE).edp_js for mix, name in chosen.items()]
        return geometric_mean(ratios) - 1.0

    def uniformity_of(self, chosen: Mapping[str, str]) -> float:
        """Mean uniformity of the same."""
        return fmean(self.row(mix, name).uniformity for mix, name in chosen.items())


def judged(rows: Sequence[Row]) -> list[Judged]:
    """The aim, with frequencies that each workload's own outcome did not choose."""
    found = Results(rows)
    chosen = found.by_the_others()
    change, uniformity = found.edp_change_of(chosen), found.uniformity_of(chosen)
    hfee = found.mean(HFEE, "uniformity")
    return [
        Judged(
            f"HFEE's workloads: at HFEE's uniformity at least {LESS_TEXT} less energy x delay",
            f"{percent(change)} at uniformity {uniformity:.2f} (HFEE {hfee:.2f}), each workload at the frequency and "
            f"`fairness`, or with the price, that are best on the fourteen others; {percent(found.edp_change_of(found.by_itself()))} with "
            f"those that are best on itself; {_by_default(found)}",
            change <= -LESS and uniformity >= hfee,
        )
    ]


def _by_default(found: Results) -> str:
    """What it does with one setting that no outcome chose: at full speed, and with energy x delay as its price."""
    names = {"at full speed by default": POLICY, f"with `{PRICED[0].partition(':')[2]}`": PRICED[0]}
    schedulers = {label: _name(policy, GOVERNORS[0]) for label, policy in names.items()}
    return " and ".join(
        f"{label} {percent(found.edp_change(name))} at {found.mean(name, 'uniformity'):.2f}"
        for label, name in schedulers.items()
        if name in found.schedulers
    )


def section(rows: Sequence[Row]) -> list[str]:
    """Blocks of the report."""
    found = Results(rows)
    chosen = found.by_the_others()
    best = found.best()
    both = [
        mix
        for mix in WORKLOADS
        if found.edp_change_of({mix: chosen[mix]}) <= -LESS and found.uniform(chosen[mix], [mix])
    ]
    mhz = min(BIG_MHZ, key=lambda each: found.edp_change(_name("Min-Fair", each)))
    names = [with_fairness(value) for value in FAIRNESS]
    columns = (*opponents(), *names)
    return [
        "## HFEE's workloads",
        f"With one setting for all, the best of ours at HFEE's uniformity is `{best}`: energy x delay "
        f"{percent(found.edp_change(best))}; with one for each workload it is "
        f"{percent(found.edp_change_of(found.by_itself()))}. "
        f"With what is best on the others, {len(both)} of {len(WORKLOADS)} workloads save {LESS_TEXT} at no less "
        "uniformity than HFEE's there. "
        f"By itself it has {_by_default(found)}. Most of it is the clock's: Min-Fair with big cores at {mhz} MHz changes energy x delay by "
        f"{percent(found.edp_change(_name('Min-Fair', mhz)))}.",
        "**Means over the workloads; energy x delay against HFEE**",
        table(
            ["", "uniformity", "energy, J", "delay, s", "energy x delay"],
            _means(
                found,
                (
                    *(each.name for each in paper_schedulers()),
                    *(_name(POLICY, each) for each in GOVERNORS),
                    *(_name(priced, GOVERNORS[0]) for priced in PRICED),
                ),
            ),
            ALL_BUT_FIRST,
        ),
        "**Energy x delay against HFEE / uniformity, big cores at a fixed frequency, little ones at their highest**",
        table(
            ["MHz", *(name if name in opponents() else f"`{name}`" for name in columns)],
            _fixed(found, columns),
            ALL_BUT_FIRST,
        ),
        "**Each workload, with what is best on the others**",
        table(
            ["workload", "programs", "", "energy x delay", "uniformity", "HFEE's"],
            _workloads(found, chosen),
            slice(3, None),
        ),
    ]


def _means(found: Results, names: Sequence[str]) -> Iterator[list[str]]:
    for name in names:
        yield [
            name,
            f"{found.mean(name, 'uniformity'):.2f}",
            f"{found.mean(name, 'energy_j'):.0f}",
            f"{found.mean(name, 'makespan_s'):.0f}",
            percent(found.edp_change(name)),
        ]


def _fixed(found: Results, labels: Sequence[str]) -> Iterator[list[str]]:
    for mhz in BIG_MHZ:
        names = [_name(label, mhz) for label in labels]
        yield [
            str(mhz),
            *(f"{percent(found.edp_change(each))} / {found.mean(each, 'uniformity'):.2f}" for each in names),
        ]


def _workloads(found: Results, chosen: Mapping[str, str]) -> Iterator[list[str]]:
    for mix, name in chosen.items():
        yield [
            mix,
            setup.CLASSES[mix],
            name,
            percent(found.edp_change_of({mix: name})),
            f"{found.row(mix, name).uniformity:.2f}",
            f"{found.row(mix, HFEE).uniformity:.2f}",
        ]
