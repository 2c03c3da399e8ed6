"""Programs of the attack, and numbered work in several processes, which goes on behind what ends a process."""

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from progress import Progress

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"ampsched-live": "ampsched-live-cli"}
PROFILE = "ATTACK_PROFILE"
"""Names cargo's profile for programs of this workspace."""
STARTS_MAX = 50
"""Work that ends processes more often is given up."""


@dataclass(frozen=True)
class Failure:
    """Something that does not hold."""

    what: str
    repeat: str


@dataclass
class Done:
    """What was done."""

    count: int = 0
    refused: int = 0
    """Of these, what was refused with good reason."""
    skipped: int = 0
    """Not done, because it cannot be done here; a note says why."""
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    kinds: dict[str, Counter[str]] = field(default_factory=dict)
    """Of each kind the cases, and the values that were compared, if the program tells kinds."""


def total(parts: Iterable[Done]) -> Done:
    """The sum."""
    all_ = Done()
    for part in parts:
        all_.count += part.count
        all_.refused += part.refused
        all_.skipped += part.skipped
        all_.failures += part.failures
        all_.notes += part.notes
        for kind, counts in part.kinds.items():
            all_.kinds.setdefault(kind, Counter()).update(counts)
    return all_


def target_dir() -> Path:
    """Where cargo builds."""
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


def cargo(
    *arguments: str, profile: str = "attack", cwd: Path = ROOT, environment: dict[str, str] | None = None
) -> None:
    """Builds with optimisation and every check on; what is named of the environment is set in addition."""
    command = ["cargo", "build", "--locked", "--quiet", "--profile", profile, *arguments]
    subprocess.run(command, cwd=cwd, check=True, env={**os.environ, **(environment or {})})


def build(program: str) -> Path:
    """Builds a program of this workspace."""
    profile = os.environ.get(PROFILE, "attack")
    cargo("-p", PACKAGES.get(program, "ampsched-attack"), "--bin", program, profile=profile)
    return target_dir() / {"dev": "debug"}.get(profile, profile) / program


def host() -> str:
    """The triple of this computer."""
    told = subprocess.run(["rustc", "-vV"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return next(line.removeprefix("host: ") for line in told.splitlines() if line.startswith("host: "))


def environment() -> dict[str, str]:
    """Races are printed and end the process."""
    return {**os.environ, "TSAN_OPTIONS": "halt_on_error=1:exitcode=66"}


@dataclass(frozen=True)
class Job:
    """A share of numbered work: numbers from `first` in steps, until `count` is done."""

    program: Path
    seed: int
    first: int
    step: int
    unit: str
    """The option that says how much is to be done."""
    count: int
    alone: str
    """The arguments that repeat one number."""
    file: Path
    """There the program writes which number is at work, how much is done before it and how much of that was refused."""

    def command(self, first: int, count: int) -> list[str]:
        """Goes on from a number."""
        steps = ["--step", str(self.step)] if self.step > 1 else []
        share = ["--first", str(first), *steps, self.unit, str(count), "--progress", str(self.file)]
        return [str(self.program), "--seed", str(self.seed), *share]

    def repeat(self, number: int) -> str:
        """How one number is repeated."""
        return f"{os.path.relpath(self.program, ROOT)} --seed {self.seed} {self.alone.format(number)}"

    def at_work(self) -> tuple[int, int, int]:
        """The number that is at work, what is done before it and refused of that; number -1: nothing has begun."""
        told = self.file.read_text().split() if self.file.exists() else []
        return tuple(map(int, told)) if len(told) == 3 else (-1, 0, 0)  # type: ignore[return-value]


class Worker:
    """Does a job by one process after the other."""

    def __init__(self, job: Job) -> None:
        self.job, self.done = job, Done()
        self.process: subprocess.Popen[str] | None = None
        self.stopped = False

    def so_far(self) -> int:
        """How much is done by now."""
        before, (_, done, _) = self.done.count, self.job.at_work()
        return before + done

    def stop(self) -> None:
        """Ends the process, and no other is started."""
        self.stopped = True
        if self.process:
            self.process.kill()

    def run(self) -> Done:
        """Until all is done, or too many processes have crashed."""
        first = self.job.first
        for _ in range(STARTS_MAX):
            at = self.part(first, self.job.count - self.done.count)
            if at < 0 or self.done.count >= self.job.count:
                break
            first = at + self.job.step
        return self.done

    def part(self, first: int, count: int) -> int:
        """What one process does; the number that has ended it, -1 if it cannot or need not go on."""
        job, done = self.job, self.done
        job.file.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            job.command(first, count),
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        output, errors = self.process.communicate()
        number, before, refused = job.at_work()
        job.file.unlink(missing_ok=True)
        lines = [line.split("\t") for line in output.splitlines()]
        for _, failed, policy, what in (line for line in lines if line[0] == "FAILED"):
            whose = "" if policy == "-" else f"{policy}: "
            done.failures.append(Failure(f"{whose}{what}", job.repeat(int(failed))))
        for _, kind, cases, values in (line for line in lines if line[0] == "KIND"):
            done.kinds.setdefault(kind, Counter()).update(cases=int(cases), values=int(values))
        ended = [line for line in lines if line[0] == "DONE"]
        if ended:
            done.count += int(ended[0][1])
            done.refused += int(ended[0][2])
            return -1
        done.count += before
        done.refused += refused
        code = self.process.returncode
        if self.stopped or code in (-signal.SIGINT, -signal.SIGTERM):
            done.failures.append(Failure("interrupted", job.repeat(number)))
            return -1
        # It has crashed or hung: what was at work is to blame.
        said = " / ".join([line for line in errors.splitlines() if line.strip()][:3])[:300]
        done.count += number >= 0
        done.failures.append(Failure(f"exit code {code}: {said}", job.repeat(number)))
        return number


def together(jobs: list[Job], progress: Progress) -> Done:
    """Does all side by side."""
    workers = [Worker(job) for job in jobs]
    with ThreadPoolExecutor(len(workers)) as pool:
        try:
            running = [pool.submit(worker.run) for worker in workers]
            while wait(running, timeout=1).not_done:
                progress.reach(sum(worker.so_far() for worker in workers))
        except BaseException:
            for worker in workers:
                worker.stop()
            raise
    return total(future.result() for future in running)


def shares(count: int, jobs: int) -> list[int]:
    """A number in as many parts, as equal as can be; none is empty."""
    return [size for job in range(jobs) if (size := count // jobs + (job < count % jobs))]


def simulations(seed: int, count: int, jobs: int, out: Path, progress: Progress) -> Done:
    """Random scenes, in turns: nobody knows how many simulations a scene makes."""
    program = build("attack-simulations")
    sizes = shares(count, jobs)
    step, alone = len(sizes), "--only --first {}"
    return together(
        [
            Job(program, seed, job, step, "--simulations", size, alone, out / f"at-{job}")
            for job, size in enumerate(sizes)
        ],
        progress,
    )


def ranges(
    program: Path, unit: str, alone: str, of: tuple[int, int, int], out: Path, progress: Progress
) -> Done:
    """Numbered work of a seed, so much of it, in so many processes: each has a range of numbers."""
    seed, count, jobs = of
    sizes = shares(count, jobs)
    return together(
        [
            Job(program, seed, sum(sizes[:job]), 1, unit, size, alone, out / f"at-{job}")
            for job, size in enumerate(sizes)
        ],
        progress,
    )


def references(seed: int, count: int, jobs: int, out: Path, progress: Progress) -> Done:
    """Cases whose results are known beforehand; each process has a range of them."""
    return ranges(
        build("attack-references"), "--references", "--only --first {}", (seed, count, jobs), out, progress
    )


def rounds(program: Path, seed: int, count: int, jobs: int, out: Path, progress: Progress) -> Done:
    """Rounds of the task runtime; each process has a range of them."""
    return ranges(program, "--rounds", "--first {} --rounds 1", (seed, count, jobs), out, progress)
