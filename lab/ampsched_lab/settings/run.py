"""Tries every setting in exact virtual machines: ``make -C lab settings``. It goes on where it was stopped."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ampsched.recording import save
from ampsched.vm.error import VmError
from ampsched.vm.exact import Work, loader, record_calls
from ampsched_lab.campaign.boot import KERNEL, Guest, Scheduler, ours
from ampsched_lab.campaign.run import Group, carry_out
from ampsched_lab.campaign.store import Store
from ampsched_lab.gain.machines import X86
from ampsched_lab.settings.plan import KINDS, LINUX, PLACES, POLICIES, SAMPLE, Kind, Place, exact, mix, words

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "lab/data/settings"


def recording(results: Path, place: Place, kind: Kind, threads: int) -> Path:
    """Where a recording is kept."""
    return results / "recordings" / f"{place.name}-{kind.name}-{threads}.ampr"


def groups(programs: Path, place: Place) -> list[Group]:
    """What is booted: each program with all settings, under Linux and under each policy that there is a loader of."""
    guest = Guest(place.name, exact(place.name), programs)
    found = []
    for scheduler in schedulers():
        policy = LINUX if scheduler.name == KERNEL else scheduler.name
        own = [setting for setting in place.settings() if setting.policy == policy]
        found += [Group(guest, scheduler, tuple(mix(kind, each) for each in own)) for kind in KINDS]
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


def record_all(programs: Path, results: Path, places: Sequence[Place]) -> None:
    """Records each program with each number of threads that the product asks for, where that is missing."""
    for place in places:
        for kind in KINDS:
            for threads in place.recorded():
                out = recording(results, place, kind, threads)
                if not out.exists():
                    _record(programs, place, kind, threads, out)


def _record(programs: Path, place: Place, kind: Kind, threads: int, out: Path) -> None:
    program, *arguments = words(kind, threads)
    work = Work([str(programs / program), *arguments], cwd=Path("/campaign"))
    print(f"recording {out.stem} ...", flush=True)
    done, found = record_calls(exact(place.name), work, machine=place.name)
    if found is None:
        raise SystemExit(f"{out.stem}: did not end: {done.console[-300:]}")
    out.parent.mkdir(parents=True, exist_ok=True)
    save(found, out)


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
    failures: list[str] = []
    for place in places:
        record_all(arguments.dynamic.resolve(), arguments.results, [place])
        own = groups(arguments.programs.resolve(), place)
        failures += carry_out(
            own,
            [[SAMPLE]],
            store,
            jobs=arguments.jobs,
            keep=kept,
            tell=lambda text: print(text, flush=True),
        )
    if failures:
        raise SystemExit(f"{len(failures)} boots have failed: see above; what was measured is kept")


if __name__ == "__main__":
    main()
