"""A campaign: boots side by side, all cells in turn, so that it may be stopped at any time and gone on with later."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from ampsched.vm.error import VmError
from ampsched_lab.campaign.boot import Guest, Scheduler, boot
from ampsched_lab.campaign.plan import Mix, Run
from ampsched_lab.campaign.store import Store, digest

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Group:
    """What a boot has in common: a machine with a kernel, a scheduler, and the mixes that are run."""

    guest: Guest
    scheduler: Scheduler
    mixes: tuple[Mix, ...]

    @property
    def name(self) -> str:
        return f"{self.guest.name} {self.guest.system} {self.scheduler.name}"

    def runs(self, offsets: Sequence[int]) -> list[Run]:
        return [Run(mix, offset) for offset in offsets for mix in self.mixes]


def carry_out_all(groups: Sequence[Group], blocks: Sequence[Sequence[int]], store: Store, jobs: int) -> None:
    """As :func:`carry_out`, telling on standard output what happens; a boot that fails ends the program."""
    failures = carry_out(groups, blocks, store, jobs=jobs, tell=lambda text: print(text, flush=True))
    if failures:
        names = ", ".join(failure.split(":")[0] for failure in failures)
        sys.exit(f"no results of {names}: see above; what was measured is kept")


def carry_out(
    groups: Sequence[Group],
    blocks: Sequence[Sequence[int]],
    store: Store,
    *,
    jobs: int = 1,
    until_s: float | None = None,
    keep: Callable[[dict[str, Any]], dict[str, Any]] = lambda row: row,
    tell: Tell = print,
) -> list[str]:
    """Runs what the store does not have yet: the first block of offsets for all groups, then the second, and so on.

    A boot carries out a whole block, in its order, or nothing of it: what the kernel keeps from one run to the next
    (its balancers' intervals, which cores they looked at last) depends on that order only.

    Args:
        groups: Each is booted once per block.
        blocks: Offsets that are run after the same boot.
        store: Gets the results.
        jobs: Virtual machines at a time; each takes a core of this computer.
        until_s: No boot begins after that (monotonic clock).
        keep: What of the director's account of a run is kept.
        tell: Is told what happens.

    Returns:
        Which boots have failed, and why; they have no results.
    """
    work = _todo(groups, blocks, store)
    failures: list[str] = []
    with ThreadPoolExecutor(jobs) as pool:
        running: dict[Future[list[dict[str, Any]]], tuple[Group, list[Run], float]] = {}
        while True:
            while len(running) < jobs and (until_s is None or time.monotonic() < until_s):
                group, runs = next(work, (None, []))
                if group is None:
                    break
                future = pool.submit(boot, group.guest, group.scheduler, runs)
                running[future] = group, runs, time.monotonic()
            if not running:
                return failures
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                group, runs, began_s = running.pop(future)
                try:
                    _keep(store, group, runs, future.result(), keep)
                except VmError as error:
                    failures.append(" ".join(str(error).split()))
                    tell(f"failed: {failures[-1]}")
                else:
                    tell(f"{group.name}: {len(runs)} runs in {time.monotonic() - began_s:.0f} s")


def _todo(
    groups: Sequence[Group], blocks: Sequence[Sequence[int]], store: Store
) -> Iterator[tuple[Group, list[Run]]]:
    for block in blocks:
        for group in groups:
            runs = group.runs(block)
            if store.missing(group.guest, group.scheduler, runs):
                yield group, runs


def _keep(
    store: Store,
    group: Group,
    runs: Sequence[Run],
    found: Sequence[dict[str, Any]],
    keep: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    rows = []
    for run, row in zip(runs, found, strict=True):
        own = {name: value for name, value in keep(row).items() if name != "key"}
        what = {
            "mix": run.mix.name,
            "offset": run.offset,
            "digest": digest(group.guest, group.scheduler, run),
        }
        rows.append({**what, **own})
    store.add(group.guest.name, group.guest.system, group.scheduler.name, rows)
