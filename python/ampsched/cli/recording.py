"""``ampsched record``."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ampsched._core import InputError
from ampsched.cli import options, render
from ampsched.cli.keeping import tell_of_wrapper
from ampsched.kinds import RECORDING
from ampsched.naming import in_number
from ampsched.recording.files import LIMIT_MB, LIMIT_MB_MAX

if TYPE_CHECKING:
    from ampsched.recording import Recording
    from ampsched.recording.check import Check
    from ampsched.recording.running import Target

EXAMPLES = render.examples(
    "ampsched record -- ./my_program --threads 4",
    "ampsched record -o run.ampr -- make -j4 test",
    "sudo ampsched record --unit nginx --for-s 30",
    "ampsched record --recover run.ampr.parts -o run.ampr",
)
CONTEXT = {"allow_interspersed_args": False}
"""What follows the first word that is no option belongs to the command, as its options do."""
_MAGIC = b"AMPREC"
_QUICK_EVENTS = 200_000
"""A recording with more is not replayed at once: whoever asks for advice waits anyway."""
_HOW = "How"
_RUNNING = "Instead of a command: what runs already, for a while, as root"


class By(StrEnum):
    """Who tells what a program does."""

    LIBRARY = "library"
    KERNEL = "kernel"
    BOTH = "both"


def record(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND...", help="Program and arguments.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Where the recording goes [default: PROGRAM.ampr in this folder].",
        ),
    ] = None,
    recover: Annotated[
        Path | None,
        typer.Option(
            "--recover",
            metavar="FOLDER",
            help="Run nothing: rebuild the recording from what a killed recorder left in this folder.",
        ),
    ] = None,
    by: Annotated[
        By | None,
        typer.Option(
            "--by",
            rich_help_panel=_HOW,
            help="Who records: the library, the kernel (needs root), or both. By default both, if possible.",
        ),
    ] = None,
    system: Annotated[
        bool,
        typer.Option(
            "--system",
            rich_help_panel=_HOW,
            help="Short for --by kernel: also sees static programs, and waits outside of locks.",
        ),
    ] = False,
    pid: Annotated[
        list[str] | None,
        typer.Option(
            "--pid",
            metavar="PID,...",
            rich_help_panel=_RUNNING,
            help="Record these processes and every process below them. Repeatable.",
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            "--unit",
            metavar="UNIT",
            rich_help_panel=_RUNNING,
            help="Record the processes of this systemd unit.",
        ),
    ] = None,
    cgroup: Annotated[
        Path | None,
        typer.Option(
            "--cgroup",
            metavar="FOLDER",
            rich_help_panel=_RUNNING,
            help="Record the processes of this control group, such as a container's: its folder, or its path below /sys/fs/cgroup.",
        ),
    ] = None,
    for_s: Annotated[
        float | None,
        typer.Option(
            "--for-s",
            parser=options.number,
            metavar="S",
            rich_help_panel=_RUNNING,
            help="How long to record, in seconds [default: 10]. Ctrl-C or the last process's end stops it earlier.",
        ),
    ] = None,
    each_kind: Annotated[
        bool,
        typer.Option(
            "--each-kind",
            rich_help_panel=_HOW,
            help="Run the command once more on each kind of core here, to measure what it gains from fast cores.",
        ),
    ] = False,
    limit_mb: Annotated[
        int,
        typer.Option(
            "--limit-mb",
            parser=options.whole,
            metavar="MB",
            rich_help_panel=_HOW,
            help="Largest size of the events on disk. Beyond it, a command's events are only counted; other recordings end.",
        ),
    ] = LIMIT_MB,
) -> int:
    """Run a program and record what its threads do: work, locks, waiting, and who wakes whom.

    Needs no root: a preloaded library records the program's calls. It must be dynamically linked; programs that
    it starts are recorded, too. Standard streams, signals and the exit code are the program's. As root the kernel tells
    meanwhile who has ended which wait, and what runs already is recorded by its events: --pid, --unit or --cgroup.
    """
    if not 1 <= limit_mb <= LIMIT_MB_MAX:
        raise InputError(f"--limit-mb {limit_mb}: at least 1 is needed, and at most {LIMIT_MB_MAX}")
    running = _running(pid, unit, cgroup)
    if running is not None:
        if command or recover is not None or each_kind or by not in (None, By.KERNEL):
            raise InputError(
                "--pid, --unit and --cgroup go without a command, --by, --recover and --each-kind"
            )
        return _record_running(running, out, for_s, limit_mb)
    if for_s is not None:
        raise InputError("--for-s goes with --pid, --unit or --cgroup: a command is recorded until it ends")
    if recover is not None:
        if command or system or by or each_kind:
            raise InputError("--recover takes a folder and -o FILE, and runs nothing")
        return _recover(recover, out)
    if not command:
        raise InputError("which program? ampsched record -- COMMAND...")
    return _record_command(command, out, limit_mb, by=_wanted(by, system=system), each_kind=each_kind)


def _recover(folder: Path, out: Path | None) -> int:
    from ampsched import recording
    from ampsched.recording import preload
    from ampsched.recording import system as kernel

    if out is None:
        raise InputError("--recover needs -o FILE")
    check_replaceable(out)
    if (folder / kernel.ABOUT).is_file():
        found = kernel.recover(folder, out)
    else:
        found = preload.recover(folder)
        recording.save(found, out)
    _tell_all(found, out)
    return 0


def _record_command(
    command: list[str], out: Path | None, limit_mb: int, *, by: By | None, each_kind: bool
) -> int:
    from ampsched import recording
    from ampsched.recording import preload
    from ampsched.recording import system as kernel
    from ampsched.recording.each_kind import kinds_here, measure_speedup, with_speedup

    tell_of_wrapper(command[0])
    kinds = kinds_here() if each_kind else []
    out = out or default_out(command)
    check_replaceable(out)
    by, why = _who_tells(command[0], by)
    if by is By.KERNEL:
        told: kernel.Recorded | preload.Outcome = kernel.record(command, out)
    else:
        told = preload.record(command, out, limit_mb, with_kernel=by is By.BOTH)
    found = told.recording
    if kinds and told.exit_code == 0:
        found = with_speedup(found, measure_speedup(command, kinds, _say))
        recording.save(found, out)
    _tell_all(found, out, why)
    return told.exit_code


def _wanted(by: By | None, *, system: bool) -> By | None:
    if system and by not in (None, By.KERNEL):
        raise InputError(f"--system is --by kernel: it goes without --by {by}")
    return By.KERNEL if system else by


def _who_tells(program: str, by: By | None) -> tuple[By, str]:
    """Who tells what a program does, and why nobody else does; empty if that was wanted."""
    from ampsched.recording import both, preload

    if by in (By.LIBRARY, By.KERNEL):
        return by, ""
    of_kernel, of_library = both.why_not(), preload.why_not_loaded(program)
    if of_library and (by or not of_kernel):
        return By.KERNEL, f"the program {of_library}, so it loads no library"
    if of_kernel and by is None:
        return By.LIBRARY, f"the kernel does not tell: {of_kernel}"
    return By.BOTH, ""


def _running(pid: list[str] | None, unit: str | None, cgroup: Path | None) -> Callable[[], Target] | None:
    """What finds the processes that are wanted of those that run; None if no option asks for any.

    Raises:
        InputError: Several options do.
    """
    from ampsched.recording import running

    found: list[Callable[[], Target]] = []
    if pid:
        found.append(lambda: running.of_pids(",".join(pid).replace(",", " ").split()))
    if unit is not None:
        found.append(lambda: running.of_unit(unit))
    if cgroup is not None:
        found.append(lambda: running.of_cgroup(cgroup))
    if len(found) > 1:
        raise InputError("--pid, --unit and --cgroup: one of them at a time")
    return found[0] if found else None


def _record_running(find: Callable[[], Target], out: Path | None, for_s: float | None, limit_mb: int) -> int:
    from ampsched.recording import window

    window.check_root()  # others may not see all processes
    target = find()
    out = out or default_out([target.name.removesuffix(".service")])
    check_replaceable(out)
    for_s = window.FOR_S if for_s is None else for_s
    _say(f"recording {target.name} for {for_s:g} s (Ctrl-C ends it sooner)")
    _tell_all(window.record(target, out, for_s=for_s, limit_mb=limit_mb).recording, out)
    return 0


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


def tell(recording: Recording, out: Path, why: str = "") -> Check | None:
    """What was recorded, and what to do with it. Returns how good its replay is, if it was tried.

    Args:
        recording: The recording.
        out: Its file.
        why: Why the library or the kernel has not told.
    """
    from ampsched.recording import roles, summary

    info = json.loads(recording.info)
    threads = recording.threads
    processes = len({process for _, process, *_ in threads})
    each = out.stat().st_size / max(recording.events, 1)
    where = f" in {processes} processes" if processes > 1 else ""
    _say(
        f"{out}: {len(threads)} {in_number(len(threads), 'thread')}{where}, {recording.events} events, {each:.1f} bytes per event"
    )
    if sources := summary.sources(info):
        _say(f"  {sources}{f' ({why})' if why else ''}")
    blocked_ns, _ = recording.blocked_ns
    share = summary.coverage(recording)
    known = f", the cause known for {share:.0%}" if share is not None else ""
    work_s = recording.cpu_ns / 1e9
    _say(f"  {info['wall_ns'] / 1e9:.3f} s, {work_s:.3f} s of work, {blocked_ns / 1e9:.3f} s blocked{known}")
    if info["slowdown"] is not None:
        _say(f"  the recorder made it about {info['slowdown']:.2f} times as long")
    if runtime := roles.roles_text(recording):
        _say(f"  {runtime}")
    if kinds := info.get("speedup_kinds"):
        _say(f"  {info['speedup']:.2f} times as fast on {kinds[0]} as on {kinds[1]}, by CPU time")
    checked = _checked(recording, out)
    for line in _worth(recording, info, checked):
        _say(f"  {line}")
    if end := summary.ending(info["exit_code"]):
        _say(f"  the program {end}")
    for sentence in info["unknown"]:
        _say(f"  not known: {sentence}")
    return checked


def _tell_all(recording: Recording, out: Path, why: str = "") -> None:
    """What was recorded, and what to do next."""
    tell(recording, out, why)
    _say(f"next: ampsched advise {shlex.quote(str(out))}")


def _checked(recording: Recording, out: Path) -> Check | None:
    """How good the replay is; None if it would say little, would take long, or the cores are not known."""
    from ampsched.catalog import Catalog
    from ampsched.recording.check import check
    from ampsched.recording.refusal import WORK_MIN_NS

    if recording.cpu_ns < WORK_MIN_NS or recording.events > _QUICK_EVENTS:
        return None
    with contextlib.suppress(InputError):
        return check(recording, out, Catalog.shipped())
    return None


def _worth(recording: Recording, info: dict[str, Any], checked: Check | None) -> Iterator[str]:
    """What a recording is worth elsewhere: what disturbed it, and which share of its time follows the cores."""
    from ampsched.recording.refusal import FOREIGN_MAX, WORK_MIN_NS
    from ampsched.recording.summary import follows_text

    if (info["foreign"] or 0.0) > FOREIGN_MAX:
        yield f"other programs took {info['foreign']:.0%} of the CPUs' time: record it again on a quiet computer"
    if recording.cpu_ns < WORK_MIN_NS:
        yield "it has hardly worked: too little for advice"
    if checked is not None:
        yield follows_text(checked.follows, checked.rest)
        yield from (f"its replay is defective: {line}" for line in checked.violations)
