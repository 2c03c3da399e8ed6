"""FIFO and HEFT list scheduling of a task graph in plain Python, four cores of speed 10 and four of 4.

Usage: plain_tasks.py FILE.csv fifo|heft. A line is id,work,kind,dep;dep, predecessors first. Prints a JSON object with
the number of tasks, the CPU time without reading, and the makespan.
"""

import heapq
import json
import sys
import time
from bisect import bisect_right, insort
from collections import deque
from pathlib import Path

SPEEDS = [10.0] * 4 + [4.0] * 4


def fifo(work: list[float], before: list[list[int]], after: list[list[int]]) -> float:
    """Ready tasks in their order, lowest idle core first."""
    missing = [len(tasks) for tasks in before]
    ready = deque(task for task, count in enumerate(missing) if count == 0)
    idle = list(range(len(SPEEDS)))
    running: list[tuple[float, int, int]] = []
    now = 0.0
    while ready or running:
        while ready and idle:
            core, task = heapq.heappop(idle), ready.popleft()
            heapq.heappush(running, (now + work[task] / SPEEDS[core], task, core))
        now, task, core = heapq.heappop(running)
        heapq.heappush(idle, core)
        for following in after[task]:
            missing[following] -= 1
            if missing[following] == 0:
                ready.append(following)
    return now


def heft(work: list[float], before: list[list[int]], after: list[list[int]]) -> float:
    """Longest remaining path first, each task where it ends first, gaps included."""
    mean = sum(1 / speed for speed in SPEEDS) / len(SPEEDS)
    rank = [0.0] * len(work)
    for task in reversed(range(len(work))):
        rank[task] = work[task] * mean + max((rank[following] for following in after[task]), default=0.0)
    busy: list[list[tuple[float, float]]] = [[] for _ in SPEEDS]
    end = [0.0] * len(work)
    for task in sorted(range(len(work)), key=lambda task: -rank[task]):
        ready = max((end[other] for other in before[task]), default=0.0)
        slots = [
            (earliest(row, ready, work[task] / speed), core)
            for core, (row, speed) in enumerate(zip(busy, SPEEDS, strict=True))
        ]
        end[task], core = min((start + work[task] / SPEEDS[core], core) for start, core in slots)
        start = next(start for start, other in slots if other == core)
        insort(busy[core], (start, end[task]))
    return max(end)


def earliest(row: list[tuple[float, float]], ready: float, length: float) -> float:
    """Start of the first gap that holds a task."""
    place = bisect_right(row, (ready, float("inf")))
    start = max(ready, row[place - 1][1]) if place else ready
    while place < len(row) and row[place][0] - start < length:
        start = row[place][1]
        place += 1
    return start


def main() -> None:
    """Measures one run."""
    work, before = [], []
    for line in Path(sys.argv[1]).read_text().splitlines():
        _, amount, _, tasks = line.split(",")
        work.append(float(amount))
        before.append([int(task) for task in tasks.split(";") if task])
    after: list[list[int]] = [[] for _ in work]
    for task, others in enumerate(before):
        for other in others:
            after[other].append(task)
    start_s = time.process_time()
    makespan = {"fifo": fifo, "heft": heft}[sys.argv[2]](work, before, after)
    cpu_s = time.process_time() - start_s
    version = ".".join(map(str, sys.version_info[:2]))
    print(json.dumps({"dispatches": len(work), "cpu_s": cpu_s, "makespan_s": makespan, "version": version}))


if __name__ == "__main__":
    main()
