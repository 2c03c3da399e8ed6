"""How fast the virtual cores really are, as the guest sees them."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from ampsched.vm.error import VmError
from ampsched.vm.machine import run
from ampsched.vm.shape import Shape

MEASURE_S = 4.0  # 40 periods of the quotas by default
START_S = 1.0  # until all processes run

# One process per core counts how often it comes round; only what is counted between two moments that all share matters.
PROGRAM = """
import json, os, sys, time
cores, begin = int(sys.argv[1]), time.monotonic() + float(sys.argv[2])
end = begin + float(sys.argv[3])
pipes = []
for core in range(cores):
    read, write = os.pipe()
    if os.fork() == 0:
        os.sched_setaffinity(0, {core})
        rounds, now = 0, 0.0
        while now < end:
            for _ in range(200): pass
            now = time.monotonic()
            rounds += now >= begin
        os.write(write, str(rounds).encode())
        os._exit(0)
    pipes.append(read)
print(json.dumps([int(os.read(pipe, 64)) / (end - begin) for pipe in pipes]))
"""


@dataclass(frozen=True)
class Speeds:
    """Speeds of virtual cores.

    Attributes:
        rounds_per_s: Rounds of a loop per s on each core, all at once.
        ratio: Mean speed of the big cores over that of the little ones; none if there is only one kind.
    """

    rounds_per_s: Sequence[float]
    ratio: float | None


def command(shape: Shape) -> list[str]:
    """The command that measures inside a virtual machine of that shape and prints a JSON list."""
    return [sys.executable, "-SIc", PROGRAM, str(shape.cores), str(START_S), str(MEASURE_S)]


def evaluate(rounds_per_s: Sequence[float], shape: Shape) -> Speeds:
    """What was measured on each core, the big ones first, as speeds and a ratio."""
    big, little = rounds_per_s[: shape.big.count], rounds_per_s[shape.big.count :]
    return Speeds(rounds_per_s, fmean(big) / fmean(little) if big and little else None)


def measure(shape: Shape | None = None) -> Speeds:
    """Boots a virtual machine and measures its cores.

    Args:
        shape: Cores and their speeds.

    Raises:
        VmError: The machine cannot be had, or the measurement failed.
    """
    shape = shape or Shape()
    done = run(command(shape), shape=shape, limit_s=120)
    if done.code != 0:
        raise VmError(f"speeds cannot be measured in the virtual machine: {done.output.strip()[-200:]}")
    return evaluate(json.loads(done.output), shape)
