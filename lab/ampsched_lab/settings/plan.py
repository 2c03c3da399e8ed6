"""The rule, written before anything was run: programs, machines, settings, and how they are judged.

*Programs*: the ten of :data:`KINDS`, of kinds that people run, written for this and used nowhere else. Each does some
150 million instructions (:file:`threads.c`, :file:`openmp.c`): 0.3 s on all cores of a machine of 100 MIPS.

*Settings*: numbers of threads times sets of cores under Linux's own scheduler (EEVDF 6.18), and each of
:data:`POLICIES` with as many threads as cores on all cores; at most 40 a machine. All are run in the exact machine
once, from the same moment (sample :data:`SAMPLE`).

*Advice*: the program is recorded with as many threads as each set of the product's own choice has cores, on as many
fast cores. The product is asked what is best on the machine; a refusal leaves the program as it is.

*Verdict*: a program is met on a machine if the advised setting took at most 3 % longer than the best of all settings,
and never may it take longer than leaving it (as many threads as cores, all cores, EEVDF). Aim: 8 of 10 programs met on
each machine, none worse. What was not tried, because a policy could not be put into the kernel, does not count as best
and is not offered to the product; the page says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from ampsched import Catalog
from ampsched.recording.cores import thread_counts
from ampsched.vm.exact import Exact
from ampsched_lab.campaign.boot import HOME
from ampsched_lab.campaign.plan import Mix, Program
from ampsched_lab.gain.machines import LINUX as KERNEL
from ampsched_lab.gain.machines import X86

FOLDER = Path(__file__).parent
MIPS = 100.0
"""Of the fastest core."""
SAMPLE = 1
"""The offset of a campaign: programs start at a moment that is drawn from it and the setting's name."""
AGAIN = (2, 3, 4, 5, 6)
"""Samples with which the advised and the best setting of a missed program are run again, to tell chance from more: the
least of forty times is also the luckiest. This was added when the first results were known and changes no verdict."""
NEAR = 0.03
"""By how much longer than the best a setting may take and still be met."""
AIM = 8
"""Programs to be met, of ten, on each machine."""
SETTINGS_MAX = 40
LINUX = "linux"
"""The kernel's own scheduler."""
POLICIES = ("abreast", "acfs", "colab", "equal-progress")
ALL = "all"


@dataclass(frozen=True)
class Kind:
    """A program.

    Attributes:
        name: Its kind.
        source: Its source's name, which is also the program's.
        what: What it stands for.
    """

    name: str
    source: str
    what: str

    @property
    def sources(self) -> tuple[Path, ...]:
        """All its files."""
        return FOLDER / f"{self.source}.c", FOLDER / "work.h"


KINDS = (
    Kind("layers", "openmp", "matrix times vector, a spinning barrier after each layer: as llama.cpp"),
    Kind("crack", "threads", "equal shares of keys, a thread each: as john"),
    Kind("wavefront", "threads", "rows of blocks that wait for the row above: as x265"),
    Kind("fixed", "openmp", "OpenMP loops, schedule(static)"),
    Kind("taken", "openmp", "OpenMP loops over unequal iterations, schedule(dynamic)"),
    Kind("queue", "threads", "blocks from a bounded queue, as parallel compressors"),
    Kind("pipeline", "threads", "one decodes, many filter, one writes"),
    Kind("tree", "threads", "fork and join, half as many threads a level, as merge sorts"),
    Kind("stencil", "openmp", "sweeps over a grid in memory, rows in equal parts"),
    Kind("server", "threads", "12 clients that wait for answers and think for 2 ms"),
)


@dataclass(frozen=True)
class Setting:
    """What a user may choose.

    Attributes:
        threads: Number of threads.
        cpus: Which CPUs the program may use.
        policy: The scheduler.
    """

    threads: int
    cpus: tuple[int, ...]
    policy: str = LINUX

    @property
    def name(self) -> str:
        """Such as `linux-4-on-0.1.2.3`, for files and keys."""
        return f"{self.policy}-{self.threads}-on-{'.'.join(map(str, self.cpus))}"


@dataclass(frozen=True)
class Place:
    """A machine, and what is tried there.

    Attributes:
        name: Its name in reports.
        machine: A shipped machine, or a part of one.
        threads: Numbers of threads, the usual one last.
        cores: Sets of CPUs by names for readers; all cores first.
    """

    name: str
    machine: str
    threads: tuple[int, ...]
    cores: Mapping[str, tuple[int, ...]]

    @property
    def usual(self) -> Setting:
        """Leaving it as it is."""
        return Setting(len(self.cores[ALL]), self.cores[ALL])

    def settings(self) -> list[Setting]:
        """All that is tried."""
        plain = [Setting(count, cpus) for cpus in self.cores.values() for count in self.threads]
        return plain + [replace(self.usual, policy=policy) for policy in POLICIES]

    def words(self, setting: Setting) -> str:
        """A setting for readers."""
        names = {cpus: name for name, cpus in self.cores.items()}
        cores = names.get(setting.cpus, f"CPUs {','.join(map(str, setting.cpus))}")
        policy = "" if setting.policy == LINUX else f", {setting.policy}"
        return f"{setting.threads} on {cores}{policy}"

    def recorded(self) -> list[int]:
        """Numbers of threads that are recorded: those that the product asks for."""
        return thread_counts(exact(self.name).machine)


PLACES = (
    Place(
        "4B4S",
        "4B4S",
        (2, 4, 5, 6, 12, 8),
        {
            ALL: tuple(range(8)),
            "4 big": (0, 1, 2, 3),
            "4 big + 1 little": (0, 1, 2, 3, 4),
            "4 big + 2 little": (0, 1, 2, 3, 4, 5),
            "2 big": (0, 1),
            "4 little": (4, 5, 6, 7),
        },
    ),
    Place(
        "2P4E",
        "tensor:little=2",
        (2, 3, 4, 5, 8, 6),
        {
            ALL: tuple(range(6)),
            "2 big": (4, 5),
            "2 big + 1 middle": (2, 4, 5),
            "2 big + 2 middle": (2, 3, 4, 5),
            "2 big + 2 middle + 1 little": (0, 2, 3, 4, 5),
            "2 little": (0, 1),
        },
    ),
    Place(
        "8P16E",
        "hybrid-8P16E",
        (4, 8, 12, 16, 32, 24),
        {
            ALL: tuple(range(24)),
            "8 P": tuple(range(8)),
            "8 P + 4 E": tuple(range(12)),
            "8 P + 8 E": tuple(range(16)),
            "4 P": tuple(range(4)),
            "16 E": tuple(range(8, 24)),
        },
    ),
)


@cache
def exact(name: str, mips: float = MIPS) -> Exact:
    """The virtual machine of a place."""
    [place] = (each for each in PLACES if each.name == name)
    return Exact(Catalog.shipped().machine(place.machine), kernel=KERNEL, architecture=X86, mips=mips)


def words(kind: Kind, threads: int) -> tuple[str, ...]:
    """Program and arguments."""
    return kind.source, kind.name, str(threads)


def mix(kind: Kind, setting: Setting) -> Mix:
    """A run of a program with a setting."""
    program, *arguments = words(kind, setting.threads)
    cpus = ",".join(map(str, setting.cpus))
    bound = ("/ampsched/bin/taskset", "-c", cpus, str(HOME / "bin" / program), *arguments)
    return Mix(
        f"{kind.name}-{setting.name}",
        kind.what,
        (Program(kind.name, bound),),
        is_traced=False,
        sources=kind.sources,
    )
