#!/usr/bin/env python3
"""Writes the programs of Chronaki et al. (JPDC 2018): nine PARSEC programs in up to four variants.

    python lab/calibration/chronaki/make_programs.py            writes the files
    python lab/calibration/chronaki/make_programs.py --check    compares with the files; exit code 1 if they differ

A data-parallel program is a region over its task graph (`ampsched tasks describe NAME`); the variant says who divides
the work. The pthreads versions of dedup and ferret are pools of threads around queues. Total work is the same in all
variants: 100 s on one little core."""

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
from generated import command

DATA = Path(__file__).resolve().parents[3] / "python" / "ampsched" / "data" / "programs"
GENERATED = (
    "# Written by lab/calibration/chronaki/make_programs.py; run it again instead of editing this file."
)
TOTAL_US = 100e6
"""Work on one little core, that of all task programs; the paper publishes no times."""
GRAB_US = 0.2
"""Taking a task or a chunk from something shared, on a big core: an estimate, one contended atomic operation across
clusters."""
CAPACITIES = {"ferret": 19, "dedup": 1048576}
"""Queues of PARSEC 3.0."""
LOOPS = {"loop-static": "OpenMP loop, static schedule", "loop-dynamic": "OpenMP loop, dynamic schedule"}


@dataclass(frozen=True)
class Subject:
    """A row of Table 1."""

    name: str
    ratio: float
    """Measured speed of a big core at 1.6 GHz / a little one at 0.8 GHz."""
    profile: str
    threads: str = "static"
    """Who divides the work in the pthreads version: `static` shares, or `loop-dynamic` for a shared counter of work
    units."""
    barriers: bool = True
    """Whether its graph has the parameter `barriers`."""
    loops: bool = False
    """Whether Figure 9 has OpenMP loops of it."""


SUBJECTS = (
    Subject("blackscholes", 2.18, "blackscholes", loops=True),
    # PARSEC's workers of bodytrack take particles from a ticket dispenser.
    Subject("bodytrack", 4.16, "bodytrack", threads="loop-dynamic", loops=True),
    Subject("canneal", 1.73, "canneal", barriers=False),
    Subject("dedup", 2.67, "dedup", barriers=False),
    # No profile of facesim was at hand; like fluidanimate it simulates physics in floating point.
    Subject("facesim", 3.40, "fluidanimate"),
    Subject("ferret", 3.59, "ferret", barriers=False),
    Subject("fluidanimate", 3.32, "fluidanimate", loops=True),
    Subject("streamcluster", 3.48, "streamcluster"),
    Subject("swaptions", 2.78, "swaptions", barriers=False, loops=True),
)

FERRET = {
    "load": (632.3, 0.07),
    "seg": (1383.6, 0.14),
    "extract": (204.4, 0.10),
    "vec": (3527.2, 0.44),
    "rank": (17313.1, 0.87),
    "out": (37.0, 0.37),
}
"""Stages: recorded mean in us per query and coefficient of variation, as in the task program."""
QUERIES = 3500
DEDUP = {
    "fragment": (101_000.0 / 22, 0.0, 1),
    "refine": (5927.8, 0.31, 1),
    "deduplicate": (80_600.0 / 22, 0.0, 43),
    "compress": (1_968_900.0 / 22, 0.28, 43),
    "reorder": (97_600.0 / 22, 0.0, 43),
}
"""Stages: recorded mean in us per coarse chunk, spread, items per coarse chunk; as in the task program."""
CHUNKS = 168


def head(subject: Subject, variant: str, what: str) -> list[str]:
    """Name, description, parameter and profile."""
    return [
        GENERATED,
        f'name = "chronaki-{subject.name}-{variant}"',
        f'description = "JPDC 2018: PARSEC {subject.name}, {what}."',
        'source = "Chronaki et al., JPDC 2018, Table 1 (ratio, input); structure: task program of the same name"',
        "",
        "[params]",
        "n = 4  # threads: as many as cores",
        "",
        "[profiles.code]",
        f'like = "{subject.profile}"',
        f"ratio = {subject.ratio}  # Table 1",
        "",
    ]


def region(subject: Subject, variant: str, what: str, policy: str, barriers: bool) -> str:
    """A program whose threads work on the graph under a task policy."""
    graph = subject.name + (":barriers=1" if barriers and subject.barriers else "")
    lines = [
        *head(subject, variant, what),
        "[regions.work]",
        f'graph = "{graph}"',
        f'policy = "{policy}"',
        f'work_us = "1e6 / {subject.ratio}"  # a task of work 1 takes 1 s on a little core',
        f"grab_us = {GRAB_US}",
        "",
        "[[threads]]",
        'name = "worker"',
        'count = "n"',
        'body = [{ tasks = "work", profile = "code" }]',
    ]
    return "\n".join(lines) + "\n"


def stage(name: str, count: str, source: str, target: str, work: str) -> list[str]:
    """The threads of a stage: take from one queue, work, push into the next one."""
    steps = [f'{{ run_us = {work}, profile = "code" }}', *([f'{{ push = "{target}" }}'] if target else [])]
    body = f'{{ each = "{source}", body = [{", ".join(steps)}] }}'
    close = f', {{ close = "{target}" }}' if target else ""
    return ["[[threads]]", f'name = "{name}"', f"count = {count}", f"body = [{body}{close}]", ""]


def amount(mean_us: float, cv: float, scale: float) -> str:
    """A random amount."""
    mean = f"{mean_us * scale:.6g}"
    return f"{{ mean = {mean}, cv = {cv} }}" if cv else mean


def ferret(subject: Subject) -> str:
    """Pools of threads for the middle stages."""
    names = list(FERRET)
    scale = TOTAL_US / subject.ratio / QUERIES / sum(mean for mean, _ in FERRET.values())
    lines = head(subject, "static", "pthreads: a pool of n threads per middle stage")
    lines += [f"[queues.{name}]\ncapacity = {CAPACITIES['ferret']}\n" for name in names[1:]]
    works = {name: amount(mean, cv, scale) for name, (mean, cv) in FERRET.items()}
    steps = f'{{ run_us = {works["load"]}, profile = "code" }}, {{ push = "seg" }}'
    body = f'{{ loop = {QUERIES}, body = [{steps}] }}, {{ close = "seg" }}'
    lines += ["[[threads]]", 'name = "load"', f"body = [{body}]", ""]
    for name, following in zip(names[1:], [*names[2:], ""], strict=True):
        lines += stage(name, "1" if name == "out" else '"n"', name, following, works[name])
    return "\n".join(lines).rstrip() + "\n"


def dedup(subject: Subject) -> str:
    """Pools of threads for the middle stages; refining a coarse chunk yields batches of fine ones."""
    scale = TOTAL_US / subject.ratio / CHUNKS / sum(mean for mean, _, _ in DEDUP.values())
    works = {name: amount(mean / items, cv, scale) for name, (mean, cv, items) in DEDUP.items()}
    batches = DEDUP["compress"][2]
    refine = amount(DEDUP["refine"][0] / batches, DEDUP["refine"][1], scale)
    lines = head(subject, "static", "pthreads: a pool of n threads per middle stage")
    queues = ("refine", "deduplicate", "compress", "reorder")
    lines += [f"[queues.{name}]\ncapacity = {CAPACITIES['dedup']}\n" for name in queues]
    steps = f'{{ run_us = {works["fragment"]}, profile = "code" }}, {{ push = "refine" }}'
    body = f'{{ loop = {CHUNKS}, body = [{steps}] }}, {{ close = "refine" }}'
    lines += ["[[threads]]", 'name = "fragment"', f"body = [{body}]", ""]
    inner = f'{{ loop = {batches}, body = [{{ run_us = {refine}, profile = "code" }}, {{ push = "deduplicate" }}] }}'
    body = f'{{ each = "refine", body = [{inner}] }}, {{ close = "deduplicate" }}'
    lines += ["[[threads]]", 'name = "refine"', 'count = "n"', f"body = [{body}]", ""]
    lines += stage("deduplicate", '"n"', "deduplicate", "compress", works["deduplicate"])
    lines += stage("compress", '"n"', "compress", "reorder", works["compress"])
    lines += stage("reorder", "1", "reorder", "", works["reorder"])
    return "\n".join(lines).rstrip() + "\n"


PIPELINES = {"dedup": dedup, "ferret": ferret}


def variants(subject: Subject) -> dict[str, str]:
    """The text of each variant."""
    what = "pthreads: fixed shares" if subject.threads == "static" else "pthreads: workers take tickets"
    pipeline = PIPELINES.get(subject.name)
    texts = {
        "static": pipeline(subject) if pipeline else region(subject, "static", what, subject.threads, True)
    }
    for name, schedule in LOOPS.items() if subject.loops else ():
        texts[name] = region(subject, name, schedule, name, True)
    texts["tasks"] = region(subject, "tasks", "tasks of PARSECSs from one queue", "fifo", False)
    return texts


def outputs() -> dict[Path, str]:
    """All files by path."""
    return {
        DATA / f"chronaki-{subject.name}-{variant}.toml": text
        for subject in SUBJECTS
        for variant, text in variants(subject).items()
    }


if __name__ == "__main__":
    sys.exit(command("Write the programs of Chronaki et al.", outputs))
