"""Measures what scheduling in the kernel costs: ours (policy cfs) beside the kernel's EEVDF and scx_bpfland, in a virtual machine.

Each round boots the machine, loads the three in random order and runs the same programs under each; ratios of a round are comparable,
absolute numbers of translated instructions are not. A machine whose kernel fails is booted once more: translated instructions and a
kernel that patches itself do not always get along. Also prints the CPU time of an epoch of COLAB by the number of threads. Needs what
`make test-live` needs, ampsched-live-scx as `make build` installs it, and scx_bpfland in PATH; `make bench-live` sees to all.
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
TARGET = 1.10
LIMIT_S = 200


def main() -> int:
    """Builds, measures in the virtual machine and prints Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6, help="rounds, each with all schedulers (6)")
    parser.add_argument("--seed", type=int, default=1, help="of the order of schedulers (1)")
    parser.add_argument(
        "--threads", default="1000", help="numbers of threads for the epoch's cost, such as 500,1000 (1000)"
    )
    options = parser.parse_args()
    peer = shutil.which(PEER)
    if peer is None or not LOADER.exists():
        print(f"live_overhead: no {PEER} in PATH or no {LOADER} (make bench-live has both)", file=sys.stderr)
        return 2
    programs, draw = build(peer), random.Random(options.seed)
    try:
        rounds = []
        for _ in range(options.rounds):
            order = draw.sample(["eevdf", "ours", "peer"], 3)
            rounds.append(in_guest({**programs, "order": order}))
        epochs = [in_guest({**programs, "threads": int(count)}) for count in options.threads.split(",")]
    except RuntimeError as error:
        print(f"live_overhead: {error}", file=sys.stderr)
        return 1
    print("\n".join([*report(rounds), "", *epoch_table(epochs)]))
    return 0


def in_guest(request: dict[str, object]) -> dict:
    """Boots, measures and returns what was measured."""
    command = [sys.executable, str(ROOT / "benchmarks/live_overhead_guest.py"), json.dumps(request)]
    for _ in range(2):
        done = vm.run(command, limit_s=LIMIT_S, throttle=False, cwd=ROOT)
        if done.code is not None:
            break
    marked = [line for line in done.output.splitlines() if line.startswith("RESULT ")]
    if done.code != 0 or not marked:
        raise RuntimeError(f"the guest failed (code {done.code}): {done.output[-500:]} {done.console[-500:]}")
    print(marked[-1], file=sys.stderr)
    found: dict = json.loads(marked[-1].removeprefix("RESULT "))
    return found


def build(peer: str) -> dict[str, object]:
    """Builds the programs; returns where they are."""
    BUILD.mkdir(parents=True, exist_ok=True)
    latency = BUILD / "wake_latency"
    source = ROOT / "benchmarks/peers/wake_latency.c"
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
    subprocess.run(["gcc", *flags, "-o", str(latency), str(source)], check=True)
    # The guest sees nothing of /tmp but the working folder.
    shutil.copy(peer, BUILD / PEER)
    return {
        "loader": str(LOADER),
        "peer": str(BUILD / PEER),
        "latency": str(latency),
    }


def report(rounds: list[dict]) -> list[str]:
    """Means, and ratios with intervals."""
    lines = [
        "| | EEVDF | ours | scx_bpfland | ours / EEVDF | ours / scx_bpfland | |",
        "|---|" + "---:|" * 5 + "---|",
    ]
    for measure, what in MEASURES.items():
        values = {who: [one[who][measure] for one in rounds] for who in ("eevdf", "ours", "peer")}
        means = [f"{estimate(of).mean:.3g}" for of in values.values()]
        to_peer = ratio(values["ours"], values["peer"])
        verdict = "reached" if to_peer[0] <= TARGET else "missed"
        ratios = [interval(ratio(values["ours"], values["eevdf"])), interval(to_peer)]
        lines.append("| " + " | ".join([what, *means, *ratios, verdict]) + " |")
    note = f"Geometric means of {len(rounds)} rounds, 95 % intervals; target: at most {TARGET:.2f} x scx_bpfland."
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


if __name__ == "__main__":
    sys.exit(main())
