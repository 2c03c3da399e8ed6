"""The attack: random simulations, references, mutated inputs, kills and faults, and rounds of the task runtime.

    make attack                     the long run; docs/reports/attack/report.md tells of it
    make attack-part                a small part of each, the same in every run
    make attack PARTS=parsers INPUTS=100000 SEED=7 REPORT=out/try
    make attack PARTS=              nothing but the page, written anew

Everything follows from the seed. What fails is printed with the command that repeats it; the exit code is 1 then.
The report keeps what earlier runs of other parts have come to, and says which commit each part has attacked.
"""

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import injections
import kills
import parsers
import records
import surroundings
import tsan as thread_sanitizer
import workers
from progress import Progress, length
from workers import ROOT, Done, Failure

OUT = ROOT / "out" / "attack"
REFUSED_MAX = 0.05
"""Most simulations, of all, that may be refused with good reason."""


@dataclass(frozen=True)
class Task:
    """What is to be done of a part."""

    count: int
    seed: int
    jobs: int
    out: Path
    """An empty folder."""
    keep: bool
    progress: Progress


@dataclass(frozen=True)
class Part:
    """A part of the attack."""

    title: str
    what: str
    """What is done and what must hold, for the report."""
    unit: str
    """What is counted, and the option that says how many."""
    count: int
    run: Callable[[Task], Done]


def simulations(task: Task) -> Done:
    """Random simulations, judged from outside."""
    done = workers.simulations(task.seed, task.count, task.jobs, task.out, task.progress)
    done.notes = [f"{done.refused:,} of the simulations are refused with good reason"]
    if done.refused > REFUSED_MAX * done.count:
        done.failures.append(Failure(f"more than {REFUSED_MAX:.0%} are refused: scenes try little", ""))
    return done


def references(task: Task) -> Done:
    """Simulations beside references, and beside each other."""
    done = workers.references(task.seed, task.count, task.jobs, task.out, task.progress)
    kinds = done.kinds.items()
    done.notes = [f"{kind}: {told['cases']:,} cases, {told['values']:,} values" for kind, told in kinds]
    idle = [kind for kind, told in kinds if not told["values"]]
    done.failures += [Failure(f"{kind}: nothing was compared", "PARTS=references") for kind in idle]
    return done


def inputs(task: Task) -> Done:
    """Mutated texts of every format."""
    return parsers.run(task.count, task.seed, task.jobs, task.out, task.keep, task.progress)


def rounds(task: Task) -> Done:
    """Rounds of the task runtime on real threads."""
    program = workers.build("attack-rounds")
    return workers.rounds(program, task.seed, task.count, task.jobs, task.out, task.progress)


def tsan(task: Task) -> Done:
    """The same with every access to memory watched by ThreadSanitizer."""
    try:
        program, toolchain = thread_sanitizer.build()
    except thread_sanitizer.Missing as missing:
        return Done(skipped=task.count, notes=[f"skipped: {missing}"])
    if not thread_sanitizer.sees_races(program):
        repeat = f"{os.path.relpath(program, ROOT)} --race"
        return Done(failures=[Failure("ThreadSanitizer does not see a race made on purpose", repeat)])
    done = workers.rounds(program, task.seed + 1, task.count, task.jobs, task.out, task.progress)
    done.notes.append(f"watched from the standard library up, with {toolchain.version.split(' (')[0]}")
    return done


def live(task: Task) -> Done:
    """Kills and faults of live sessions."""
    return kills.run(workers.build("ampsched-live"), task.count, task.seed, task.out, task.progress)


def injected(task: Task) -> Done:
    """A fault at a single system call."""
    program = workers.build("ampsched-live")
    return injections.run(program, task.count, task.seed, task.jobs, task.out, task.progress)


def odd_surroundings(task: Task) -> Done:
    """Every command with limits, other users, other namespaces, odd names, or twice at once."""
    program = workers.build("ampsched-live")
    return surroundings.run(program, task.count, task.seed, task.jobs, task.out, task.progress)


PARTS: dict[str, Part] = {
    "simulations": Part(
        "Simulations",
        "Random machines, programs and settings under random policies with random legal parameters. Times, residencies "
        "and energies must add up, whatever the policy the work must be the same, a second run must tell the same "
        "bits, and the trace must tell what the results tell.",
        "simulations",
        1_000_000,
        simulations,
    ),
    "references": Part(
        "References",
        "Random parameters of what can be reckoned otherwise: textbook schedulers that share nothing with the "
        "simulator, and simulations whose results must change in a known way when what is simulated does. Times must "
        "be equal to the nanosecond, but where a tolerance has a reason.",
        "references",
        100_000,
        references,
    ),
    "parsers": Part(
        "Mutated inputs",
        "Texts of every format that is read, mutated by their structure and guided by the code that they reach. Each "
        "is read or refused: no panic, no more than a minute, no more than 1 GB.",
        "inputs",
        10_000_000,
        inputs,
    ),
    "kills": Part(
        "Kills and faults",
        "Sessions that schedule real threads, of which something is killed, stopped or taken away. Whatever it is, "
        "nothing may stay bound, frozen, stopped or with another priority.",
        "kills",
        2_000,
        live,
    ),
    "injections": Part(
        "Injections",
        "One system call fails, once or from then on, while a session runs, its guardian or `restore` puts back, a "
        "program is recorded, or a sweep runs. Nobody panics or hangs, whoever says that all is well is right, and "
        "once calls work again, what was touched is put back and what was recorded is saved.",
        "injections",
        20_000,
        injected,
    ),
    "surroundings": Part(
        "Surroundings",
        "Commands under limits of each resource, as other users, in other namespaces, with names, arguments and "
        "variables of random bytes, with closed and full streams, and two at once. Each works or says what is wrong: "
        "no traceback, no panic, no signal, no hang.",
        "surroundings",
        1_500,
        odd_surroundings,
    ),
    "rounds": Part(
        "Rounds of the task runtime",
        "Random graphs and loops on real threads, within each other, in tasks that create tasks and from several "
        "threads at once; some panic or are cancelled. The results must be those of a sequential run.",
        "rounds",
        1_000_000,
        rounds,
    ),
    "tsan": Part(
        "Rounds with ThreadSanitizer",
        "The same with every access to memory watched: no race.",
        "tsan",
        1_000_000,
        tsan,
    ),
}


class InUse(Exception):
    """Another call works in a folder."""


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """No other call that asks for this, too, works in the folder meanwhile, and whoever is killed leaves it free."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUse(
                f"{folder}: another attack works here (wait for it, or attack in another checkout)"
            ) from None
        yield


def attack(name: str, task: Task) -> records.Record:
    """Runs a part and says at once what it has come to."""
    part, state, start = PARTS[name], records.state(), time.monotonic()
    with alone(task.out):
        shutil.rmtree(task.out, ignore_errors=True)
        task.out.mkdir(parents=True)
        print(f"{part.title}: {task.count:,} ...", flush=True)
        done = part.run(task)
    task.progress.end()
    missing = task.count - done.count - done.skipped
    if missing > 0 and not done.failures:
        done.failures.append(Failure(f"{missing:,} of {task.count:,} have not been done", f"PARTS={name}"))
    seconds = time.monotonic() - start
    print(f"{part.title}: {done.count:,} in {length(seconds)}, {len(done.failures)} failed", flush=True)
    for note in done.notes:
        print(f"  {note}")
    for failure in done.failures:
        print(f"  {failure.what}\n      {failure.repeat}", flush=True)
    return records.record(name, part.title, part.what, task.count, task.seed, state, seconds, done)


def arguments() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default=",".join(PARTS), help="which parts, separated by commas (all)")
    parser.add_argument("--seed", type=int, default=1, help="seed of everything (1)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes side by side (one per CPU)"
    )
    for part in PARTS.values():
        parser.add_argument(
            f"--{part.unit}", type=int, default=part.count, help=f"{part.title.lower()} ({part.count:,})"
        )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="keep new inputs that reach new code in tests/attack/corpus.json.gz",
    )
    parser.add_argument("--report", type=Path, default=OUT, help="folder for the page about it (out/attack)")
    parser.add_argument(
        "--profile", default="attack", help="cargo's profile (attack); dev is that of the tests"
    )
    chosen = parser.parse_args()
    named = {name for name in chosen.parts.split(",") if name}
    if named - set(PARTS):
        parser.error(f"unknown parts {sorted(named - set(PARTS))}; there are {', '.join(PARTS)}")
    chosen.parts = [name for name in PARTS if name in named]
    if chosen.jobs < 1 or any(getattr(chosen, part.unit) < 1 for part in PARTS.values()):
        parser.error("numbers of jobs and of what is done are at least 1")
    return chosen


def main() -> int:
    """Attacks with the chosen parts, in the order of the table."""
    chosen = arguments()
    os.environ[workers.PROFILE] = chosen.profile
    failed = False
    for name in chosen.parts:
        part = PARTS[name]
        count = getattr(chosen, part.unit)
        progress = Progress(part.title, count)
        told = attack(name, Task(count, chosen.seed, chosen.jobs, OUT / name, chosen.keep, progress))
        # At once: a part that takes an hour is not lost if the next is interrupted.
        records.keep(chosen.report, told)
        records.render(chosen.report, list(PARTS))
        failed |= bool(told.failures)
    records.render(chosen.report, list(PARTS))
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except InUse as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(map(str, error.cmd))} ends with {error.returncode}")
