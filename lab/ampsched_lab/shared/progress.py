"""Progress of runs that are parts of one."""

from collections.abc import Mapping
from typing import TypeVar

from ampsched.execution import Progress

Name = TypeVar("Name")


def shares(progress: Progress | None, sizes: Mapping[Name, int]) -> dict[Name, Progress]:
    """What runs that follow one another report to, each as a part of all.

    Args:
        progress: Called with the number of finished simulations and of all.
        sizes: The number of simulations of each run, in their order.
    """
    total = sum(sizes.values())
    found: dict[Name, Progress] = {}
    before = 0
    for name, size in sizes.items():

        def step(done: int, of_all: int, before: int = before, size: int = size) -> None:
            if progress:
                progress(before + done * size // of_all, total)

        found[name] = step
        before += size
    return found
