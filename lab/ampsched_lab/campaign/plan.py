"""What a boot is to do: runs of mixes, as the director (director.c) reads them."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SETTLE_US = 300_000
"""Pause before a run, in the guest's time: what the kernel remembers of load decays by half every 32 ms."""
LIMIT_US = 30_000_000
"""A run that has not ended by then is stopped, and the campaign with it."""
START_US = 90_000
"""Programs begin within that time, each at a moment of its own."""


@dataclass(frozen=True)
class Program:
    """A program of a mix.

    Attributes:
        name: Its own in the mix; of letters, digits and hyphens.
        words: Its path in the guest and arguments, without tabs.
        reports: What it writes is a line of JSON that belongs to the results; else it is thrown away.
        root: The folder of the guest that is the program's root (chroot), without a slash at its end.
    """

    name: str
    words: tuple[str, ...]
    reports: bool = False
    root: str = ""


@dataclass(frozen=True)
class Mix:
    """Programs that run at the same time.

    Attributes:
        name: Unique; names a file.
        what: One line for readers.
        programs: Its programs.
        files: What they need beside themselves: files of this computer by their paths in the guest.
        is_traced: Moves and switches of threads are counted, by the kernel's trace, which costs time at each.
        sources: Of its programs. If they are named, results belong to what is in them.
    """

    name: str
    what: str
    programs: tuple[Program, ...]
    files: tuple[tuple[Path, Path], ...] = ()
    is_traced: bool = True
    sources: tuple[Path, ...] = ()

    def starts_us(self, offset: int) -> list[int]:
        """When each program begins, in us after the run: the same for all machines and schedulers.

        Args:
            offset: Number of the sample, from 1; at 0 all begin at once.
        """
        if offset == 0:
            return [0] * len(self.programs)
        draw = random.Random(f"{self.name} {offset}")
        return [draw.randrange(START_US) for _ in self.programs]


@dataclass(frozen=True)
class Run:
    """A mix with one sample of its start offsets."""

    mix: Mix
    offset: int

    @property
    def key(self) -> str:
        return f"{self.mix.name} {self.offset}"

    def lines(self) -> list[str]:
        """As the director reads it."""
        rows = [["run", str(LIMIT_US), self.key, *([] if self.mix.is_traced else ["untraced"])]]
        for start_us, program in zip(self.mix.starts_us(self.offset), self.mix.programs, strict=True):
            rows.append(
                [
                    "start",
                    str(start_us),
                    program.name,
                    program.root,
                    "report" if program.reports else "quiet",
                    *program.words,
                ]
            )
        return ["\t".join(row) for row in [*rows, ["go"]]]


def plan(runs: Sequence[Run], classes: Sequence[int], traces: str = "") -> str:
    """The plan of a boot.

    Args:
        runs: In this order.
        classes: Class of each CPU, so that moves between classes are told apart.
        traces: The guest's folder for the trace of each run, none if empty.
    """
    head = [f"settle_us\t{SETTLE_US}", "\t".join(["classes", *map(str, classes)])]
    head += [f"traces\t{traces}"] if traces else []
    return "\n".join([*head, *(line for run in runs for line in run.lines())]) + "\n"
