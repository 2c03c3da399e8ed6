"""The small cases.

The rule: for each seed of `SEEDS` a mix of two programs, whose threads execute equal rounds of work, with a lock or a
barrier in every second mix; their profiles are drawn from those of the shipped programs. And the single-threaded mixes
of Prop-SP's first table with at most six threads, with so little work that the makespan's limit is `TARGET_MS`.
"""

import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ampsched import api
from ampsched._core import Machine, Workload
from ampsched.catalog import Catalog

SEEDS = range(1, 9)
TARGET_MS = 20.0
MACHINES = ("2B2S:big=1:little=1", "2B2S")
MIXES = ("prop-sp-w1", "prop-sp-w2", "prop-sp-w3", "prop-sp-w4")


@dataclass(frozen=True, slots=True)
class Case:
    """A workload on a machine."""

    machine: Machine
    workload: Workload
    about: str
    """What it is, in some words."""


def cases() -> Iterator[Case]:
    """All cases, in their order."""
    catalog = Catalog.shipped()
    machines = [catalog.machine(name) for name in MACHINES]
    with tempfile.TemporaryDirectory() as folder:
        made = [generated(seed, Path(folder), profiles(catalog)) for seed in SEEDS]
    for machine in machines:
        for workload, about in made:
            yield Case(machine, workload, about)
        for name in MIXES:
            mix = catalog.workload(name)
            limit_ms = api.limit(machine, mix).makespan_ns / 1e6
            short = mix.with_work([TARGET_MS / limit_ms] * len(mix.apps))
            yield Case(machine, short, "single-threaded programs, shortened")


def profiles(catalog: Catalog) -> list[str]:
    """Every seventh shipped profile, by name."""
    return sorted(entry.name for entry in catalog.entries("profile"))[::7]


def generated(seed: int, folder: Path, names: list[str]) -> tuple[Workload, str]:
    """The mix of a seed, and what it is."""
    dice = random.Random(seed)  # noqa: S311 (no secrets)
    kind = ("no locks", "a lock", "no locks", "a barrier")[seed % 4]
    programs = []
    threads = []
    for name in ("one", "two"):
        count, rounds = dice.choice((1, 2, 2, 3)), dice.choice((1, 2, 3))
        work_us, profile = dice.randrange(1000, 6000), dice.choice(names)
        run = f"{{ run_us = {work_us}, profile = '{profile}' }}"
        lock = f"{{ lock = 'm' }}, {{ run_us = {work_us // 4}, profile = '{profile}' }}, {{ unlock = 'm' }}"
        body = {"no locks": run, "a lock": f"{run}, {lock}", "a barrier": f"{run}, {{ barrier = 'b' }}"}[kind]
        objects = {"no locks": "", "a lock": "[mutexes.m]\n", "a barrier": "[barriers.b]\n"}[kind]
        text = f"{objects}[[threads]]\nname = 't'\ncount = {count}\nbody = [{{ loop = {rounds}, body = [{body}] }}]\n"
        (folder / f"{name}-{seed}.toml").write_text(text)
        programs.append(f"{name}-{seed}")
        threads.append(count)
    files = [folder / f"{program}.toml" for program in programs]
    catalog = Catalog.shipped().with_files(*files)
    apps = ", ".join(f"{{ program = '{program}' }}" for program in programs)
    mix = folder / f"mix-{seed}.toml"
    mix.write_text(f"[workloads.mix-{seed}]\ndescription = 'seed {seed}'\napps = [{apps}]\n")
    return catalog.workload(mix), f"{' + '.join(map(str, threads))} threads, {kind}"
