"""Programs of Debian's archive that nothing here was developed with, and what they work on.

The list and the rule of measure.py were written down before any of them was measured.
"""

import argparse
import random
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

TEXT_MB = 48
THREADS = 4
SOURCES = 24
REDIS = Path(__file__).parent / "elsewhere/sources/redis.sh"


class Named(Protocol):
    """What commands choose by name."""

    @property
    def name(self) -> str:
        """Its name."""
        ...


P = TypeVar("P", bound=Named)


@dataclass(frozen=True)
class Program:
    """A program that is recorded.

    Attributes:
        name: For the table.
        packages: Debian packages that it is in, or takes.
        what: What it does, for the table.
        command: Command with `{n}` for the number of threads; it runs in the folder of the inputs.
        recorder: `preload` or `system`.
    """

    name: str
    packages: tuple[str, ...]
    what: str
    command: tuple[str, ...]
    recorder: str = "preload"

    def words(self, threads: int = THREADS) -> tuple[str, ...]:
        """The command with so many threads."""
        return tuple(word.format(n=threads) for word in self.command)

    @property
    def is_scalable(self) -> bool:
        """Whether the command says how many threads there are."""
        return self.words(1) != self.words(2)


def _program(name: str, packages: str, what: str, command: str, recorder: str = "preload") -> Program:
    return Program(name, tuple(packages.split()), what, tuple(command.split()), recorder)


PROGRAMS: Sequence[Program] = (
    _program("pigz", "pigz", "packs 48 MB with 4 threads", "pigz -p {n} -kc text"),
    _program("pbzip2", "pbzip2", "packs 48 MB with 4 threads", "pbzip2 -p{n} -kc text"),
    _program("lbzip2", "lbzip2", "packs 48 MB with 4 threads", "lbzip2 -n {n} -kc text"),
    _program("xz", "xz-utils", "packs 48 MB in blocks with 4 threads", "xz -T{n} --block-size=4MiB -0 -kc text"),
    _program("zstd", "zstd", "packs 48 MB with 4 threads", "zstd -T{n} -12 -c text"),
    _program("plzip", "plzip", "packs 48 MB with 4 threads", "plzip -n{n} -2 -kc text"),
    _program("7z", "p7zip-full", "packs 48 MB with 4 threads", "sh pack-7z.sh {n}"),
    _program("ffmpeg", "ffmpeg", "encodes 8 s of video as MPEG-4 with 4 threads",
             "ffmpeg -v error -nostdin -f lavfi -i testsrc2=size=1280x720:rate=25:duration=8 -threads {n} -c:v mpeg4 -f null -"),
    _program("x264", "x264 ffmpeg", "encodes 20 s of video as H.264 with 4 threads",
             "x264 --quiet --threads {n} --preset veryfast -o /dev/null video.y4m"),
    _program("stockfish", "stockfish", "its benchmark with 4 threads", "/usr/games/stockfish bench 64 {n} 12"),
    _program("povray", "povray povray-includes", "renders a scene with 4 threads",
             "povray +Iscene.pov -D +W320 +H240 +WT{n} -O/dev/null"),
    _program("imagemagick", "imagemagick", "blurs a picture with 4 threads (OpenMP)",
             "convert -limit thread {n} -size 1200x1200 plasma:red-blue -gaussian-blur 0x4 blurred.png"),
    _program("sysbench-cpu", "sysbench", "primes with 4 threads",
             "sysbench cpu --threads={n} --events=8000 --time=0 run"),
    _program("sysbench-mutex", "sysbench", "4 threads that lock and unlock",
             "sysbench mutex --threads={n} --mutex-locks=100000 run"),
    _program("sysbench-memory", "sysbench", "4 threads that write memory",
             "sysbench memory --threads={n} --memory-total-size=8G --time=0 run"),
    _program("sqlite", "sqlite3", "builds an index, sorting with 4 threads", "sh sort-rows.sh"),
    _program("ripgrep", "ripgrep", "counts the words of 48 MB with 4 threads (Rust)", "rg -j{n} --count-matches [a-z]+ files"),
    _program("make", "make gcc", "compiles 24 C files, 4 at a time", "make -s -j{n} -B -C sources", "system"),
    _program("redis", "redis-server redis-tools", "a server and its benchmark", "sh redis.sh 60000 0.05", "system"),
    _program("go", "golang-go", "compiles a package of its library, 4 at a time", "sh build-go.sh {n}", "system"),
)  # fmt: skip

_SCENE = """
#include "colors.inc"
camera { location <0, 3, -8> look_at <0, 1, 0> }
light_source { <10, 20, -20> White }
plane { y, 0 pigment { checker White Gray } finish { reflection 0.2 } }
#declare I = 0;
#while (I < 40)
sphere { <mod(I, 8) - 4, 0.6 + div(I, 8) * 0.4, div(I, 8)>, 0.45
         pigment { rgb <mod(I, 3) / 3, 0.5, 0.7> } finish { reflection 0.4 phong 1 } }
#declare I = I + 1;
#end
"""


def write_inputs(folder: Path) -> None:
    """Writes what the programs work on, made by rule, the same everywhere."""
    folder.mkdir(parents=True, exist_ok=True)
    content = text(TEXT_MB << 20)
    (folder / "text").write_bytes(content)
    (folder / "files").mkdir(exist_ok=True)
    for number, part in enumerate(parts(content, SOURCES)):
        (folder / "files" / f"{number}.txt").write_bytes(part)
    write_sources(folder / "sources")
    scripts = {
        "pack-7z.sh": "rm -f packed.7z\nexec 7z a -mmt$1 -mx3 -bd packed.7z text >/dev/null\n",
        "sort-rows.sh": "exec sqlite3 :memory: '.read rows.sql'\n",
        "build-go.sh": "export GOCACHE=$PWD/go-cache GOFLAGS=-mod=mod\nrm -rf $GOCACHE\n"
        "exec go build -p $1 -o /dev/null compress/gzip text/template go/format\n",
        "redis.sh": REDIS.read_text("utf-8"),
        "scene.pov": _SCENE,
        "rows.sql": "PRAGMA threads=4;\nPRAGMA temp_store=MEMORY;\nCREATE TABLE t(a INTEGER, b TEXT);\n"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500000)\n"
        "INSERT INTO t SELECT (i * 7919) % 1000003, hex(i * 31) FROM n;\nCREATE INDEX x ON t(a, b);\n",
    }
    for name, script in scripts.items():
        (folder / name).write_text(script)
    video = (
        "ffmpeg -v error -y -f lavfi -i testsrc2=size=640x360:rate=25:duration=20 -pix_fmt yuv420p video.y4m"
    )
    subprocess.run(video.split(), cwd=folder, check=True)


def text(size: int) -> bytes:
    """Words of a vocabulary, the rarer the later."""
    draw = random.Random("text of recorded programs")
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    words = ["".join(draw.choices(letters, k=draw.randrange(2, 10))) for _ in range(20_000)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    lines: list[str] = []
    length = 0
    while length < size:
        lines.append(" ".join(draw.choices(words, weights, k=2000)) + "\n")
        length += len(lines[-1])
    return "".join(lines).encode()[:size]


def parts(content: bytes, count: int) -> Iterator[bytes]:
    """Equal parts of a content; what is left over is left out."""
    length = len(content) // count
    return (content[number * length : (number + 1) * length] for number in range(count))


def chosen(parser: argparse.ArgumentParser, programs: Sequence[P], names: str) -> list[P]:
    """The programs of these names, such as `pigz,xz`, or all if there are none; ends the command for unknown ones."""
    wanted = set(filter(None, names.split(",")))
    if unknown := wanted - {program.name for program in programs}:
        parser.error(f"--programs: unknown: {', '.join(sorted(unknown))}")
    return [program for program in programs if not wanted or program.name in wanted]


def write_sources(folder: Path, count: int = SOURCES) -> None:
    """C files of many small functions, and the makefile that compiles them."""
    folder.mkdir(exist_ok=True)
    names = [f"part{number}" for number in range(count)]
    for number, name in enumerate(names):
        functions = [
            f"int f{number}_{each}(int a, int *b) {{ int s = 0; for (int i = 0; i < a; i++) "
            f"s += b[i % 64] * {each + 3} ^ (i << {each % 7}); return s; }}\n"
            for each in range(40 + 10 * (number % 5))
        ]
        (folder / f"{name}.c").write_text("".join(functions))
    objects = " ".join(f"{name}.o" for name in names)
    (folder / "Makefile").write_text(f"all: {objects}\n%.o: %.c\n\t$(CC) -O2 -c -o $@ $<\n")
