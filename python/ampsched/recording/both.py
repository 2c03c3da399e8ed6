"""What the kernel tells while the library records a program: who has ended which wait. Needs root."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from ampsched._core import InputError
from ampsched.recording import system
from ampsched.recording.tracefs import Instance, mounted, remove_left

FOLDER = "kernel"
"""The folder of the kernel's pages in the library's working folder."""
TIMERS = ("timer/hrtimer_expire_entry", "timer/hrtimer_expire_exit")
"""Tell which waits a timer has ended: far less than all calls, and the library knows the futexes."""
Told = tuple[tuple[str, list[str], int], list[bytes], int, str]
"""What the core takes: how pages are to be read, the cores' pages, lost events, what is known besides (JSON)."""


def why_not() -> str | None:
    """Why the kernel tells this process nothing; None if it does."""
    try:
        system.check_root("")
        with mounted() as tracefs:
            if os.access(tracefs / "instances", os.W_OK):
                return None
            return "tracefs cannot be written"
    except InputError as error:
        return "it needs root" if os.geteuid() else str(error).partition(" (")[0]


@contextlib.contextmanager
def listening(folder: Path, limit_mb: int) -> Iterator[system.Run]:
    """Has the kernel tell what happens meanwhile.

    Args:
        folder: The library's working folder, to which a folder is added.
        limit_mb: It stops when its events take more than that on the disk, in MiB.

    Yields:
        What becomes of it. Its `options` may name the program's process (`pids`).

    Raises:
        InputError: The kernel cannot trace.
        OSError: The folder cannot be written.
    """
    system.check_root("or --by library")
    place = folder / FOLDER
    place.mkdir(mode=0o700)
    with mounted() as tracefs:
        remove_left(tracefs)
        events = [*system.MORE_EVENTS, *TIMERS]
        with Instance.made(tracefs, system.EVENTS, events, system.BUFFER_KIB) as instance:
            run = system.Run(instance, place, {})
            run.write_about()
            try:
                with run.files() as files, _drained(run, files, limit_mb):
                    yield run
            finally:
                run.count_lost()
                run.write_about()


@contextlib.contextmanager
def _drained(run: system.Run, files: Mapping[int, int], limit_mb: int) -> Iterator[None]:
    """Takes pages out of the buffers until the end, or until they have no room."""
    is_over = threading.Event()

    def serve() -> None:
        try:
            while not is_over.wait(system.PERIOD_S) and run.trace_bytes <= limit_mb << 20:
                run.drain(files)
            why = f"they took {limit_mb} MiB (--limit-mb)"
        except OSError as error:
            why = error.strerror or str(error)
        if not is_over.is_set():
            run.instance.stop()
            run.options["unknown"] = [f"The kernel's events from some moment on: {why}."]

    thread = threading.Thread(target=serve, daemon=True)
    run.instance.start()
    thread.start()
    try:
        yield
    finally:
        run.instance.stop()
        is_over.set()
        thread.join()
        if "unknown" not in run.options:
            run.drain(files)


def told(folder: Path) -> Told | None:
    """What the kernel has told into a working folder; None if nobody asked it.

    Raises:
        OSError: It cannot be read.
        ValueError: It is damaged.
    """
    place = folder / FOLDER
    if not (place / system.ABOUT).is_file():
        return None
    about = json.loads((place / system.ABOUT).read_text())
    how, pages = system.pages_of(place, about)
    return how, pages, about["lost_events"], json.dumps(about["options"])
