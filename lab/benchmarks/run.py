"""Measures the engine against its targets and against other simulators; prints Markdown.

Every number is CPU time of a process of its own; programs that are compared run in turn, in the same
rounds. Ratios are comparable between computers, absolute numbers are not.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import author_loop
import measure
import peers
import task_speed
from measure import Sample

from ampsched.markdown import wrapped

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / ".build"
MEASURED = ("<!-- measured: begin -->", "<!-- measured: end -->")
AUTHOR = ("<!-- author: begin -->", "<!-- author: end -->")
LINUX = ("<!-- linux: begin -->", "<!-- linux: end -->")

# The peers' work: CPU-bound threads on 8 cores, round robin, slices of 1 ms.
CORES = 8
PEER_THREADS = (32, 128)
ENGINE_SIM_MS, PEER_SIM_MS, BARE_SIM_MS = 400_000, 30_000, 1_000_000
CFS_THREADS, CFS_SIM_MS = 64, 2_000_000
# Growth: cores, threads and simulated time such that every thread runs some twenty times.
GROWTH = (
    (8, 64, {"rr": 250_000, "cfs": 750_000}),
    (64, 1_500, {"rr": 30_000, "cfs": 90_000}),
    (256, 12_000, {"rr": 8_000, "cfs": 24_000}),
    (1024, 100_000, {"rr": 2_000, "cfs": 6_000}),
)
MIX_SIM_MS = 10_000
# Linux's own scheduler beside rules: cores, threads and simulated time.
LINUX_WORKS = ((8, 64, 500_000), (64, 1_500, 30_000))
LINUX_PEERS = ("eevdf", "cfs")

RR_TARGET, CFS_TARGET, PEER_TARGET, GROWTH_TARGET = 10e6, 5e6, 10.0, 4.0
LINUX_TARGET, LINUX_GROWTH_TARGET = 5e6, 2.0
DECISION_TARGET_NS, EPOCH_TARGET_NS = 150.0, 20_000.0
ENERGY_TARGET = 0.7
MEMORY_TARGET_MIB, TRACE_TARGET_MB, REPRODUCE_TARGET_S = 200.0, 50.0, 1800.0


def main() -> int:
    """Runs what the options ask for."""
    options = parse_options()
    try:
        texts = {}
        if not options.author and not options.linux:
            texts[MEASURED] = "\n".join(measured(options))
        if not options.author and not options.tasks:
            texts[LINUX] = wrapped("\n".join(linux(options.rounds)))
        if not options.tasks and not options.linux:
            texts[AUTHOR] = wrapped("\n".join(author_loop.report(options.rounds)))
    except measure.MeasurementFailed as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    print("\n".join(texts.values()))
    for markers, text in texts.items() if options.report else ():
        replace_measured(options.report, text, markers)
    return 0


def measured(options: argparse.Namespace) -> Iterator[str]:
    """What is measured unless a part is asked for."""
    engine, tasks = (
        str(measure.build_example(ROOT, "ampsched-sim", name)) for name in ("engine_bench", "task_bench")
    )
    if not options.tasks:
        yield from report(engine, options)
    yield from task_speed.report(tasks, BUILD / "benchmarks", options.rounds, options.install_peers)


def parse_options() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each measurement (5)")
    parser.add_argument("--install-peers", action="store_true", help="install SimPy and SimGrid")
    parser.add_argument("--tasks", action="store_true", help="measure task policies only")
    parser.add_argument("--linux", action="store_true", help="measure Linux's own scheduler only")
    parser.add_argument("--author", action="store_true", help="measure the loop of an author only")
    parser.add_argument("--reproduce", action="store_true", help="also time `reproduce all`")
    parser.add_argument("--report", type=Path, help="Markdown file whose measured part is replaced")
    return parser.parse_args()


def report(engine: str, options: argparse.Namespace) -> Iterator[str]:
    """The sections, in order."""
    yield from speed(engine, options)
    yield from growth(engine, options.rounds)
    yield from size(engine)
    yield from energy(engine, options.rounds)
    yield from policies()
    if options.reproduce:
        yield from reproduce()


def speed(engine: str, options: argparse.Namespace) -> Iterator[str]:
    """Dispatches per second of the engine, the yardstick and the peers."""
    found, missing = peers.commands(BUILD / "benchmarks", options.install_peers)
    commands = {f"bare {n}": bare(engine, n) for n in PEER_THREADS}
    commands |= {f"rr {n}": hogs(engine, "rr", CORES, n, ENGINE_SIM_MS) for n in PEER_THREADS}
    commands["cfs"] = hogs(engine, "cfs", CORES, CFS_THREADS, CFS_SIM_MS)
    for name, command in found.items():
        for threads in PEER_THREADS:
            arguments = [str(CORES), str(threads), str(PEER_SIM_MS)]
            commands[f"{name} {threads}"] = [*command, *arguments]
    samples = measure.rounds(commands, options.rounds)
    yield "### Speed of the engine, one thread\n"
    yield "| work | million dispatches/s | range | target | bare loop / engine |"
    yield "|---|---|---|---|---|"
    for threads in PEER_THREADS:
        own, loop = samples[f"rr {threads}"], samples[f"bare {threads}"]
        yield speed_row(f"`rr`, {CORES} cores, {threads} threads", own, RR_TARGET, loop)
    own, loop = samples["cfs"], samples[f"bare {PEER_THREADS[0]}"]
    yield speed_row(f"`cfs`, {CORES} cores, {CFS_THREADS} threads", own, CFS_TARGET, loop)
    for threads in PEER_THREADS:
        yield speed_row(f"bare heap and queue, {threads} threads", samples[f"bare {threads}"])
    yield ""
    yield from peer_table(samples, list(found))
    yield from (f"Not measured: {message}.\n" for message in missing)


def speed_row(
    title: str,
    samples: list[Sample],
    target: float | None = None,
    yardstick: list[Sample] | None = None,
) -> str:
    """A row of the table of speeds."""
    millions = sorted(sample.per_s / 1e6 for sample in samples)
    median = statistics.median(millions)
    goal = "" if target is None else f">= {target / 1e6:.0f}: {verdict(median * 1e6 >= target)}"
    ratio = "" if yardstick is None else f"{measure.median_ratio(yardstick, samples):.1f}"
    return f"| {title} | {median:.2f} | {millions[0]:.2f} to {millions[-1]:.2f} | {goal} | {ratio} |"


def peer_table(samples: dict[str, list[Sample]], names: list[str]) -> Iterator[str]:
    """How many times as fast as the peers the engine is."""
    if not names:
        return
    yield "### The same round robin in other simulators\n"
    yield "| simulator | threads | million dispatches/s | ampsched is faster by |"
    yield "|---|---|---|---|"
    slowest_ratio = float("inf")
    for name in names:
        for threads in PEER_THREADS:
            own, other = samples[f"rr {threads}"], samples[f"{name} {threads}"]
            ratio = measure.median_ratio(own, other)
            slowest_ratio = min(slowest_ratio, ratio)
            title = f"{name} {other[0].version}"
            yield f"| {title} | {threads} | {measure.median_per_s(other) / 1e6:.2f} | {ratio:.1f} |"
    reached = verdict(slowest_ratio >= PEER_TARGET)
    yield f"\nTarget: at least {PEER_TARGET:.0f} times the fastest: {reached}.\n"


def growth(engine: str, rounds: int) -> Iterator[str]:
    """Cost per dispatch on ever larger machines."""
    names = ("rr", "cfs")
    commands = {
        f"{policy} {cores}": hogs(engine, policy, cores, threads, sim_ms[policy])
        for cores, threads, sim_ms in GROWTH
        for policy in names
    }
    samples = measure.rounds(commands, rounds)
    yield "### Cost per dispatch on larger machines\n"
    yield "CPU time of the whole simulation / dispatches, creation of the threads included.\n"
    yield "| cores | threads | `rr` ns | growth | `cfs` ns | growth | creation of a thread, µs | peak MiB |"
    yield "|---|---|---|---|---|---|---|---|"
    worst = 0.0
    for cores, threads, _ in GROWTH:
        cells = [f"{cores}", f"{threads:,}"]
        for policy in names:
            own, first = samples[f"{policy} {cores}"], samples[f"{policy} {GROWTH[0][0]}"]
            ratio = measure.median_ratio(first, own)
            worst = max(worst, ratio)
            cost = statistics.median(sample.ns_per_dispatch for sample in own)
            cells += [f"{cost:.0f}", f"{ratio:.2f}"]
        both = [sample for policy in names for sample in samples[f"{policy} {cores}"]]
        start_us = 1e6 * statistics.median(sample.start_s for sample in both) / threads
        cells += [f"{start_us:.1f}", f"{max(sample.peak_mib for sample in both):.0f}"]
        yield f"| {' | '.join(cells)} |"
    yield f"\nTarget: growth at most {GROWTH_TARGET:.0f}: {verdict(worst <= GROWTH_TARGET)}.\n"


def linux(rounds: int) -> Iterator[str]:
    """Dispatches per second under Linux's own scheduler, and under rules in the same rounds."""
    engine = str(measure.build_example(ROOT, "ampsched-sim", "engine_bench"))
    names = ("linux", *LINUX_PEERS)
    commands = {
        f"{policy} {cores}": hogs(engine, policy, cores, threads, sim_ms)
        for cores, threads, sim_ms in LINUX_WORKS
        for policy in names
    } | {"bare": bare(engine, PEER_THREADS[0])}
    samples = measure.rounds(commands, rounds)
    yield "### Linux's own scheduler\n"
    yield "| work | million dispatches/s | range | target | bare loop / engine |"
    yield "|---|---|---|---|---|"
    first = LINUX_WORKS[0][0]
    for cores, threads, _ in LINUX_WORKS:
        for policy in names:
            target = LINUX_TARGET if (policy, cores) == ("linux", first) else None
            own = samples[f"{policy} {cores}"]
            yield speed_row(f"`{policy}`, {cores} cores, {threads:,} threads", own, target, samples["bare"])
    last = LINUX_WORKS[-1][0]
    ratio = measure.median_ratio(samples[f"linux {first}"], samples[f"linux {last}"])
    reached = verdict(ratio <= LINUX_GROWTH_TARGET)
    yield (
        f"\nA dispatch under `linux` costs {ratio:.2f} times as much on {last} cores as on {first}, "
        f"creation of the threads included; target at most {LINUX_GROWTH_TARGET:.0f}: {reached}.\n"
    )


def size(engine: str) -> Iterator[str]:
    """Memory and trace of a simulation of ordinary size."""
    yield "### Memory and trace\n"
    yield "10 s of 20 threads that compute, lock, meet at barriers and pass items on, on 4 cores:\n"
    yield "| policy | dispatches | peak MiB | trace MB | bytes per dispatch |"
    yield "|---|---|---|---|---|"
    worst_mib, worst_mb = 0.0, 0.0
    for policy in ("cfs", "rr"):
        sample, trace_bytes = traced(engine, policy)
        worst_mib, worst_mb = max(worst_mib, sample.peak_mib), max(worst_mb, trace_bytes / 1e6)
        per_dispatch = trace_bytes / sample.dispatches
        row = f"{sample.dispatches:,} | {sample.peak_mib:.0f} | {trace_bytes / 1e6:.1f}"
        yield f"| `{policy}` | {row} | {per_dispatch:.0f} |"
    yield (
        f"\nTargets: memory below {MEMORY_TARGET_MIB:.0f} MiB: "
        f"{verdict(worst_mib < MEMORY_TARGET_MIB)}; trace below {TRACE_TARGET_MB:.0f} MB: "
        f"{verdict(worst_mb < TRACE_TARGET_MB)}.\n"
    )


def traced(engine: str, policy: str) -> tuple[Sample, int]:
    """A run that writes a trace, and the trace's size in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mix.pftrace"
        sample = measure.run([engine, "mix", policy, str(MIX_SIM_MS), str(file)])
        return sample, file.stat().st_size


def energy(engine: str, rounds: int) -> Iterator[str]:
    """What accounting for power and heat costs."""
    works = {"rr": ENGINE_SIM_MS, "cfs": CFS_SIM_MS}
    commands = {
        f"{mode} {policy}": [engine, mode, policy, str(CORES), str(CFS_THREADS), str(sim_ms)]
        for policy, sim_ms in works.items()
        for mode in ("hogs", "energy")
    }
    samples = measure.rounds(commands, rounds)
    yield "### Cost of power and heat\n"
    yield f"{CORES} cores, {CFS_THREADS} threads; speed with accounting / speed without.\n"
    yield "| policy | million dispatches/s | with power and heat | ratio |"
    yield "|---|---|---|---|"
    worst = 1.0
    for policy in works:
        without, with_energy = samples[f"hogs {policy}"], samples[f"energy {policy}"]
        ratio = measure.median_ratio(with_energy, without)
        worst = min(worst, ratio)
        speeds = (measure.median_per_s(each) / 1e6 for each in (without, with_energy))
        yield f"| `{policy}` | {next(speeds):.2f} | {next(speeds):.2f} | {ratio:.2f} |"
    yield f"\nTarget: at least {ENERGY_TARGET:.1f}: {verdict(worst >= ENERGY_TARGET)}.\n"


def policies() -> Iterator[str]:
    """What each policy's decisions and epochs cost."""
    program = measure.build_example(ROOT, "ampsched-policy", "policy_cost")
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise measure.MeasurementFailed(f"{program}: exit code {done.returncode}\n{done.stderr}")
    yield "### Cost of a policy\n"
    yield "64 threads of 8 programs on 4 big and 4 little cores; a decision is charging, placing and picking.\n"
    yield "| policy | ns per decision | µs per epoch |"
    yield "|---|---|---|"
    missed = []
    for line in done.stdout.splitlines():
        name, decision_ns, epoch_ns = line.split()
        yield f"| `{name}` | {float(decision_ns):.0f} | {float(epoch_ns) / 1000:.1f} |"
        if float(decision_ns) > DECISION_TARGET_NS or float(epoch_ns) > EPOCH_TARGET_NS:
            missed.append(f"`{name}`")
    reached = f"missed by {', '.join(missed)}" if missed else "reached"
    yield (
        f"\nTargets: at most {DECISION_TARGET_NS:.0f} ns per decision and "
        f"{EPOCH_TARGET_NS / 1000:.0f} µs per epoch: {reached}.\n"
    )


def reproduce() -> Iterator[str]:
    """Time of all papers' experiments on two CPUs."""
    start_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ampsched-reproduce-") as out:
        command = [sys.executable, "-m", "ampsched", "reproduce", "all", "--jobs", "2", "--out", out]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    used_s = time.monotonic() - start_s
    if done.returncode != 0:
        raise measure.MeasurementFailed(f"{' '.join(command)}: exit code {done.returncode}")
    yield "### The papers' experiments\n"
    yield (
        f"`ampsched reproduce all --jobs 2`: {used_s:.0f} s; target at most "
        f"{REPRODUCE_TARGET_S:.0f} s: {verdict(used_s <= REPRODUCE_TARGET_S)}.\n"
    )


def bare(engine: str, threads: int) -> list[str]:
    """Command of the yardstick."""
    return [engine, "bare", str(CORES), str(threads), str(BARE_SIM_MS)]


def hogs(engine: str, policy: str, cores: int, threads: int, sim_ms: int) -> list[str]:
    """Command that simulates CPU-bound threads."""
    return [engine, "hogs", policy, str(cores), str(threads), str(sim_ms)]


def verdict(reached: bool) -> str:
    """A word for the tables."""
    return "reached" if reached else "missed"


def replace_measured(file: Path, text: str, markers: tuple[str, str]) -> None:
    """Puts the tables between the two markers of a Markdown file."""
    old = file.read_text(encoding="utf-8")
    before, begin, rest = old.partition(markers[0])
    _, end, after = rest.partition(markers[1])
    if not begin or not end:
        raise SystemExit(f"{file} has no lines {markers[0]} and {markers[1]}")
    file.write_text(f"{before}{begin}\n\n{text}\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
