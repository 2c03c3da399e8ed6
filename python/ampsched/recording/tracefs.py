"""An instance of the kernel's tracer of one's own (Documentation/trace/ftrace.rst), with its buffers as files."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ampsched._core import InputError

PLACES = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
"""Where the tracer's files are mounted."""
PREFIX = "ampsched-record-"
"""Begins names of instances; the number of the process that made it is behind it."""
PAGE_KIB = 64
"""Wanted size of a buffer's page: one read hands out a page. Kernels before 6.8 have pages of 4 KiB."""
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
"""System calls of Linux 5.2, which are older than the C library's functions may be; the same on all architectures."""
_CLOEXEC, _CMD_CREATE = 1, 6
"""FSOPEN_CLOEXEC and FSMOUNT_CLOEXEC, FSCONFIG_CMD_CREATE: include/uapi/linux/mount.h."""


@contextlib.contextmanager
def mounted() -> Iterator[Path]:
    """The folder of the tracer's files; where nobody has mounted it, a mount of this process's own.

    That one is at no place (fsmount(2)), so nobody else uses it, and it is gone when it is closed or the process ends.

    Raises:
        InputError: It is not there and cannot be mounted.
    """
    for place in PLACES:
        if (place / "instances").is_dir():
            yield place
            return
    handle = _mount()
    try:
        yield Path(f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)


def _mount() -> int:
    """A descriptor of a new mount of tracefs; its folder is that of the descriptor.

    Raises:
        InputError: The kernel refuses.
    """
    opened = _call(_FSOPEN, b"tracefs", _CLOEXEC)
    try:
        _call(_FSCONFIG, opened, _CMD_CREATE, None, None, 0)
        return _call(_FSMOUNT, opened, _CLOEXEC, 0)
    finally:
        os.close(opened)


def _call(number: int, *arguments: bytes | int | None) -> int:
    """What a system call that mounts returns."""
    libc = ctypes.CDLL(None, use_errno=True)
    found: int = libc.syscall(ctypes.c_long(number), *arguments)
    if found < 0:
        why = os.strerror(ctypes.get_errno())
        raise InputError(f"tracefs cannot be mounted: {why} (the kernel's CONFIG_FTRACE is needed)")
    return found


def remove_left(tracefs: Path) -> None:
    """Removes instances whose process is gone."""
    for folder in (tracefs / "instances").glob(f"{PREFIX}*"):
        number = folder.name.removeprefix(PREFIX)
        if number.isdigit() and not Path("/proc", number).exists():
            with contextlib.suppress(OSError):
                (folder / "tracing_on").write_text("0")
                folder.rmdir()


@dataclass
class Instance:
    """An instance that records events of all processes.

    The kernel could leave others out (`set_event_pid`), but Linux 6.18 then also loses some of those that are wanted:
    in 15 of 40 runs all calls of a futex, in 2 a switch. Whoever reads the pages picks the wanted threads.

    Attributes:
        folder: Its folder in tracefs.
        page_bytes: Bytes of a page of its buffers.
        header_page: How a page begins, as the kernel describes it.
        formats: The kernel's descriptions of the events that are recorded.
        missing: Wanted events that this kernel lacks.
    """

    folder: Path
    page_bytes: int = 0
    header_page: str = ""
    formats: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    pipes: dict[int, int] = field(default_factory=dict)

    @classmethod
    @contextlib.contextmanager
    def made(
        cls, tracefs: Path, events: Sequence[str], optional: Sequence[str], buffer_kib: int
    ) -> Iterator[Instance]:
        """An instance that does not record yet, removed at the end.

        Args:
            tracefs: Where the tracer's files are.
            events: Events (``GROUP/EVENT``) that are needed.
            optional: Events that are recorded if the kernel has them.
            buffer_kib: Size of each core's buffer in KiB.

        Raises:
            InputError: The kernel lacks a needed event, or memory for the buffers.
        """
        folder = tracefs / "instances" / f"{PREFIX}{os.getpid()}"
        try:
            folder.mkdir()
        except OSError as error:
            raise InputError(f"{folder}: {error.strerror} (one recording at a time per process)") from error
        instance = cls(folder)
        try:
            instance._configure(events, optional, buffer_kib)
            yield instance
        finally:
            instance._remove()

    def start(self) -> None:
        """Begins to record."""
        self._write("tracing_on", "1")

    def stop(self) -> None:
        """Records nothing any more; what is in the buffers stays."""
        self._write("tracing_on", "0")

    def read(self, core: int, buffer: bytearray) -> int:
        """Takes the oldest page out of a core's buffer; number of bytes, 0 if it is empty."""
        try:
            return os.readv(self.pipes[core], [buffer])
        except BlockingIOError:
            return 0

    def stats(self) -> Mapping[str, int]:
        """What the kernel counts, summed over the cores: ``overrun`` and ``dropped events`` were lost."""
        sums: dict[str, int] = {}
        for core in self.pipes:
            for line in (self.folder / f"per_cpu/cpu{core}/stats").read_text().splitlines():
                key, _, value = line.partition(": ")
                if value.isdigit():
                    sums[key] = sums.get(key, 0) + int(value)
        return sums

    def _write(self, name: str, text: str) -> None:
        try:
            (self.folder / name).write_text(text)
        except OSError as error:
            hint = " (choose a smaller buffer)" if error.errno == errno.ENOMEM else ""
            raise InputError(f"{self.folder / name}: {error.strerror}{hint}") from error

    def _configure(self, events: Sequence[str], optional: Sequence[str], buffer_kib: int) -> None:
        self._write("tracing_on", "0")
        self._write("trace_clock", "mono")
        with contextlib.suppress(InputError):
            self._write("buffer_subbuf_size_kb", str(PAGE_KIB))
        self._write("buffer_size_kb", str(buffer_kib))
        for event in [*events, *optional]:
            folder = self.folder / "events" / event
            if not folder.is_dir():
                if event in events:
                    raise InputError(f"{folder}: this kernel lacks the event {event}")
                self.missing.append(event)
                continue
            self.formats.append((folder / "format").read_text())
            self._write(f"events/{event}/enable", "1")
        self.header_page = (self.folder / "events/header_page").read_text()
        self.page_bytes = _page_bytes(self.header_page)
        for core in sorted((self.folder / "per_cpu").glob("cpu*")):
            number = int(core.name.removeprefix("cpu"))
            self.pipes[number] = os.open(core / "trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK)

    def _remove(self) -> None:
        for pipe in self.pipes.values():
            os.close(pipe)
        with contextlib.suppress(InputError):
            self.stop()
            self._write("events/enable", "0")
        self.folder.rmdir()


def _page_bytes(header_page: str) -> int:
    """Size of a page: where its data begins and how long it is."""
    for line in header_page.splitlines():
        if " data;" in line:
            numbers = dict(part.strip().split(":") for part in line.split(";")[1:3])
            return int(numbers["offset"]) + int(numbers["size"])
    return 4096
