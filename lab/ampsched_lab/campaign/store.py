"""Results of campaigns in compressed files: a line per run, in order, so that equal campaigns leave equal files.

A file belongs to a machine; its lines to a system (architecture and kernel), a scheduler, a mix and an offset. A line
also names a digest of what was run, so that what was measured with other mixes or machines is measured anew.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import zstandard

from ampsched_lab.campaign.boot import Guest, Scheduler
from ampsched_lab.campaign.plan import Run

DIGITS = 12
LEVEL = 19
"""Of compression: results are written seldom."""
CRATES = Path(__file__).resolve().parents[3] / "crates/live"
CLOCK, IN_KERNEL = CRATES / "exact", CRATES / "scx/bpf"
"""Sources of the clock that makes cores unequal, and of what our policies have in the kernel."""
FAILED = "failed.txt"


@dataclass(frozen=True)
class Store:
    """A folder of results."""

    root: Path

    def read(self, machine: str, system: str, scheduler: str) -> dict[tuple[str, int], dict[str, Any]]:
        """Runs by mix and offset."""
        begin = _begin(system, scheduler)
        lines = (line for line in self._lines(machine) if line.startswith(begin))
        rows = (json.loads(f"{{{line.removeprefix(begin)}") for line in lines)
        return {(row["mix"], row["offset"]): row for row in rows}

    def add(self, machine: str, system: str, scheduler: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Adds runs, or puts them in the place of earlier ones. From one thread at a time."""
        begin = _begin(system, scheduler)
        runs = self.read(machine, system, scheduler) | {(row["mix"], row["offset"]): row for row in rows}
        own = [begin + json.dumps(runs[key])[1:] for key in sorted(runs)]
        others = [line for line in self._lines(machine) if not line.startswith(begin)]
        # Sorted by system and scheduler; the order of an own block is that of its keys.
        lines = sorted([*others, *own], key=lambda line: line.partition(_END)[0])
        self.root.mkdir(parents=True, exist_ok=True)
        path = self.path(machine)
        whole = path.with_suffix(".new")
        text = "".join(f"{line}\n" for line in lines)
        whole.write_bytes(zstandard.compress(text.encode(), LEVEL))
        whole.rename(path)

    def path(self, machine: str) -> Path:
        """The file of a machine."""
        return self.root / f"{machine}.jsonl.zst"

    def _lines(self, machine: str) -> list[str]:
        path = self.path(machine)
        return zstandard.decompress(path.read_bytes()).decode().splitlines() if path.exists() else []

    def missing(self, guest: Guest, scheduler: Scheduler, runs: Iterable[Run]) -> list[Run]:
        """The runs that have no results yet."""
        found = self.read(guest.name, guest.system, scheduler.name)
        return [
            run
            for run in runs
            if found.get((run.mix.name, run.offset), {}).get("digest") != digest(guest, scheduler, run)
        ]

    def note(self, failures: Iterable[str], tried: Iterable[str]) -> None:
        """Keeps what could not be run, in place of what was known of those that were tried.

        Args:
            failures: Begin with the name of what was tried, and a colon.
            tried: Names.
        """
        anew = frozenset(tried)
        known = [failure for failure in self.failures() if failure.partition(":")[0] not in anew]
        failed = [*known, *failures]
        path = self.root / FAILED
        if failed:
            self.root.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{each}\n" for each in failed), "utf-8")
        else:
            path.unlink(missing_ok=True)

    def failures(self) -> list[str]:
        """What could not be run, and why."""
        path = self.root / FAILED
        return path.read_text("utf-8").splitlines() if path.exists() else []


_END = ', "mix": '


def _begin(system: str, scheduler: str) -> str:
    """How the lines of a system and a scheduler begin."""
    return json.dumps({"system": system, "scheduler": scheduler})[:-1] + ", "


def digest(guest: Guest, scheduler: Scheduler, run: Run) -> str:
    """Of what decides a run's result: the machine and its clock, the run, the scheduler's options and, if it is ours,
    what it has in the kernel. Rules of policies, compilers, other schedulers, and programs of mixes that name no
    sources are not in it.
    """
    sources = [CLOCK, IN_KERNEL] if scheduler.is_ours else [CLOCK]
    words = [
        *(sources_digest(folder) for folder in sources),
        guest.exact.clock_settings(),
        guest.exact.cpu_model(),
        *run.lines(),
        *scheduler.words[1:],
        *scheduler.told,
        *([files_digest(run.mix.sources)] if run.mix.sources else []),
    ]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:DIGITS]


@cache
def sources_digest(folder: Path) -> str:
    """Of the C code in a folder."""
    return files_digest(tuple(sorted(folder.rglob("*.[ch]"))))


@cache
def files_digest(files: tuple[Path, ...]) -> str:
    """Of what is in files."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
