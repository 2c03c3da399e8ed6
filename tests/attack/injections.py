"""A fault at a single system call, of sessions, their guardians, `restore`, the recorder and sweeps.

Whatever call fails: nobody panics, shows a traceback or hangs; whoever says that all is well is right; and once calls
work again, `restore`, `record --recover` or the same sweep gets all that there was. Each plan follows from the seed
and its number. Live scenarios need root and two CPUs.
"""

import argparse
import contextlib
import itertools
import random
import shutil
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import injected_files
import injected_live
import injection
import kills
import workers
from injection import Plan
from progress import Progress
from workers import Done, Failure

SIDE_BY_SIDE = 6
"""Scenes per CPU: sessions wait most of the time, while others work, of which there is one per CPU."""

WITHOUT_MIN = 0.5
"""At least this share of the plans of a scenario has to meet a call, or the scenario tries little."""


class Scene(Protocol):
    """A place where one scenario is played again and again."""

    def profile(self) -> tuple[dict[str, int], dict[str, int]]:
        """How often each call is made before what is tried begins, and in all."""

    def play(self, plan: Plan, dice: random.Random) -> str | None:
        """One time with a fault; what was wrong."""

    def injected(self) -> bool:
        """Whether the last play has met its fault."""

    def close(self) -> None:
        """Removes the place."""


@dataclass(frozen=True)
class Scenario:
    """What is played."""

    weight: int
    """How often in a round of all scenarios: what begins faster is played more often."""
    live: bool
    """Whether it waits most of the time."""
    make: Callable[[Path, Path], Scene]
    """A place in an empty folder, for a program that runs sessions."""


SCENARIOS: dict[str, Scenario] = {
    "session": Scenario(14, True, injected_live.Session),
    "guardian": Scenario(10, True, injected_live.Guardian),
    "restore": Scenario(36, True, injected_live.Restore),
    "recorder": Scenario(1, False, injected_files.Recorder),
    "sweep": Scenario(1, False, injected_files.Sweep),
}
FOUND = [
    ("restore", "open,1,ENOENT,once"),
    ("recorder", "wait4,1,EACCES,lasting"),
    ("recorder", "clone3,1,ENOMEM,once"),
    ("recorder", "sched_getaffinity,2,EINVAL,lasting"),
    ("recorder", "sched_getaffinity,1,EINVAL,lasting"),
    ("recorder", "write,8,EPIPE,once"),
    ("sweep", "write,3,EPIPE,once"),
    ("recorder", "fallocate,2,EDQUOT,lasting"),
    ("recorder", "clone3,2,ENOMEM,once"),
    ("recorder", "clone3,6,ENOMEM,lasting"),
    ("sweep", "newfstatat,3068,EROFS,lasting"),
    ("sweep", "write,3,EPIPE,lasting"),
    ("restore", "openat,9,ENOENT,once"),
]
"""Plans that something was wrong with once: each run begins with them."""
TURNS = [name for name, scenario in SCENARIOS.items() for _ in range(scenario.weight)]


def name_of(number: int) -> str:
    """The scenario of a number."""
    return FOUND[number][0] if number < len(FOUND) else TURNS[number % len(TURNS)]


class Stage:
    """Places for scenes, each used by one thread at a time and left behind when something was wrong there."""

    def __init__(self, program: Path, out: Path, jobs: int) -> None:
        self.program, self.out = program, out
        injection.injector()  # before threads ask for it at once
        self.working = threading.Semaphore(jobs)
        self.free: dict[str, list[Scene]] = {name: [] for name in SCENARIOS}
        self.profiles: dict[str, tuple[dict[str, int], dict[str, int]]] = {}
        self.lock = threading.Lock()
        self.numbers = itertools.count()

    def scene(self, name: str) -> Scene:
        """A place that nobody uses."""
        with self.lock:
            if self.free[name]:
                return self.free[name].pop()
            folder = self.out / f"{name}-{next(self.numbers)}"
        folder.mkdir(parents=True)
        return SCENARIOS[name].make(self.program, folder)

    def calls(self, name: str) -> tuple[dict[str, int], dict[str, int]]:
        """The calls of a scenario that nothing disturbs."""
        with self.lock:
            if name in self.profiles:
                return self.profiles[name]
        scene = self.scene(name)
        try:
            found = scene.profile()
        finally:
            scene.close()
        with self.lock:
            return self.profiles.setdefault(name, found)

    def play(self, name: str, plan: Plan, dice: random.Random) -> tuple[str | None, bool]:
        """One time; what was wrong, and whether a call has failed."""
        scene = self.scene(name)
        try:
            with contextlib.nullcontext() if SCENARIOS[name].live else self.working:
                wrong, met = scene.play(plan, dice), scene.injected()
        except Exception as error:
            wrong, met = f"{type(error).__name__}: {error}", True
        if wrong:
            scene.close()
        else:
            with self.lock:
                self.free[name].append(scene)
        return wrong, met

    def close(self) -> None:
        """Removes all places."""
        for scene in itertools.chain.from_iterable(self.free.values()):
            with contextlib.suppress(Exception):
                scene.close()
        shutil.rmtree(self.out, ignore_errors=True)


def missing() -> str | None:
    """What is missing for injections here."""
    return injection.missing() or kills.missing()


def run(program: Path, count: int, seed: int, jobs: int, out: Path, progress: Progress) -> Done:
    """So many faults, in all scenarios by turns."""
    why = missing()
    if why:
        return Done(skipped=count, notes=[f"SKIPPED: {why}"])
    if count < len(FOUND):
        return Done(
            failures=[Failure(f"play at least the {len(FOUND)} plans that something was wrong with", "")]
        )
    done, played, met = Done(), Counter[str](), Counter[str]()
    stage = Stage(program, out / "scenes", jobs)

    def one(number: int) -> tuple[str, Plan, str | None, bool]:
        dice = random.Random(f"{seed}-{number}")
        name = name_of(number)
        is_known = number < len(FOUND)
        plan = injection.plan_of(FOUND[number][1]) if is_known else injection.chosen(dice, *stage.calls(name))
        return name, plan, *stage.play(name, plan, dice)

    try:
        for name in dict.fromkeys(map(name_of, range(count))):
            stage.calls(name)
        with ThreadPoolExecutor(jobs * SIDE_BY_SIDE) as pool:
            for name, plan, wrong, fell in pool.map(one, range(count)):
                done.count += 1
                progress.add()
                played[name] += 1
                met[name] += fell
                if wrong:
                    print(f"{name}, {plan}: {wrong}", file=sys.stderr, flush=True)
                    repeat = f"python3 tests/attack/injections.py {program} --only {name} --plan {plan}"
                    done.failures.append(Failure(f"{name}: {wrong}", repeat))
    finally:
        stage.close()
    done.notes = [f"{name}: {played[name]:,}, of which {met[name]:,} met the call" for name in SCENARIOS]
    done.failures += [
        Failure(f"{name}: only {met[name]:,} of {played[name]:,} plans met a call", "")
        for name in SCENARIOS
        if met[name] < WITHOUT_MIN * played[name]
    ]
    return done


def main() -> int:
    """Plays one plan."""
    parser = argparse.ArgumentParser(description="Play one plan of `make attack PARTS=injections` again.")
    parser.add_argument("program", type=Path)
    parser.add_argument("--only", choices=SCENARIOS, required=True)
    parser.add_argument("--plan", type=injection.plan_of, required=True)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--out", type=Path, default=workers.ROOT / "out" / "attack" / "again")
    chosen = parser.parse_args()
    stage = Stage(chosen.program.resolve(), chosen.out, 1)
    try:
        stage.calls(chosen.only)
        results = [
            stage.play(chosen.only, chosen.plan, random.Random(str(turn))) for turn in range(chosen.times)
        ]
    finally:
        stage.close()
    for wrong, met in results:
        print(wrong or "nothing was wrong", "" if met else "(no call failed)")
    return 1 if any(wrong for wrong, _ in results) else 0


if __name__ == "__main__":
    sys.exit(main())
