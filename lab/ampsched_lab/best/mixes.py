"""Random mixes of shipped programs, to choose a policy's parameters by and to try it.

The rule: two to four programs; three in five are models of real programs with one to eight threads, the others
synthetic ones with drawn parameters. In every second mix, programs after the first arrive within two seconds. In mixes
with sleepers all begin together, with one to six threads beside them that compute for a part of every period.
Training mixes, the test mixes of the first version, and fresh ones for the second come of different seeds; none is
taken from a paper.
"""

import random
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from ampsched._core import Workload
from ampsched.catalog import Catalog

Role = Literal["train", "test", "fresh"]
COUNT = {"train": 24, "test": 32, "fresh": 32}
SLEEPER_COUNT = 16
SLEEPERS = "sleepers"
MACHINES = ("2B2S", "2B4S", "4B2S", "4B4S")
LATEST_MS = 2000
SLEPT_US = 1_500_000
REAL_SHARE = 0.6

POWERS_OF_TWO = ("fft", "radix", "ocean_cp", "fluidanimate")
PAIRS = ("fmm", "water_nsquared", "water_spatial")
"""Programs whose models have two threads."""
OTHERS = ("blackscholes", "bodytrack", "dedup", "ferret", "freqmine", "swaptions", "lu_ncb", "lu_cb")
REAL = OTHERS + POWERS_OF_TWO + PAIRS
SYNTHETIC = ("cpu-bound", "barrier-loop", "mutex-convoy", "pipeline", "bzip2", "mcf")


def mixes(role: Role) -> list[Workload]:
    """The mixes for a purpose, the same at each call."""
    names = [f"{role}-{number}" for number in range(1, COUNT[role] + 1)]
    return _made({name: _mix(name, number % 2 == 1) for number, name in enumerate(names)})


def sleeper_mixes(role: Role) -> list[Workload]:
    """Mixes with periodic threads, the same at each call."""
    names = [f"{role}-{SLEEPERS}-{number}" for number in range(1, SLEEPER_COUNT + 1)]
    return _made({name: _sleeper_mix(name) for name in names})


def _made(apps: Mapping[str, Sequence[str]]) -> list[Workload]:
    """Workloads from the lines of their programs."""
    text = "\n".join(f"[workloads.{name}]\napps = [\n{''.join(lines)}]\n" for name, lines in apps.items())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mixes.toml"
        path.write_text(text)
        catalog = Catalog.shipped()
        return [catalog.workload(f"{path}:{name}") for name in apps]


def _mix(name: str, arrives: bool) -> list[str]:
    dice = random.Random(name)  # noqa: S311 (no secrets)
    apps = []
    for place in range(dice.choice([2, 2, 3, 4])):
        start_ms = dice.randrange(LATEST_MS) if arrives and place else 0
        apps.append(line_of(*some_program(dice), start_ms))
    return apps


def _sleeper_mix(name: str) -> list[str]:
    dice = random.Random(name)  # noqa: S311 (no secrets)
    apps = [line_of(*some_program(dice)) for _ in range(dice.choice([2, 3, 4]))]
    period_us = dice.choice([4000, 8000, 16_000, 33_000])
    share = dice.choice([0.05, 0.1, 0.2])
    sleepers = {
        "n": dice.choice([1, 2, 4, 6]),
        "hogs": 0,
        "rounds": SLEPT_US // period_us,
        "period_us": period_us,
        "burst_us": share * period_us,
    }
    return [*apps, line_of(SLEEPERS, sleepers)]


def line_of(program: str, params: Mapping[str, float], start_ms: int = 0) -> str:
    """A program's line in a workload."""
    listed = ", ".join(f"{key} = {value:g}" for key, value in params.items())
    return f'  {{ program = "{program}", params = {{ {listed} }}, start_ms = {start_ms} }},\n'


def some_program(dice: random.Random) -> tuple[str, dict[str, float]]:
    """A program and its parameters, by the rule of all mixes."""
    if dice.random() < REAL_SHARE:
        return _real(dice)
    program = dice.choice(SYNTHETIC)
    length = dice.choice([0.5, 1, 2])
    return program, _params(program, length, dice)


def _real(dice: random.Random) -> tuple[str, dict[str, float]]:
    program = dice.choice(REAL)
    if program in PAIRS:
        return program, {"n": 2}
    return program, {"n": dice.choice([1, 2, 4, 8] if program in POWERS_OF_TWO else [1, 2, 3, 4, 6, 8])}


def _params(program: str, length: float, dice: random.Random) -> dict[str, float]:
    if program == "cpu-bound":
        return {"ratio": round(dice.uniform(1.1, 3.5), 2), "length_ms": 1500 * length}
    if program == "barrier-loop":
        work_us = dice.choice([500, 1000, 4000])
        rounds = 600_000 * length // work_us
        return {
            "n": dice.choice([2, 3, 4, 6, 8]),
            "rounds": rounds,
            "work_us": work_us,
            "cv": dice.choice([0, 0.2, 0.5]),
        }
    if program == "mutex-convoy":
        return {
            "n": dice.choice([2, 4, 6]),
            "rounds": 2500 * length,
            "outside_us": dice.choice([50, 200, 400]),
        }
    if program == "pipeline":
        source_us, work_us = dice.choice([50, 100, 300]), dice.choice([200, 400, 800])
        return {
            "n": dice.choice([1, 2, 4, 6]),
            "items": 3000 * length,
            "source_us": source_us,
            "work_us": work_us,
        }
    return {}
