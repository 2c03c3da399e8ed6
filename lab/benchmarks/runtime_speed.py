"""Measures the task runtime beside rayon and OpenMP (gcc's libgomp), all in the same rounds; prints Markdown.

Ratios of the same round are comparable between computers, absolute numbers are not. The unequal machine is made of
equal cores by CPU quotas, for which the process must be allowed to create cgroups; the ratio of speeds is measured, not
supposed.
"""

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import measure
import run

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / ".build" / "benchmarks"
BEGIN, END = "<!-- runtime: begin -->", "<!-- runtime: end -->"

# A loop of iterations of some 20 µs, half a second and more on two cores.
ITERATIONS, LINKS = 40_000, 10_000
# With half a core and a fifth of one the same loop lasts 80 periods of the quota.
SHARES = "0.5,0.2"
TASKS = 1_000_000

TASK_TARGET_US, RAYON_TARGET, STATIC_TARGET, DYNAMIC_TARGET = 1.0, 1.05, 0.75, 1.0
# What the quota's period makes the end of a loop uncertain by: one period in eighty.
TOLERANCE = 0.0125


def main() -> int:
    """Measures, prints, and writes the report if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each measurement (9)")
    parser.add_argument("--report", type=Path, help="Markdown file whose part on the runtime is replaced")
    options = parser.parse_args()
    try:
        own = str(measure.build_example(ROOT, "ampsched-taskrt", "runtime_bench"))
        openmp = build_openmp()
        text = "\n".join([*symmetric(own, openmp, options.rounds), *asymmetric(own, openmp, options.rounds)])
    except measure.MeasurementFailed as error:
        print(f"runtime_speed: {error}", file=sys.stderr)
        return 1
    print(text)
    if options.report is not None:
        run.replace_measured(options.report, text, (BEGIN, END))
    return 0


def build_openmp() -> str:
    """Compiles the OpenMP program."""
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / "openmp_loop"
    source = ROOT / "lab/benchmarks/peers/openmp_loop.c"
    command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-fopenmp", "-o", str(program), str(source)]
    subprocess.run(command, check=True)
    return str(program)


def output(*command: str) -> str:
    """What a program prints."""
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise measure.MeasurementFailed(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def symmetric(own: str, openmp: str, rounds: int) -> Iterator[str]:
    """Two equal workers: a plain loop, and empty tasks."""
    loop = (str(ITERATIONS), str(LINKS))
    commands = {
        "loop": (own, "loop", *loop),
        "rayon": (own, "rayon", *loop),
        "static": (openmp, "static", *loop),
        "dynamic": (openmp, "dynamic", *loop),
        "tasks": (own, "tasks", str(TASKS)),
        "graph": (own, "graph", str(TASKS)),
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            seconds[name].append(float(output(*command)))
    yield "### Two equal workers\n"
    yield "| a plain loop of ours took | times as long as | range | target |"
    yield "|---|---|---|---|"
    for name, title in (("rayon", "rayon"), ("static", "OpenMP static"), ("dynamic", "OpenMP dynamic")):
        target = RAYON_TARGET if name == "rayon" else None
        yield ratio_row(title, ratios(seconds["loop"], seconds[name]), target)
    yield ""
    yield "| empty tasks | µs per task | range | target |"
    yield "|---|---|---|---|"
    for name, title in (
        ("tasks", "started while they are created"),
        ("graph", "created first, then executed"),
    ):
        each_us = sorted(1e6 * total_s / TASKS for total_s in seconds[name])
        median_us = statistics.median(each_us)
        goal = f"below {TASK_TARGET_US:g}: {run.verdict(median_us < TASK_TARGET_US)}"
        yield f"| {title} | {median_us:.2f} | {each_us[0]:.2f} to {each_us[-1]:.2f} | {goal} |"
    yield ""


def asymmetric(own: str, openmp: str, rounds: int) -> Iterator[str]:
    """One fast and one slow worker, made by quotas."""
    text = output(own, "asymmetric", openmp, str(ITERATIONS), str(LINKS), SHARES, str(rounds))
    values: dict[str, list[float]] = {}
    for line in text.splitlines():
        name, value = line.split()
        values.setdefault(name, []).append(float(value))
    speeds = sorted(values["ratio"])
    yield "### One fast and one slow worker\n"
    yield (
        f"Quotas of {SHARES.replace(',', ' and ')} of a core; the fast worker was measured to be "
        f"{statistics.median(speeds):.2f} times as fast ({speeds[0]:.2f} to {speeds[-1]:.2f}).\n"
    )
    yield "| a plain loop of ours took | times as long as | range | target |"
    yield "|---|---|---|---|"
    own_s = values["ampsched"]
    yield ratio_row("OpenMP static", ratios(own_s, values["static"]), STATIC_TARGET)
    yield ratio_row("OpenMP dynamic", ratios(own_s, values["dynamic"]), DYNAMIC_TARGET, TOLERANCE)
    yield f"\nThe end of a loop is uncertain by one period of the quota: {100 * TOLERANCE:g} %.\n"


def ratios(own_s: list[float], other_s: list[float]) -> list[float]:
    """Ratios of the same rounds."""
    return sorted(own / other for own, other in zip(own_s, other_s, strict=True))


def ratio_row(title: str, values: list[float], target: float | None, tolerance: float = 0.0) -> str:
    """A row of a table of ratios."""
    median = statistics.median(values)
    goal = ""
    if target is not None:
        within = f" within {100 * tolerance:g} %" if tolerance else ""
        goal = f"<= {target:g}{within}: {run.verdict(median <= target + tolerance)}"
    return f"| {title} | {median:.3f} | {values[0]:.3f} to {values[-1]:.3f} | {goal} |"


if __name__ == "__main__":
    sys.exit(main())
