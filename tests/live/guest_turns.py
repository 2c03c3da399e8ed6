"""Runs inside the virtual machine: how long two processes on two CPUs take to wake each other in turn.

Prints the ns of a turn for each pair of CPUs that is named, such as ``0-1``.
"""

import os
import sys
import time

TURNS = 1000


def turn_ns(first: int, second: int) -> float:
    there, back = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, {second})
        for _ in range(TURNS + 1):
            os.read(there[0], 1)
            os.write(back[1], b"x")
        os._exit(0)
    os.sched_setaffinity(0, {first})
    os.write(there[1], b"x")
    os.read(back[0], 1)
    begin_ns = time.monotonic_ns()
    for _ in range(TURNS):
        os.write(there[1], b"x")
        os.read(back[0], 1)
    took_ns = time.monotonic_ns() - begin_ns
    os.waitpid(child, 0)
    return took_ns / TURNS / 2


for pair in sys.argv[1:]:
    cpus = [int(cpu) for cpu in pair.split("-")]
    print(turn_ns(cpus[0], cpus[1]))
