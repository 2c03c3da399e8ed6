"""The peers' round robin in SimPy: one process per core, one timeout per slice.

Usage: simpy_rr.py CORES THREADS SIM_MS. Prints a JSON object with the number of slices and the CPU time.
"""

import json
import sys
import time
from collections import deque
from collections.abc import Iterator

import simpy

SLICE_MS = 1.0


def run(cores: int, threads: int, sim_ms: float) -> int:
    """Simulates and returns the number of slices; the second half of the cores is half as fast."""
    env = simpy.Environment()
    queue = deque(range(threads))
    work = [0.0] * threads
    slices = 0

    def core(speed: float) -> Iterator[simpy.events.Timeout]:
        nonlocal slices
        while env.now < sim_ms:
            thread = queue.popleft()
            yield env.timeout(SLICE_MS)
            work[thread] += speed * SLICE_MS
            slices += 1
            queue.append(thread)

    for number in range(cores):
        env.process(core(1.0 if 2 * number < cores else 0.5))
    env.run()
    expected = sim_ms * (0.75 * cores)
    if cores % 2 == 0 and abs(sum(work) - expected) > 1e-6 * expected:
        raise RuntimeError(f"work done is {sum(work)}, not {expected}")
    return slices


def main() -> None:
    """Measures one run."""
    cores, threads, sim_ms = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    start_s = time.process_time()
    slices = run(cores, threads, sim_ms)
    cpu_s = time.process_time() - start_s
    print(json.dumps({"dispatches": slices, "cpu_s": cpu_s, "version": simpy.__version__}))


if __name__ == "__main__":
    main()
