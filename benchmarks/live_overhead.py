"""Measures what scheduling costs in the kernel of a virtual machine: ours (cfs) beside EEVDF and scx_bpfland.

cfs runs without wake-up pre-emption, which scx_bpfland has not either, and as it is. Each round boots the machine,
loads all in random order and runs the same programs under each; ratios of a round are comparable, absolute numbers of
translated instructions are not. Also prints the CPU time of an epoch of COLAB by the number of threads. Needs what
`make test-live` needs, ampsched-live-scx as `make build` installs it, and scx_bpfland in PATH; `make bench-live` sees
to all.
"""

import argparse
import json
import math
import random
import shutil
import subprocess
import sys
from pathlib import Path

from ampsched import vm
from ampsched.statistics import estimate

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / ".build" / "benchmarks"
PEER = "scx_bpfland"
LOADER = Path(sys.executable).parent / "ampsched-live-scx"
# What a round measures, all in smaller-is-better units.
MEASURES = {
    "messaging_s": "`perf bench sched messaging`, 2 groups, s",
    "pipe_us": "`perf bench sched pipe`, us per round trip",
    "wake_p50_us": "wake-up latency, 2 x 6 threads, median, us",
    "wake_p99_us": "wake-up latency, 99th percentile, us",
}
SCHEDULERS = {"eevdf": "EEVDF", "ours": "ours", "preempting": "ours, pre-empting", "peer": PEER}
TARGET = 1.10
LIMIT_S = 200
TRIES = 5


def main() -> int:
    """Builds, measures in the virtual machine and prints Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6, help="rounds, each with all schedulers (6)")
    parser.add_argument("--seed", type=int, default=1, help="of the order of schedulers (1)")
    parser.add_argument(
        "--threads", default="1000,4000", help="numbers of threads for the epoch's cost (1000,4000)"
    )
    parser.add_argument(
        "--no-batch",
        dest="batch",
        action="store_false",
        help="let virtual cores interrupt each other on the host, even while they hold locks",
    )
    options = parser.parse_args()
    peer = shutil.which(PEER)
    if peer is None or not LOADER.exists():
        print(f"live_overhead: no {PEER} in PATH or no {LOADER} (make bench-live has both)", file=sys.stderr)
        return 2
    shape, programs, draw = vm.Shape(batch=options.batch), build(peer), random.Random(options.seed)
    try:
        rounds = []
        for _ in range(options.rounds):
            order = draw.sample(list(SCHEDULERS), len(SCHEDULERS))
            rounds.append(in_guest(shape, {**programs, "order": order}))
        counts = map(int, options.threads.split(","))
        epochs = [in_guest(shape, {**programs, "threads": count}) for count in counts]
    except RuntimeError as error:
        print(f"live_overhead: {error}", file=sys.stderr)
        return 1
    print("\n".join([*report(rounds), "", *epoch_table(epochs)]))
    return 0


def in_guest(shape: vm.Shape, request: dict[str, object]) -> dict:
    """Boots, measures and returns what was measured."""
    command = [sys.executable, str(ROOT / "benchmarks/live_overhead_guest.py"), json.dumps(request)]
    done = vm.run(command, shape=shape, limit_s=LIMIT_S, throttle=False, cwd=ROOT, tries=TRIES)
    if done.code != 0 or not done.results():
        raise RuntimeError(f"the guest failed (code {done.code}): {done.output[-500:]} {done.console[-500:]}")
    found: dict = done.results()[-1]
    print(found, file=sys.stderr)
    return found


def build(peer: str) -> dict[str, object]:
    """Builds the programs; returns where they are."""
    BUILD.mkdir(parents=True, exist_ok=True)
    latency = BUILD / "wake_latency"
    source = ROOT / "benchmarks/peers/wake_latency.c"
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
    subprocess.run(["gcc", *flags, "-o", str(latency), str(source)], check=True)
    return {"loader": str(LOADER), "peer": str(Path(peer).resolve()), "latency": str(latency)}


def report(rounds: list[dict]) -> list[str]:
    """Means, and ratios with intervals."""
    heads = [*SCHEDULERS.values(), "ours / EEVDF", f"ours / {PEER}", "", f"pre-empting / {PEER}", ""]
    lines = ["| | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(heads)]
    for measure, what in MEASURES.items():
        values = {who: [one[who][measure] for one in rounds] for who in SCHEDULERS}
        means = [f"{estimate(of).mean:.3g}" for of in values.values()]
        to_eevdf = interval(ratio(values["ours"], values["eevdf"]))
        to_peer = [with_verdict(ratio(values[who], values["peer"])) for who in ("ours", "preempting")]
        lines.append("| " + " | ".join([what, *means, to_eevdf, *to_peer]) + " |")
    note = f"Geometric means of {len(rounds)} rounds, 95 % intervals; target: at most {TARGET:.2f} x {PEER}."
    return [*lines, "", note]


def epoch_table(epochs: list[dict]) -> list[str]:
    """CPU time of epochs by the number of threads."""
    lines = ["| threads | CPU time of an epoch of COLAB, us | per 1,000 threads, us |", "|---:|---:|---:|"]
    for cost in epochs:
        numbers = (cost["epoch_threads"], cost["epoch_us"], cost["epoch_us_per_1000_threads"])
        lines.append("| {:.0f} | {:.0f} | {:.0f} |".format(*numbers))
    return lines


def ratio(ours: list[float], others: list[float]) -> tuple[float, float, float]:
    """Geometric mean of ratios of the same round, with its interval."""
    logs = estimate([math.log(a / b) for a, b in zip(ours, others, strict=True)])
    return math.exp(logs.mean), math.exp(logs.low), math.exp(logs.high)


def interval(values: tuple[float, float, float]) -> str:
    """A ratio as text."""
    return "{:.2f} ({:.2f} to {:.2f})".format(*values)


def with_verdict(values: tuple[float, float, float]) -> str:
    """Two cells: a ratio, and whether it reaches the target."""
    return f"{interval(values)} | {'reached' if values[0] <= TARGET else 'missed'}"


if __name__ == "__main__":
    sys.exit(main())
