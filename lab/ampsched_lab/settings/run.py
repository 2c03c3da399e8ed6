"""Tries every setting in exact virtual machines: ``make -C lab settings``. It goes on where it was stopped."""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from ampsched.recording import Recording, load, save
from ampsched.vm.error import VmError
from ampsched.vm.exact import Work, loader, record_calls
from ampsched_lab.campaign.boot import HOME, KERNEL, Guest, Scheduler, ours
from ampsched_lab.campaign.run import Group, carry_out
from ampsched_lab.campaign.store import Store
from ampsched_lab.gain.machines import X86
from ampsched_lab.settings.judge import cases, recording
from ampsched_lab.settings.plan import (
    AGAIN,
    KINDS,
    LINUX,
    PLACES,
    POLICIES,
    SAMPLE,
    Kind,
    Place,
    exact,
    mix,
    words,
)

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "lab/data/settings"


def groups(programs: Path, place: Place, kind: Kind) -> list[Group]:
    """What is booted: a program with all settings, under Linux and under each policy that there is a loader of."""
    guest = Guest(place.name, exact(place.name), programs)
    found = []
    for scheduler in schedulers():
        policy = LINUX if scheduler.name == KERNEL else scheduler.name
        own = [setting for setting in place.settings() if setting.policy == policy]
        found.append(Group(guest, scheduler, tuple(mix(kind, each) for each in own)))
    return found


def schedulers() -> list[Scheduler]:
    """The kernel's own, and our policies if the program that puts them into kernels was built."""
    try:
        program = loader(X86)
    except VmError as error:
        print(f"policies are not tried: {error}", flush=True)
        return [Scheduler(KERNEL)]
    return [Scheduler(KERNEL), *(ours(policy, program) for policy in POLICIES)]


def kept(row: dict[str, Any]) -> dict[str, Any]:
    """What is judged of a run."""
    [program] = row["programs"]
    return {"turnaround_ns": program["turnaround_ns"]}


def record(programs: Path, results: Path, place: Place, kind: Kind) -> None:
    """Records a program with each number of threads that the product asks for, where that is missing.

    The speed-up is measured with the greatest number and holds for all.
    """
    first, *others = sorted(place.recorded(), reverse=True)
    usual = recording(results, place, kind, first)
    if not usual.exists():
        save(_record(programs, place, kind, first), usual)
    speedup = json.loads(load(usual).info)["speedup"]
    for threads in others:
        out = recording(results, place, kind, threads)
        if not out.exists():
            found = _record(programs, place, kind, threads, measures_speedup=False)
            save(found.with_info(json.dumps({**json.loads(found.info), "speedup": speedup})), out)


def _record(
    programs: Path, place: Place, kind: Kind, threads: int, *, measures_speedup: bool = True
) -> Recording:
    """A recording on as many fast cores, with the speed-up that cores of the slowest kind show."""
    program, *arguments = words(kind, threads)
    work = Work([str(programs / program), *arguments], cwd=HOME)
    print(f"recording {kind.name} with {threads} threads for {place.name} ...", flush=True)
    done, found = record_calls(
        exact(place.name), work, machine=place.machine, measures_speedup=measures_speedup
    )
    if found is None:
        raise SystemExit(f"{kind.name}: did not end: {done.console[-300:]}")
    return found


def again(programs: Path, results: Path, store: Store) -> list[str]:
    """Runs the advised and the best setting of what is missed from further starts; which boots have failed."""
    found = []
    with tempfile.TemporaryDirectory(prefix="ampsched-settings-") as folder:
        for case in cases(results, Path(folder)):
            if not case.row.is_met and case.best.policy == LINUX:
                guest = Guest(case.place.name, exact(case.place.name), programs)
                pair = (mix(case.kind, case.answer.setting), mix(case.kind, case.best))
                found.append(Group(guest, Scheduler(KERNEL), pair))
    return carry_out(found, [AGAIN], store, keep=kept, tell=_tell)


def main() -> None:
    """Records and measures what is missing."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--programs", type=Path, required=True, help="folder of the static programs")
    options.add_argument("--dynamic", type=Path, required=True, help="folder of the same, dynamically linked")
    options.add_argument("--results", type=Path, default=RESULTS, help="what is kept (default: %(default)s)")
    options.add_argument("--machines", default=",".join(place.name for place in PLACES))
    options.add_argument("--jobs", type=int, default=1, help="virtual machines at a time")
    arguments = options.parse_args()
    places = [place for place in PLACES if place.name in arguments.machines.split(",")]
    store = Store(arguments.results)
    (arguments.results / "recordings").mkdir(parents=True, exist_ok=True)
    failures: list[str] = []
    for place in places:
        for kind in KINDS:
            record(arguments.dynamic.resolve(), arguments.results, place, kind)
            own = groups(arguments.programs.resolve(), place, kind)
            failures += carry_out(own, [[SAMPLE]], store, jobs=arguments.jobs, keep=kept, tell=_tell)
    failures += again(arguments.programs.resolve(), arguments.results, store)
    if failures:
        raise SystemExit(f"{len(failures)} boots have failed: see above; what was measured is kept")


def _tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
