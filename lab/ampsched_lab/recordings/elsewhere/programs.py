"""The programs of both sets: what they are, how they are built, what they work on, and the files that they need."""

import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from ampsched_lab.recordings.programs import parts, text, write_sources

HERE = Path(__file__).parent
TEXT_MB = 8
PARTS = 12
SOURCES = 4
PAGE_BYTES = 60_000
ELSEWHERE = ("/proc", "/sys", "/dev")
"""Folders that each computer has of its own."""
EMPTY = "empty"
"""Stands in folders that programs look for."""
ALWAYS = (Path("/usr/bin/env"), Path("/bin/sh"))


@dataclass(frozen=True)
class Program:
    """A program that is recorded here and run there.

    Attributes:
        name: For the table.
        kind: What makes its threads or processes wait for one another.
        what: What it does, for the table.
        command: What runs, in the folder of the inputs.
        make: What builds it there before; empty if nothing does.
        recorder: `preload` or `system`.
    """

    name: str
    kind: str
    what: str
    command: str
    make: str = ""
    recorder: str = "preload"

    @property
    def words(self) -> list[str]:
        """Its command's words."""
        return self.command.split()


SETS = ("programs", "further")
"""The 24 by which recordings were judged while they were built, and 15 others."""


def programs(of: str = SETS[0]) -> list[Program]:
    """All of a set, in the order of its file."""
    rows = tomllib.loads((HERE / f"{of}.toml").read_text("utf-8"))
    return [Program(name, **row) for name, row in rows.items()]


def write_inputs(folder: Path) -> None:
    """Writes what the programs work on, the same everywhere, beside their sources."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(HERE / "sources", folder, dirs_exist_ok=True)
    content = text(TEXT_MB << 20)
    (folder / "text").write_bytes(content)
    (folder / "lines").write_bytes(re.sub(rb"((?:\S+ ){6})", rb"\1\n", content))
    for number, part in enumerate(parts(content, PARTS)):
        (folder / f"part{number}.txt").write_bytes(part)
    (folder / "page.txt").write_bytes(content[:PAGE_BYTES])
    (folder / EMPTY).write_bytes(b"")
    write_sources(folder / "sources", SOURCES)


def build(program: Program, folder: Path) -> None:
    """Builds a program that needs it.

    Raises:
        SystemExit: It cannot be built.
    """
    if program.make:
        done = subprocess.run(
            ["sh", "-ec", program.make], cwd=folder, stderr=subprocess.PIPE, check=False, text=True
        )
        if done.returncode:
            raise SystemExit(f"{program.name} cannot be built: {done.stderr.strip()[-300:]}")


def needed(program: Program, folder: Path) -> tuple[list[Path], list[Path]]:
    """The files of this computer that a program and all that it starts have opened or asked for, and the folders.

    Those of the folder of the inputs are left out: that is there as it is.
    """
    with tempfile.TemporaryDirectory(prefix="ampsched-needed-") as name:
        told = Path(name) / "told"
        calls = ["strace", "-f", "-y", "-qq", "-s", "4096", "-e", "trace=%file", "-o", str(told)]
        subprocess.run(
            [*calls, *program.words],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        return files_of(told.read_bytes(), folder)


def files_of(trace: bytes, folder: Path) -> tuple[list[Path], list[Path]]:
    """The files and folders that a trace of strace names and that are there, without those of a folder."""
    paths = dict.fromkeys(ALWAYS)
    for line in trace.splitlines():
        if re.search(rb"= -1 E", line):
            continue
        for found in re.findall(rb'"(/[^"]*)"|= \d+<(/[^>]*)>', line):
            path = Path(os.fsdecode(found[0] or found[1]))
            if not path.is_relative_to(folder) and not any(path.is_relative_to(own) for own in ELSEWHERE):
                paths[path] = None
    there = [path for path in paths if path.exists()]
    files = [path for path in there if path.is_file()]
    return files, sorted({path.resolve() for path in there if path.is_dir()})
