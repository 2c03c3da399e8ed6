"""The part of live_overhead.py inside the virtual machine: a round of measurements, or the cost of epochs.

Prints one JSON object.
"""

import json
import re
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path

from ampsched.live._under import loaded

CORES = ["--big", "0-1", "--little", "2-3", "--ratio", "2.5", "--everything"]
PIPE_LOOPS, GROUP_LOOPS, LATENCY_S = 2000, 60, 4
EPOCH_S = 8
SLEEP_S = 2.0


def main():
    ask = json.loads(sys.argv[1])
    result = epoch_cost(ask["loader"], ask["threads"]) if "threads" in ask else one_round(ask)
    print("RESULT " + json.dumps(result))


def one_round(ask):
    """What each scheduler achieves, in the order asked for."""
    commands = {
        "eevdf": None,
        "ours": [ask["loader"], "run", "--quiet", "--policy", "cfs:wakeup_granularity_ms=1000", *CORES],
        "preempting": [ask["loader"], "run", "--quiet", "--policy", "cfs", *CORES],
        "peer": [ask["peer"]],
    }
    found = {}
    for who in ask["order"]:
        with loaded(commands[who]) if commands[who] else nullcontext():
            found[who] = measure(ask["latency"])
    return found


def output(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout + done.stderr


def total_s(*words):
    return float(re.search(r"Total time: *([\d.]+)", output("perf", "bench", "sched", *words))[1])


def measure(latency):
    median_us, p99_us, _ = output(latency, "2", "6", str(LATENCY_S)).split()
    return {
        "messaging_s": total_s("messaging", "--group", "2", "--nr_loops", str(GROUP_LOOPS)),
        "pipe_us": total_s("pipe", "--loop", str(PIPE_LOOPS)) * 1e6 / PIPE_LOOPS,
        "wake_p50_us": float(median_us),
        "wake_p99_us": float(p99_us),
    }


def epoch_cost(loader, count):
    """CPU time of COLAB's epochs with many threads that sleep and wake up now and then."""
    result = Path("/run/summary.json")
    threading.stack_size(64 << 10)
    over = threading.Event()
    threads = [threading.Thread(target=doze, args=(over, i * SLEEP_S / count)) for i in range(count)]
    for thread in threads:
        thread.start()
    command = [loader, "run", "--quiet", "--policy", "colab", *CORES, "--result", str(result)]
    with loaded(command):
        time.sleep(EPOCH_S)
    over.set()
    for thread in threads:
        thread.join()
    summary = json.loads(result.read_text())
    return {key: summary[key] for key in ("epoch_us", "epoch_threads", "epoch_us_per_1000_threads")}


def doze(over, offset_s):
    time.sleep(offset_s)
    while not over.is_set():
        time.sleep(SLEEP_S)


main()
