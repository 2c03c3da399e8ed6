"""Measures task policies against their targets, SimGrid and plain Python, on the same graphs in the same rounds."""

import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import graphs
import measure
import peers
from measure import Sample

WORKERS = "4x10,4x4"
LARGE = ("layered100k", "chol83")
# Small graphs are scheduled several times in a run: one takes less than the clock can tell.
REPEAT = {"layered10k": "20", "layered100k": "3", "chol38": "20", "chol83": "3"}
# Million tasks/s that a policy must reach, and on which graphs.
TARGETS = {"fifo": (5.0, LARGE), "cats": (5.0, LARGE), "heft": (0.5, ("layered100k",))}
GROWTH_TARGET = 2.0
POLICIES = (
    "fifo",
    "cats",
    "cats-cost",
    "work-stealing",
    "loop-dynamic",
    "heft",
    "cpop",
    "peft",
    "dls",
    "ldcp",
    "hed",
    "lmt",
)
# Plain-Python HEFT needs a second per ten thousand tasks and more than its share on larger graphs.
PLAIN = {"fifo": tuple(graphs.GRAPHS), "heft": ("layered10k", "chol38")}


def report(program: str, build: Path, rounds: int, install: bool) -> Iterator[str]:
    """The section on task policies."""
    files = graphs.write(build / "graphs")
    commands = {
        f"{policy} {name}": [program, str(file), WORKERS, policy, REPEAT[name]]
        for policy in POLICIES
        for name, file in files.items()
    }
    plain = str(peers.SOURCES / "plain_tasks.py")
    commands |= {
        f"Python {policy} {name}": [sys.executable, plain, str(files[name]), policy]
        for policy, names in PLAIN.items()
        for name in names
    }
    if not peers.has_simgrid() and install:
        peers.install_simgrid()
    with_simgrid = peers.has_simgrid()
    if with_simgrid:
        simgrid = build_simgrid(build)
        commands |= {f"SimGrid fifo {name}": [simgrid, str(file)] for name, file in files.items()}
    samples = measure.rounds(commands, rounds)
    yield from speeds(samples)
    yield from growth(samples)
    yield from against_peers(samples, with_simgrid)


def build_simgrid(build: Path) -> str:
    """Compiles the SimGrid driver."""
    program = build / "simgrid_tasks"
    source = str(peers.SOURCES / "simgrid_tasks.cpp")
    subprocess.run(["g++", "-O2", "-std=c++17", "-o", str(program), source, "-lsimgrid"], check=True)
    return str(program)


def speeds(samples: dict[str, list[Sample]]) -> Iterator[str]:
    """Million tasks per second of each policy on each graph."""
    yield "### Task policies, one thread\n"
    yield f"Million tasks/s on {WORKERS} (work in Gflop, speed in Gflop/s), from the graph in memory to the finished schedule.\n"
    yield f"| policy | {' | '.join(graphs.GRAPHS)} | target |"
    yield f"|---|{'---|' * len(graphs.GRAPHS)}---|"
    for policy in POLICIES:
        cells = [f"{million(samples[f'{policy} {name}']):.2f}" for name in graphs.GRAPHS]
        yield f"| `{policy}` | {' | '.join(cells)} | {target(policy, samples)} |"
    yield ""


def target(policy: str, samples: dict[str, list[Sample]]) -> str:
    """What the policy must reach, and whether it does."""
    if policy not in TARGETS:
        return ""
    least, names = TARGETS[policy]
    reached = all(million(samples[f"{policy} {name}"]) >= least for name in names)
    return f">= {least:g} on {', '.join(names)}: {'reached' if reached else 'missed'}"


def growth(samples: dict[str, list[Sample]]) -> Iterator[str]:
    """Cost per task on ten times as many tasks."""
    yield "Cost per task, 100k / 10k tasks:\n"
    yield "| policy | layered | Cholesky |"
    yield "|---|---|---|"
    for policy in POLICIES:
        ratios = [
            measure.median_ratio(samples[f"{policy} {small}"], samples[f"{policy} {large}"])
            for small, large in (("layered10k", "layered100k"), ("chol38", "chol83"))
        ]
        goal = ""
        if policy == "heft":
            goal = (
                f" (target below {GROWTH_TARGET:g}: {'reached' if ratios[0] < GROWTH_TARGET else 'missed'})"
            )
        yield f"| `{policy}` | {ratios[0]:.2f}{goal} | {ratios[1]:.2f} |"
    yield ""


def against_peers(samples: dict[str, list[Sample]], with_simgrid: bool) -> Iterator[str]:
    """How many times as fast as the peers."""
    yield "### The same graphs in other programs\n"
    yield "| program | graph | million tasks/s | ampsched is faster by |"
    yield "|---|---|---|---|"
    for name in graphs.GRAPHS:
        for peer in ("SimGrid fifo", "Python fifo", "Python heft"):
            theirs = samples.get(f"{peer} {name}")
            if theirs is None:
                continue
            own = samples[f"{peer.split()[1]} {name}"]
            title = f"{peer.split()[0]} {theirs[0].version}, {peer.split()[1].upper()}"
            ratio = measure.median_ratio(own, theirs)
            yield f"| {title} | {name} | {million(theirs):.3f} | {ratio:.0f} |"
    yield ""
    if not with_simgrid:
        yield f"Not measured: SimGrid is not installed: `apt-get install {peers.SIMGRID_PACKAGE}`.\n"


def million(samples: list[Sample]) -> float:
    """Median million tasks per second."""
    return statistics.median(sample.per_s for sample in samples) / 1e6
