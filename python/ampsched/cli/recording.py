"""``ampsched record``."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ampsched._core import InputError
from ampsched.cli import options, render
from ampsched.kinds import RECORDING
from ampsched.recording.files import LIMIT_MB, LIMIT_MB_MAX

if TYPE_CHECKING:
    from ampsched.recording import Recording

EXAMPLES = render.examples(
    "ampsched record -- ./my_program --threads 4",
    "ampsched record -o run.ampr -- make -j4 test",
    "ampsched record --recover run.ampr.parts -o run.ampr",
)
COMMAND_LAST = {"allow_interspersed_args": False}
"""What follows the first word that is no option belongs to the command, as its options do."""
_MAGIC = b"AMPREC"
_QUICK_EVENTS = 200_000
"""A recording with more is not replayed at once: whoever asks for advice waits anyway."""
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
    each_kind: Annotated[
        bool,
        typer.Option(
            "--each-kind",
            rich_help_panel=_HOW,
            help="Run it once more on each kind of core here, without streams: what it gains from fast cores.",
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
    from ampsched.recording.each_kind import kinds_here, measure_speedup, with_speedup

    if recover is not None:
        if command or system or each_kind:
            raise InputError("--recover takes a folder and -o FILE, and runs nothing")
        if out is None:
            raise InputError("--recover needs -o FILE")
        check_replaceable(out)
        if (recover / kernel.ABOUT).is_file():
            found = kernel.recover(recover, out)
        else:
            found = preload.recover(recover)
            recording.save(found, out)
        tell(found, out)
        return 0
    if not command:
        raise InputError("which program? ampsched record -- COMMAND...")
    if not 1 <= limit_mb <= LIMIT_MB_MAX:
        raise InputError(f"--limit-mb {limit_mb}: at least 1 is needed, and at most {LIMIT_MB_MAX}")
    kinds = kinds_here() if each_kind else []
    out = out or default_out(command)
    check_replaceable(out)
    told = kernel.record(command, out) if system else preload.record(command, out, limit_mb)
    found = told.recording
    if kinds and told.exit_code == 0:
        found = with_speedup(found, measure_speedup(command, kinds, _say))
        recording.save(found, out)
    tell(found, out)
    return told.exit_code


def default_out(command: Sequence[str]) -> Path:
    """The file of a command's recording, if nobody names one: here, called after the program."""
    return Path(f"{Path(command[0]).name}{RECORDING}")


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
    from ampsched.recording import summary

    info = json.loads(recording.info)
    threads = recording.threads
    processes = len({process for _, process, *_ in threads})
    each = out.stat().st_size / max(recording.events, 1)
    where = f" in {processes} processes" if processes > 1 else ""
    _say(f"{out}: {len(threads)} threads{where}, {recording.events} events, {each:.1f} bytes per event")
    blocked_ns, _ = recording.blocked_ns
    share = summary.coverage(recording)
    known = f", the cause known for {share:.0%}" if share is not None else ""
    work_s = recording.cpu_ns / 1e9
    _say(f"  {info['wall_ns'] / 1e9:.3f} s, {work_s:.3f} s of work, {blocked_ns / 1e9:.3f} s blocked{known}")
    if info["slowdown"] is not None:
        _say(f"  the recorder made it about {info['slowdown']:.2f} times as long")
    if kinds := info.get("speedup_kinds"):
        _say(f"  {info['speedup']:.2f} times as fast on {kinds[0]} as on {kinds[1]}, by CPU time")
    for line in disturbances(recording, info, out):
        _say(f"  {line}")
    if end := summary.ending(info["exit_code"]):
        _say(f"  the program {end}")
    for sentence in info["unknown"]:
        _say(f"  not known: {sentence}")
    _say(f"next: ampsched advise {out}")


def disturbances(recording: Recording, info: dict[str, Any], out: Path) -> Iterator[str]:
    """What a recording is worth elsewhere: what disturbed it, and which share of its time follows the cores."""
    from ampsched.catalog import Catalog
    from ampsched.recording.advice import FOREIGN_MAX, WORK_MIN_NS, follows_cores
    from ampsched.recording.summary import follows_text

    if (info["foreign"] or 0.0) > FOREIGN_MAX:
        yield f"other programs took {info['foreign']:.0%} of the CPUs' time: record it again on a quiet computer"
    if recording.cpu_ns < WORK_MIN_NS:
        yield "it has hardly worked: too little for advice"
    elif recording.events <= _QUICK_EVENTS:
        with contextlib.suppress(InputError):  # its cores are not known
            yield follows_text(follows_cores(recording, out, Catalog.shipped()))
