"""``ampsched record``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ampsched._core import InputError
from ampsched.cli import options, render

if TYPE_CHECKING:
    from ampsched.recording import Recording

EXAMPLES = render.examples(
    "ampsched record -- ./my_program --threads 4",
    "ampsched record -o run.ampr -- make -j4 test",
    "ampsched record --recover run.ampr.parts -o run.ampr",
)
LIMIT_MB = 1024
_MAGIC = b"AMPREC"
_HOW = "How"


def record(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND...", help="Program and arguments.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="The recording; by default PROGRAM.ampr, here."),
    ] = None,
    recover: Annotated[
        Path | None,
        typer.Option(
            "--recover",
            metavar="FOLDER",
            help="Run nothing: make the recording of what a recorder has left that was killed.",
        ),
    ] = None,
    system: Annotated[
        bool,
        typer.Option(
            "--system",
            rich_help_panel=_HOW,
            help="Let the kernel tell, which takes root: also static programs, and what blocks outside of locks.",
        ),
    ] = False,
    limit_mb: Annotated[
        int,
        typer.Option(
            "--limit-mb",
            parser=options.whole,
            metavar="MB",
            rich_help_panel=_HOW,
            help="Most that events may take on the disk while the program runs; what does not fit is counted.",
        ),
    ] = LIMIT_MB,
) -> int:
    """Run a program and record what its threads do: work, locks, waiting, and who wakes whom.

    Takes no root: the program loads a library first that sees its calls. It must be dynamically linked; programs that
    it starts are recorded, too. Standard streams, signals and the exit code are the program's.
    """
    from ampsched import recording
    from ampsched.recording import preload
    from ampsched.recording import system as kernel

    if recover is not None:
        if command or system:
            raise InputError("--recover takes a folder and -o FILE, and runs nothing")
        if out is None:
            raise InputError("--recover needs -o FILE")
        check_replaceable(out)
        found = preload.recover(recover)
        recording.save(found, out)
        tell(found, out)
        return 0
    if not command:
        raise InputError("which program? ampsched record -- COMMAND...")
    if limit_mb < 1:
        raise InputError(f"--limit-mb {limit_mb}: at least 1 is needed")
    out = out or Path(f"{Path(command[0]).name}.ampr")
    check_replaceable(out)
    if system:
        told = kernel.record(command, out)
        tell(told.recording, out)
        return told.exit_code
    outcome = preload.record(command, out, limit_mb)
    tell(outcome.recording, out)
    return outcome.exit_code


def check_replaceable(out: Path) -> None:
    """Only a recording is replaced by another one.

    Raises:
        InputError: Something else is there, or the folder is not.
    """
    if not out.parent.is_dir():
        raise InputError(f"{out.parent}: there is no such folder")
    if not out.exists():
        return
    if not out.is_file() or not _is_recording(out):
        raise InputError(f"{out}: is there already and is no recording (name another file with -o)")
    _say(f"{out}: the recording that was there is replaced")


def _is_recording(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _say(text: str) -> None:
    print(render.visible(text), file=sys.stderr)


def tell(recording: Recording, out: Path) -> None:
    """What was recorded, and what to do with it."""
    info = json.loads(recording.info)
    events = sum(count for _, count in recording.counts)
    threads = recording.threads
    processes = len({process for _, process, *_ in threads})
    cpu_s = sum(cpu_ns for *_, cpu_ns, _ in threads) / 1e9
    each = out.stat().st_size / max(events, 1)
    where = f" in {processes} processes" if processes > 1 else ""
    _say(f"{out}: {len(threads)} threads{where}, {events} events, {each:.1f} bytes per event")
    blocked_ns, known_ns = recording.blocked_ns
    known = f", the cause known for {known_ns / blocked_ns:.0%}" if blocked_ns else ""
    _say(f"  {info['wall_ns'] / 1e9:.3f} s, {cpu_s:.3f} s of work, {blocked_ns / 1e9:.3f} s blocked{known}")
    if info["slowdown"] is not None:
        _say(f"  the recorder made it about {info['slowdown']:.2f} times as long")
    for sentence in info["unknown"]:
        _say(f"  not known: {sentence}")
    _say(f"next: ampsched advise {out}")
