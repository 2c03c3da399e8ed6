"""What is run: mixes of programs, each with threads for which others wait, or that gain differently, or in a hurry.

The amounts were chosen once, before any policy was measured, from what a program takes alone: some 0.1 to 0.3 s of a
fast core per program, so that a mix keeps four unequal cores busy for 0.3 to 0.6 s.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from ampsched_lab.campaign.plan import Mix, Program

MS = 250_000
"""Iterations of integer work that take some 1 ms on a core of 1000 million instructions per second."""
BIN = PurePosixPath("/campaign/bin")
ROOT = Path("/programs")
"""Root of the programs from Debian's archive, in the guest."""
DATA = ROOT / "data"


@dataclass(frozen=True)
class Synthetic:
    """A small C program of lab/ampsched_lab/programs, and the same for the simulator.

    Attributes:
        program: Name of both.
        what: For the report.
        works: Amounts of integer work in MS, by the argument that takes them.
        numbers: Other arguments.
        texts: Arguments of the C program alone.
        reports: Says something of its own: how late it was.
    """

    program: str
    what: str
    works: Mapping[str, float]
    numbers: Mapping[str, int] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    reports: bool = False

    def run(self, name: str) -> Program:
        iterations = {key: round(work * MS) for key, work in self.works.items()}
        values = {"calibrations": 0, **iterations, **self.numbers, **self.texts}
        words = [str(word) for key, value in values.items() for word in (f"--{key}", value)]
        return Program(name, (str(BIN / self.program), *words), self.reports)


@dataclass(frozen=True)
class Real:
    """A program of Debian's archive.

    Attributes:
        what: For the report.
        words: Its path and arguments.
    """

    what: str
    words: tuple[str, ...]

    def run(self, name: str) -> Program:
        return Program(name, self.words, root=str(ROOT))


@dataclass(frozen=True)
class Chosen:
    """A mix, by what its programs are."""

    name: str
    what: str
    programs: Mapping[str, Synthetic | Real]

    def mix(self) -> Mix:
        return Mix(self.name, self.what, tuple(each.run(name) for name, each in self.programs.items()))

    @property
    def is_synthetic(self) -> bool:
        """Whether the simulator knows all of its programs."""
        return all(isinstance(each, Synthetic) for each in self.programs.values())


def _convoy(what: str, outside: float, inside: float, rounds: int) -> Synthetic:
    return Synthetic("convoy", what, {"outside": outside, "inside": inside}, {"threads": 4, "rounds": rounds})


def _pipeline(what: str, source: float, middle: float, sink: float, items: int) -> Synthetic:
    works = {"source": source, "work": middle, "sink": sink}
    return Synthetic("pipeline", what, works, {"middle": 3, "items": items, "capacity": 4})


def _barrier(what: str, threads: int, work: float, step: float, rounds: int) -> Synthetic:
    return Synthetic("barrier", what, {"work": work, "step": step}, {"threads": threads, "rounds": rounds})


def _hogs(what: str, count: int, work: float, kind: str = "integer") -> Synthetic:
    texts = {"nice": ",".join(["0"] * count)} | ({} if kind == "integer" else {"kind": kind})
    return Synthetic("hogs", what, {"work": work}, texts=texts)


def _sleepers(what: str, count: int, burst: float, period_us: int, rounds: int) -> Synthetic:
    numbers = {"sleepers": count, "hogs": 1, "rounds": rounds, "period-us": period_us, "step-us": 1000}
    return Synthetic("sleepers", what, {"burst": burst, "work": 0.01}, numbers, reports=True)


HOT = _convoy("4 threads, two thirds of their work (3 ms a round) under one lock", 1.0, 2.0, 20)
COOL = _convoy("4 threads, a fifth of their work (5 ms a round) under one lock", 4.0, 1.0, 14)
SINK = _pipeline("a source (1 ms), 3 middle threads (3 ms each), a sink (2.5 ms)", 1.0, 3.0, 2.5, 40)
SOURCE = _pipeline("a source (2.5 ms), 3 middle threads (3 ms each), a sink (0.5 ms)", 2.5, 3.0, 0.5, 40)
EVEN = _barrier("4 threads of 4 ms a round, which meet after each", 4, 4.0, 0.001, 15)
UNEVEN = _barrier("4 threads of 1 to 7 ms a round, which meet after each", 4, 1.0, 2.0, 15)
HOGS = _hogs("3 threads that never wait", 3, 80.0)
FEW_HOGS = _hogs("2 threads that never wait", 2, 80.0)
SLEEPERS = _sleepers("4 threads that compute for 1.5 ms every 10 to 13 ms and must be done before the next time", 4, 1.5,
                     10_000, 40)  # fmt: skip
XZ = Real("`xz -2` packs 600 kB of words", ("/usr/bin/xz", "-2", "-T1", "-c", "/data/text"))
ZSTD = Real("`zstd -9` packs 600 kB of words", ("/usr/bin/zstd", "-9", "-q", "-c", "/data/text"))
FLAC = Real("`flac` encodes 4 s of stereo sound", ("/usr/bin/flac", "--silent", "-c", "/data/sound.wav"))
SQLITE = Real(
    "`sqlite3` fills a table of 4,000 rows and asks", ("/usr/bin/sqlite3", ":memory:", ".read /data/rows.sql")
)
BUILD = Real("`make -j3` compiles 4 C files with gcc", ("/usr/bin/make", "-s", "-j3", "-f", "/data/Makefile"))

MIXES = [
    Chosen("locks", "two programs whose threads share a lock", {"hot": HOT, "cool": COOL}),
    Chosen("pipelines", "two pipelines with a slowest stage each", {"sink": SINK, "source": SOURCE}),
    Chosen("barriers", "two programs with barriers, and hogs", {"even": EVEN, "uneven": UNEVEN, "hogs": FEW_HOGS}),
    Chosen("hogs", "a lock, a pipeline and three hogs", {"hot": HOT, "sink": SINK, "hogs": HOGS}),
    Chosen("deadlines", "sleepers with deadlines beside hogs and a pipeline",
           {"sleepers": SLEEPERS, "hogs": HOGS, "sink": SINK}),
    Chosen("kinds", "programs that gain differently: integer, memory, floating point",
           {"integer": _hogs("2 threads of integer code", 2, 80.0),
            "memory": _hogs("2 threads of loads", 2, 25.0, "memory"),
            "float": _hogs("2 threads of floating point", 2, 30.0, "float")}),
    Chosen("desktop", "compressors, an encoder and a database, one thread each",
           {"xz": XZ, "zstd": ZSTD, "flac": FLAC, "sqlite": SQLITE}),
    Chosen("build", "a build beside a compressor, and sleepers with deadlines",
           {"make": BUILD, "xz": XZ, "sleepers": SLEEPERS}),
]  # fmt: skip
"""In this order after each boot."""
