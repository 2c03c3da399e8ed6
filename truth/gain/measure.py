"""Runs mixes under schedulers in a virtual machine with big and little cores, some rounds per boot."""

import json
import os
import random
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

from ampsched import vm
from truth.gain.mixes import Mix

ROOT = Path(__file__).resolve().parents[2]
SHAPE = vm.Shape(vm.CoreShape(2, 40), vm.CoreShape(2, 16), period_us=20_000, steady=True)
BIG, LITTLE, RATIO = "0-1", "2-3", SHAPE.big.percent / SHAPE.little.percent
DILATION = 20
"""A step of the programs takes 20 ms on a big core, 20 times what it might on a real one: so the policy's time passes
20 times slower."""
SCHEDULERS = {
    "default": [],
    "colab": [
        *("ampsched-live-scx", "run", "--policy=colab", "--everything", f"--dilation={DILATION}"),
        *(f"--big={BIG}", f"--little={LITTLE}", f"--ratio={RATIO:g}"),
    ],
    "scx_bpfland": ["scx_bpfland"],
    "scx_lavd": ["scx_lavd"],
}
"""Commands that load them. The first, the kernel's EEVDF, is what the others are measured against."""
POLICIES = tuple(SCHEDULERS)
CALIBRATION_WORK = 640_000_000
"""Iterations on a big core, some 2 s."""
RUN_LIMIT_S = 120
BOOT_LIMIT_S = 3600
ALONE_REPETITIONS = 2
TRIES = 3


@dataclass(frozen=True)
class Run:
    """A program in one run of a mix."""

    round: int
    mix: str
    policy: str
    program: str
    turnaround_s: float
    alone_s: float
    """Alone on the big cores after the same boot, under the kernel's own scheduler: the mean of some runs."""


@dataclass(frozen=True)
class Boot:
    """What was measured of the virtual machine after one boot, and the rounds that followed."""

    rounds: list[int]
    big_ns_per_iteration: float
    little_ns_per_iteration: float

    @property
    def ratio(self) -> float:
        return self.little_ns_per_iteration / self.big_ns_per_iteration


def find_schedulers(folders: Sequence[Path]) -> dict[str, list[str]]:
    """The commands with the paths of their programs."""
    path = os.pathsep.join(str(folder.resolve()) for folder in folders)
    found = {}
    for name, command in SCHEDULERS.items():
        program = shutil.which(command[0], path=path) if command else None
        if command and not program:
            sys.exit(f"{command[0]}: not in {path}")
        found[name] = [program, *command[1:]] if program else []
    return found


def measure(
    mixes: Sequence[Mix], rounds: list[int], programs: Path, schedulers: Mapping[str, Sequence[str]]
) -> tuple[Boot, list[Run], list[str]]:
    """Boots once and runs some rounds; notes tell how often the boot had to be repeated."""
    draw = random.Random(rounds[0])
    big, little = SHAPE.big.count, SHAPE.little.count
    job = {
        "programs": str(programs),
        "big": BIG,
        "big_cpus": list(range(big)),
        "cpus": list(range(SHAPE.cores)),
        "limit_s": RUN_LIMIT_S,
        "rounds": rounds,
        "alone_repetitions": ALONE_REPETITIONS,
        "works": [CALIBRATION_WORK] * big + [round(CALIBRATION_WORK / RATIO)] * little,
        "mixes": {mix.name: mix.commands(programs) for mix in draw.sample(list(mixes), len(mixes))},
        "schedulers": {name: schedulers[name] for name in draw.sample(list(schedulers), len(schedulers))},
    }
    notes = []
    for _ in range(TRIES):
        done = vm.run(
            [sys.executable, "-m", "truth.gain.guest", json.dumps(job)],
            shape=SHAPE, limit_s=BOOT_LIMIT_S, cwd=ROOT, echo=_tell,
        )  # fmt: skip
        if done.code == 0:
            break
        last = (done.output.strip() or done.console.strip()).splitlines()[-1:]
        notes.append(f"The boot of rounds {rounds} was repeated: {''.join(last)}")
        print(notes[-1], flush=True)
    else:
        sys.exit(f"the boot of rounds {rounds} failed {TRIES} times")
    found = {tuple(row["what"]): row["value"] for row in done.results()}
    speeds = found["speeds",]
    alone_s = {
        program: fmean(found["alone", program, number] for number in range(ALONE_REPETITIONS))
        for mix in mixes
        for program in mix.programs
    }
    runs = [
        Run(number, mix.name, policy, program, turnaround_s, alone_s[program])
        for number in rounds
        for mix in mixes
        for policy in schedulers
        for program, turnaround_s in zip(mix.programs, found["mix", policy, mix.name, number], strict=True)
    ]
    return Boot(rounds, fmean(speeds[:big]), fmean(speeds[big:])), runs, notes


def _tell(line: str) -> None:
    print("  " + line.removeprefix("RESULT ").strip(), flush=True)


def to_json(boots: list[Boot], runs: list[Run], notes: list[str]) -> str:
    """Everything that was measured, for a file from which the report can be made again."""
    table = {"boots": [asdict(boot) for boot in boots], "notes": notes, "runs": [asdict(run) for run in runs]}
    rows = ",\n".join(json.dumps(row) for row in table["runs"])
    return (
        f'{{"boots": {json.dumps(table["boots"])},\n"notes": {json.dumps(notes)},\n"runs": [\n{rows}\n]}}\n'
    )


def from_json(text: str) -> tuple[list[Boot], list[Run], list[str]]:
    """The contrary of `to_json`."""
    table = json.loads(text)
    return [Boot(**row) for row in table["boots"]], [Run(**row) for row in table["runs"]], table["notes"]
