"""Recorded here, predicted there: `make -C lab truth-elsewhere`.

Each program of programs.toml is recorded on two CPUs of this computer, as users do. From the recordings alone it is
predicted for machines with unequal cores under Linux; an exact virtual machine with such cores, in virtual time, runs
the same program with the same files. What is fitted to a program is how fast its instructions are: on two fast cores
and on two slow cores of such a machine its CPU time is measured, and the machines are made as fast as this computer for
it. That computer's speed varies from run to run by up to a third, so each recording's CPU time counts as that of the
plain runs. The rule was written before the measurement: the error of a program on a machine under a scheduler is the
mean prediction of its recordings against the mean of the runs there; a program whose recordings `ampsched advise`
refuses counts as refused, and so does one that cannot be recorded.

Linux does not know there which cores are fast, so where a program's threads begin is chance: it runs once with the fast
cores numbered first and once with the slow ones, as it is predicted. Under a policy that knows the cores it runs once.

A program is one speed there: all its instructions take the same time. Here, starting and loading take longer for an
instruction than a loop does. To tell such errors from those of replays, each program is recorded once more, on two fast
cores of a virtual machine, and predicted by that recording too.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

import ampsched
from ampsched import Catalog, InputError, Workload
from ampsched.markdown import wrapped
from ampsched.recording import Recording, load, save
from ampsched.recording.advice import refusal
from ampsched.recording.check import check
from ampsched.recording.replay import replayed
from ampsched.settings import CoreOrder
from ampsched.vm.error import VmError
from ampsched.vm.exact import Exact
from ampsched_lab.gain.machines import LINUX
from ampsched_lab.recordings.elsewhere import measure
from ampsched_lab.recordings.elsewhere.measure import CALIBRATED_ON, MIPS, Failed, Timed
from ampsched_lab.recordings.elsewhere.programs import Program, build, needed, programs, write_inputs
from ampsched_lab.recordings.exact import machine_text
from ampsched_lab.recordings.programs import chosen
from ampsched_lab.shared import plots
from ampsched_lab.shared.summary import opening

FILE, PAGE, FIGURE = "elsewhere.json", "elsewhere.md", "elsewhere.svg"
POLICY = f"linux:kernel={LINUX}"


@dataclass(frozen=True)
class Scheduler:
    """What schedules in a virtual machine.

    Attributes:
        policy: What predicts.
        loaded: What is loaded into the kernel; empty if Linux schedules.
        orders: How cores are numbered, a run each.
    """

    policy: str
    loaded: str
    orders: tuple[CoreOrder, ...]


SCHEDULERS = {
    "linux": Scheduler(POLICY, "", ("big-first", "little-first")),
    "acfs": Scheduler("acfs", "acfs", ("big-first",)),
}
"""Linux, and of our policies that know the cores the one with the fewest rules."""
AWARE = "acfs"
RECORDED_ON = "2B2S"
"""Two fast cores of this machine record a program there."""
RUNS = 3
SEEDS = (1, 2, 3)
MEAN_AIM, WORST_AIM, ACCEPTED_AIM = 0.06, 0.15, 20


@dataclass
class Found:
    """What is known of a program; times in ns, of this computer or of a virtual machine.

    Attributes:
        plain: Wall and CPU time here, of several runs.
        refused: Why it is refused; empty if it is not.
        follows: Share of its time that follows the cores, as the recording tells it.
        mips: Million instructions per second of a machine that is as fast as this computer for it, by the machine.
        fast, slow: Wall and CPU time on two fast cores at 1000 MIPS, and on two slow ones of such a machine.
        measured: Wall time by scheduler and machine, of each order of the cores.
        predicted: Mean of the recordings, orders and seeds, by scheduler and machine.
        predicted_there: The same by the recording on two fast cores of a virtual machine.
        failed: What went wrong in a virtual machine.
    """

    plain: list[Timed] = field(default_factory=list)
    refused: str = ""
    follows: float = 0.0
    mips: dict[str, float] = field(default_factory=dict)
    fast: dict[str, Timed] = field(default_factory=dict)
    slow: dict[str, Timed] = field(default_factory=dict)
    measured: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    predicted: dict[str, dict[str, float]] = field(default_factory=dict)
    predicted_there: dict[str, dict[str, float]] = field(default_factory=dict)
    failed: str = ""

    def speedup(self, machine: str) -> float:
        """Of its CPU time, from a machine's slow cores to its fast ones; 0 if it is not known."""
        on = CALIBRATED_ON[machine]
        if on not in self.slow:
            return 0.0
        return self.slow[on].cpu_ns / (self.fast[on].cpu_ns * MIPS / self.mips[on])

    @property
    def is_known(self) -> bool:
        """Whether there is something to say of it."""
        return bool(self.refused or self.failed or self.measured)

    def errors(self, scheduler: str, is_there: bool = False) -> dict[str, float]:
        """0.05: predicted to take 5 % too long; by machine. By recordings of this computer, or by that made there."""
        measured = self.measured.get(scheduler, {})
        predicted = (self.predicted_there if is_there else self.predicted).get(scheduler, {})
        return {
            name: predicted[name] / fmean(times) - 1 for name, times in measured.items() if name in predicted
        }


def _found(kept: Mapping[str, Any]) -> Found:
    timed = {
        name: {machine: Timed(**each) for machine, each in kept[name].items()} for name in ("fast", "slow")
    }
    return Found(**{**kept, **timed, "plain": [Timed(**each) for each in kept["plain"]]})


class Campaign:
    """Where its parts are, and what is known so far."""

    def __init__(self, folder: Path, timed: Path, results: Path) -> None:
        """Takes up what is kept."""
        self.folder, self.timed = folder.absolute(), timed.absolute()
        self.recordings = self.folder.with_name("elsewhere-recordings")
        self.recordings.mkdir(parents=True, exist_ok=True)
        self.file = results / FILE
        rows = json.loads(self.file.read_text("utf-8"))["rows"] if self.file.exists() else {}
        self.rows = {name: _found(row) for name, row in rows.items()}

    def keep(self) -> None:
        """Writes what is known."""
        rows = {name: asdict(row) for name, row in self.rows.items()}
        self.file.write_text(json.dumps({"rows": rows}, indent=1) + "\n", "utf-8")

    def paths(self, program: Program) -> list[Path]:
        """Its recordings."""
        return [self.recordings / f"{program.name}-{number}.ampr" for number in range(RUNS)]

    def here(self, program: Program) -> None:
        """Runs and records it here, if it has not been."""
        row = self.rows.setdefault(program.name, Found())
        if row.predicted or (row.plain and all(path.exists() for path in self.paths(program))):
            return
        plain = []
        for path in self.paths(program):
            plain.append(measure.plain(program, self.folder, self.timed))
            path.unlink(missing_ok=True)
            row.refused = row.refused or measure.recorded(program, self.folder, path)
        row.plain = plain
        print(
            f"{program.name}: {median(each.wall_ns for each in plain) / 1e6:.0f} ms here; {row.refused}",
            flush=True,
        )

    def judge(self, program: Program) -> None:
        """Whether `advise` would take its recordings."""
        row, catalog = self.rows[program.name], Catalog.shipped()
        paths = [path for path in self.paths(program) if path.exists()]
        checks = [(path, load(path)) for path in paths]
        found = [(path, recording, check(recording, path, catalog, POLICY)) for path, recording in checks]
        whys = [refusal(*each) for each in found]
        if paths:
            row.refused = next((why for why in whys if why), "") if all(whys) else ""
            row.follows = fmean(each.follows for *_, each in found)

    def there(self, program: Program) -> None:
        """Runs it in virtual machines, where it has not been."""
        row = self.rows[program.name]
        is_recorded = row.predicted_there or self.path_there(program).exists()
        if is_recorded and all(
            _is_done(row, name, machine) for name in SCHEDULERS for machine in CALIBRATED_ON
        ):
            return
        files = needed(program, self.folder)

        def timed(exact: Exact, policy: str = "") -> Timed:
            return measure.there(program, exact, self.folder, self.timed, files, policy)

        try:
            _calibrate(row, timed)
            for name, scheduler in SCHEDULERS.items():
                under = partial(timed, policy=scheduler.loaded)
                for machine in CALIBRATED_ON:
                    _measure(row, name, machine, under)
            self.record_there(program, files)
            row.failed = ""
        except (Failed, VmError, InputError) as error:
            row.failed = str(error)
        print(f"{program.name}: {row.failed or 'done'}", flush=True)

    def path_there(self, program: Program) -> Path:
        """Its recording on two fast cores of a virtual machine."""
        return self.recordings / f"{program.name}-there.ampr"

    def record_there(self, program: Program, files: measure.Needed) -> None:
        """Records it there, if it has not been."""
        path, row = self.path_there(program), self.rows[program.name]
        if not path.exists() and not row.predicted_there:
            exact = measure.two("fast", RECORDED_ON, row.mips[RECORDED_ON])
            save(measure.recorded_there(program, exact, self.folder, files), path)

    def predict(self, program: Program) -> None:
        """Predicts it from its recordings for all machines."""
        row = self.rows[program.name]
        for paths, predicted in (
            (self.paths(program), row.predicted),
            ([self.path_there(program)], row.predicted_there),
        ):
            recorded = [(load(path), path) for path in paths if path.exists()]
            if recorded:
                _predict(row, recorded, predicted)


def _predict(
    row: Found, recorded: Sequence[tuple[Recording, Path]], predicted: dict[str, dict[str, float]]
) -> None:
    """Predicts a program from recordings for all machines."""
    catalog = Catalog.shipped()
    # How fast this computer is varies from run to run; CPU time tells how fast it was.
    cpu_ns = median(each.cpu_ns for each in row.plain)
    for machine, on in CALIBRATED_ON.items():
        speedup = row.speedup(machine)
        if not speedup:
            continue
        replays = [
            replayed(catalog, recording, path, speedup=speedup, speed=recording.cpu_ns / cpu_ns).workload
            for recording, path in recorded
        ]
        text = machine_text(machine, MIPS / row.mips[on])
        for name, scheduler in SCHEDULERS.items():
            predicted.setdefault(name, {})[machine] = _mean_makespan_ns(text, replays, scheduler)


def _calibrate(row: Found, timed: Callable[[Exact], Timed]) -> None:
    """How fast it is on fast and on slow cores, where that is not known."""
    for on in dict.fromkeys(CALIBRATED_ON.values()):
        if on not in row.slow:
            row.fast[on] = timed(measure.two("fast", on))
            row.mips[on] = MIPS * row.fast[on].cpu_ns / median(each.cpu_ns for each in row.plain)
            row.slow[on] = timed(measure.two("slow", on, row.mips[on]))


def _measure(row: Found, scheduler: str, machine: str, timed: Callable[[Exact], Timed]) -> None:
    """How long it takes there, in the orders of cores that are not known."""
    times = row.measured.setdefault(scheduler, {}).setdefault(machine, [])
    for order in SCHEDULERS[scheduler].orders[len(times) :]:
        times.append(timed(measure.machine(machine, row.mips[CALIBRATED_ON[machine]], order)).wall_ns)


def _is_done(row: Found, scheduler: str, machine: str) -> bool:
    return len(row.measured.get(scheduler, {}).get(machine, [])) == len(SCHEDULERS[scheduler].orders)


def _mean_makespan_ns(machine: str, workloads: Sequence[Workload], scheduler: Scheduler) -> float:
    """Over workloads, orders of cores and seeds, on a machine by the text of its file."""
    with tempfile.TemporaryDirectory(prefix="ampsched-elsewhere-") as name:
        own = Path(name) / "machine.toml"
        own.write_text(machine, "utf-8")
        runs = [
            ampsched.simulate(own, workload, scheduler.policy, limit_s=600, core_order=order, seed=seed)
            for workload in workloads
            for order in scheduler.orders
            for seed in SEEDS
        ]
    return fmean(run.makespan_ns for run in runs)


HEAD = """# Recorded on one computer, predicted for others

<!-- Written by make -C lab truth-elsewhere. -->

{answer}

Each program is recorded on two equal cores of an ordinary computer, as users do. From the recordings alone it is
predicted for machines with unequal cores. An exact virtual machine with such cores then runs the same program with the
same files, in virtual time. Only how fast a program's instructions are on either kind of core is fitted: its CPU time
on two fast and on two slow cores of such a machine tells, and, as the computer's speed varies from run to run, that of
plain runs how fast it was while it recorded. The 24 programs and the rule were written down before the
measurement: the error is the mean prediction of {runs} recordings against the runs there, and a program counts as
refused if `ampsched advise` refuses all its recordings, or if it cannot be recorded.

Linux does not know in these machines which cores are fast. Where a program's threads begin is chance there, and a
program of one thread takes 1 or 2.7 times as long by that; so it runs, and is predicted, twice: with the fast cores
numbered first, and with the slow ones. Under `acfs`, which knows the cores, chance has less to say, and errors are
those of the recordings.

All instructions take the same time in these machines. On the computer that records they do not: what starts and loads
programs takes longer for an instruction than a loop does, as it meets cold caches. One speed for a whole program can't
tell that: `node` has worked for 70 to 110 ms here when its script begins, and for 23 ms there, so it is predicted to
take too long. To tell such errors from those of replays, each program is also recorded on two fast cores of such a
machine, once, as all runs there are alike.

That replays hand out work anew was built with `pigz`, `xargs`, `rayon`, `python-threads`, `python-multiprocessing`,
`go`, `jvm`, `tbb` and OpenMP's programs in view; the others judge it.
"""


def text_of(all_programs: Sequence[Program], rows: Mapping[str, Found]) -> str:
    """The page."""
    tried = [(program, rows.get(program.name, Found())) for program in all_programs]
    known = [(program, row) for program, row in tried if row.is_known]
    taken = [(program, row) for program, row in known if not row.refused and row.predicted]
    one, other = (f"`{name}`, {_mean(_errors(taken, name))}" for name in SCHEDULERS)
    there = _mean(_errors(taken, AWARE, is_there=True))
    answer = opening(
        [
            f"**{len(taken)} of {len(known)} programs are accepted (aim: {ACCEPTED_AIM} of {len(tried)}).**",
            f"Under a scheduler that knows the cores, {other}; by recordings made on two fast cores of such a "
            f"machine, whose instructions take as long, {there}.",
            f"Under one that does not, so that placing is chance, {one}.",
        ],
        FIGURE,
        "Errors of predicted times by program",
    )
    lines = [HEAD.format(answer=answer, runs=RUNS)]
    for name in SCHEDULERS:
        lines += [f"## Errors of predicted times under `{name}`", "", *_table(known, name), ""]
    lines += [
        f"## Errors by recordings made there, under `{AWARE}`",
        "",
        *_table(known, AWARE, is_there=True),
        "",
    ]
    lines += ["## By kind of program", "", *_kinds(taken), ""]
    if left := [f"`{program.name}`" for program, row in tried if not row.is_known]:
        lines += [f"Not measured yet: {', '.join(left)}.", ""]
    lines += ["## What went wrong", ""]
    wrong = [(program, row.refused or row.failed) for program, row in known if row.refused or row.failed]
    lines += [f"* `{program.name}`: {' '.join(why.split())}" for program, why in wrong] or ["Nothing."]
    return wrapped("\n".join(lines) + "\n")


Known = Sequence[tuple[Program, Found]]


def _errors(known: Known, scheduler: str, is_there: bool = False) -> list[float]:
    return [error for _, row in known for error in row.errors(scheduler, is_there).values()]


def _kinds(taken: Known) -> list[str]:
    """A row for each kind of program."""
    ways = {name: (name, False) for name in SCHEDULERS} | {f"{AWARE}, recorded there": (AWARE, True)}
    heads = " | ".join(f"{way}: mean error | worst" for way in ways)
    lines = [f"| kind | programs | {heads} |", "|---|---|" + "---|---|" * len(ways)]
    for kind in dict.fromkeys(program.kind for program, _ in taken):
        own = [(program, row) for program, row in taken if program.kind == kind]
        found = [_errors(own, *way) for way in ways.values()]
        cells = [
            f"{fmean(map(abs, errors)):.1%} | {max(errors, key=abs):+.1%}" if errors else " | "
            for errors in found
        ]
        lines.append(f"| {kind} | {len(own)} | {' | '.join(cells)} |")
    return lines


def _mean(errors: Sequence[float]) -> str:
    """The mean error, and the worst, in words."""
    if not errors:
        return "nothing is known"
    mean, worst = fmean(map(abs, errors)), max(errors, key=abs)
    return (
        f"predicted times are {mean:.1%} off on average (aim: {MEAN_AIM:.0%}) and {worst:+.1%} at worst "
        f"(aim: {WORST_AIM:.0%})"
    )


def draw(all_programs: Sequence[Program], rows: Mapping[str, Found], path: Path) -> None:
    """A row of marks for each program under the scheduler that knows the cores, and one of all under Linux."""
    unaware, aware = SCHEDULERS
    known = [(program, rows[program.name]) for program in all_programs if program.name in rows]
    taken = [(program, row) for program, row in known if row.predicted]
    strips = {f"{program.name}, {aware}": list(row.errors(aware).values()) for program, row in taken}
    strips[f"all, {aware}, recorded there"] = _errors(taken, aware, is_there=True)
    strips[f"all, {unaware}"] = _errors(taken, unaware)
    per_cent = {name: [100 * error for error in errors] for name, errors in strips.items() if errors}
    plots.strips(path, "How far predicted times are off elsewhere", per_cent, "error of the time, %", (0,))


def _table(known: Known, scheduler: str, is_there: bool = False) -> list[str]:
    names = list(CALIBRATED_ON)
    lines = [
        f"| program | kind | here, ms | follows the cores | gain of fast cores | {' | '.join(names)} | |",
        "|---|---|---|---|---|" + "---|" * len(names) + "---|",
    ]
    for program, row in known:
        errors = row.errors(scheduler, is_there)
        cells = [f"{errors[name]:+.1%}" if name in errors else "" for name in names]
        note = "refused" if row.refused else "did not run there" if row.failed else ""
        here = median(each.wall_ns for each in row.plain) / 1e6
        facts = [f"{program.name}: {program.what}", program.kind, f"{here:,.0f}", f"{row.follows:.0%}"]
        lines.append(f"| {' | '.join([*facts, f'{row.speedup(names[0]):.2f}', *cells, note])} |")
    return lines


def _each(
    step: Callable[[Program], None], programs: Sequence[Program], campaign: Campaign, jobs: int
) -> None:
    """A step for each program, several at a time; what is known is kept after each."""
    with ThreadPoolExecutor(jobs) as pool:
        for _ in pool.map(step, programs):
            campaign.keep()


def main() -> None:
    """Records, runs, predicts, prints and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--folder", type=Path, required=True, help="folder of the inputs; the same in the machines"
    )
    parser.add_argument("--timed", type=Path, required=True, help="timed.c, compiled with -static")
    parser.add_argument("--results", type=Path, required=True, help="folder of the page and of what is kept")
    parser.add_argument(
        "--programs", default="", help="only these, such as pigz,xz; the others' figures stay"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="virtual machines at a time (%(default)s)"
    )
    arguments = parser.parse_args()
    taken = chosen(parser, programs(), arguments.programs)
    campaign = Campaign(arguments.folder, arguments.timed, arguments.results)
    write_inputs(campaign.folder)
    for program in taken:
        build(program, campaign.folder)
    _each(campaign.here, taken, campaign, 1)
    _each(campaign.judge, taken, campaign, 1)
    _each(campaign.there, taken, campaign, arguments.jobs)
    _each(campaign.predict, taken, campaign, 1)
    text = text_of(programs(), campaign.rows)
    print(text)
    (arguments.results / PAGE).write_text(text, "utf-8")
    draw(programs(), campaign.rows, arguments.results / FIGURE)


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        raise SystemExit(f"error: {error}") from None
