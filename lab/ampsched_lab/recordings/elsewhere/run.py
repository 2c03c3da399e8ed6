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
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import fmean, median

import ampsched
from ampsched import Catalog, InputError, Workload
from ampsched.recording import Recording, load, model_error, save
from ampsched.recording.check import check
from ampsched.recording.refusal import refusal
from ampsched.recording.replay import replayed
from ampsched.vm.error import VmError
from ampsched.vm.exact import Exact
from ampsched_lab.recordings.elsewhere import measure
from ampsched_lab.recordings.elsewhere.found import (
    NAMES,
    POLICY,
    RUNS,
    SCHEDULERS,
    Found,
    Scheduler,
    kept_rows,
)
from ampsched_lab.recordings.elsewhere.measure import CALIBRATED_ON, MIPS, Failed, Timed
from ampsched_lab.recordings.elsewhere.page import draw, table_of, text_of
from ampsched_lab.recordings.elsewhere.programs import SETS, Program, build, needed, programs, write_inputs
from ampsched_lab.recordings.exact import machine_text
from ampsched_lab.recordings.programs import chosen

RECORDED_ON = "2B2S"
"""Two fast cores of this machine record a program there."""
SEEDS = (1, 2, 3)


class Campaign:
    """Where its parts are, and what is known so far."""

    def __init__(self, folder: Path, timed: Path, file: Path) -> None:
        """Takes up what is kept in a file."""
        self.folder, self.timed = folder.absolute(), timed.absolute()
        self.recordings = self.folder.with_name("elsewhere-recordings")
        self.recordings.mkdir(parents=True, exist_ok=True)
        self.file, self.rows = file, kept_rows(file)

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
        whys = [(refusal(*each) or "").removeprefix(f"{each[0]}: ") for each in found]
        if paths:
            row.refused = next((why for why in whys if why), "") if all(whys) else ""
            row.follows = fmean(each.follows for *_, each in found)
            row.like = model_error.kind_of(checks[0][1], row.follows)

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
        "--table", type=Path, required=True, help="the product's table of errors, which is written, too"
    )
    parser.add_argument("--set", choices=SETS, default=SETS[0], help="which programs (%(default)s)")
    parser.add_argument(
        "--programs", default="", help="only these, such as pigz,xz; the others' figures stay"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="virtual machines at a time (%(default)s)"
    )
    arguments = parser.parse_args()
    all_programs = programs(arguments.set)
    taken = chosen(parser, all_programs, arguments.programs)
    files = {of: arguments.results / f"{NAMES[of]}.json" for of in SETS}
    own = files[arguments.set]
    campaign = Campaign(arguments.folder, arguments.timed, own)
    write_inputs(campaign.folder)
    for program in taken:
        build(program, campaign.folder)
    _each(campaign.here, taken, campaign, 1)
    _each(campaign.judge, taken, campaign, 1)
    _each(campaign.there, taken, campaign, arguments.jobs)
    _each(campaign.predict, taken, campaign, 1)
    every = [row for file in files.values() for row in kept_rows(file).values()]
    text = text_of(all_programs, campaign.rows, arguments.set, every if arguments.set == SETS[0] else ())
    print(text)
    own.with_suffix(".md").write_text(text, "utf-8")
    draw(all_programs, campaign.rows, own.with_suffix(".svg"))
    table = table_of(every)
    if not table:
        raise SystemExit(
            f"{arguments.table} stays as it is: there is not yet an error for each kind of program"
        )
    arguments.table.write_text(table, "utf-8")


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        raise SystemExit(f"error: {error}") from None
