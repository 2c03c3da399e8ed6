"""Records processes and all that they start through the kernel's scheduler events, whatever they are written in.

Nothing is preloaded and nothing is changed in the programs: Go, Rust, static binaries and trees of processes are
recorded alike. Locks that block nobody are not seen. Needs root.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol

from ampsched._core import InputError, Recording, import_pages, wake_ups, wakeup_ns
from ampsched.cpus import allowed_cpus
from ampsched.files import check_writable, shown
from ampsched.recording.core_speeds import core_speeds
from ampsched.recording.disturbance import Disturbance
from ampsched.recording.files import keeping, save
from ampsched.recording.tracefs import PLACES, Instance, mounted, remove_left

EVENTS = ("sched/sched_switch", "sched/sched_waking", "sched/sched_process_fork", "sched/sched_process_exit")
"""Without these nothing can be told."""
MORE_EVENTS = ("sched/sched_process_exec", "task/task_newtask", "task/task_rename")
"""Tell which threads are processes, and their names."""
WAITS = (
    "nanosleep",
    "clock_nanosleep",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
)
CALLS = (
    "syscalls/sys_enter_futex",
    "syscalls/sys_exit_futex",
    *(f"syscalls/sys_{side}_{call}" for call in WAITS for side in ("enter", "exit")),
)
"""Tell at which futex a thread was blocked, and which blocks a timer has ended."""
BUFFER_KIB = 16384
"""Size of each core's buffer: some 200,000 events."""
PERIOD_S = 0.02
"""How often the buffers are emptied."""
_FIRST_PID_NAMESPACE = 0xEFFF_FFFC
"""Number of the namespace whose numbers of processes the kernel's events have (include/linux/proc_ns.h)."""
ABOUT = "about.json"
SUFFIX = ".pages"


@dataclass(frozen=True)
class Recorded:
    """What was recorded, and what it has cost.

    Attributes:
        recording: The recording, which is also in its file.
        exit_code: The command's, or 128 and the number of the signal that has ended it; 0 of what ran before.
        took_s: How long it was recorded, in s.
        recorder_cpu_s: CPU time of the recorder meanwhile, in s.
        trace_bytes: Bytes that the kernel has handed out.
        lost_events: Events for which there was no room.
        coverage: Share of the blocked time whose end has a known cause, 0 to 1; 1 if nobody was blocked.
        wakes: Pairs of threads by how long one was blocked until the other woke it: waker, woken, how often, how long
            in ns; threads by their place in the recording.
        missing: Events that this kernel lacks.
    """

    recording: Recording
    exit_code: int
    took_s: float
    recorder_cpu_s: float
    trace_bytes: int
    lost_events: int
    coverage: float
    wakes: list[tuple[int, int, int, int]]
    missing: list[str]


class Source(Protocol):
    """What is recorded: a command, or processes that ran before."""

    def begin(self) -> None:
        """Called when the kernel has begun to record."""

    def has_ended(self, timeout_s: float) -> bool:
        """Whether it is over, after at most that time."""

    def end(self) -> None:
        """Called when the kernel records no more, and after errors."""

    def options(self) -> dict[str, object]:
        """What is known of it by now, as the importer takes it."""


def record(
    command: Sequence[str],
    out: Path,
    *,
    speeds: Sequence[float] = (),
    kinds: Sequence[str] = (),
    calls: bool = True,
    buffer_kib: int = BUFFER_KIB,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Recorded:
    """Runs a command and records it and all that it starts.

    Whatever ends this (Ctrl-C as well), the kernel's tracer is left as it was. A recorder that is killed or interrupted
    leaves ``OUT.pages``, of which `recover` makes a recording.

    Args:
        command: Program and arguments.
        out: File for the recording.
        speeds: Speeds of the cores, the first that of core 0; only their ratios count. Empty: those of `core_speeds`.
        kinds: Kinds of the cores.
        calls: Record calls of futexes and of what may wait for a time as well. Without these no futex is known, and a
            block that a timer has ended looks as if something outside had; every system call is a little faster.
        buffer_kib: Size of each core's buffer in KiB.
        cwd: Where the command runs; here by default.
        environment: The command's environment; this process's by default.

    Raises:
        InputError: This process is not root, the kernel cannot trace, or the command cannot be executed.
        OSError: The recording cannot be written.
    """
    if not command:
        raise InputError("there is no command to record")
    check_root("or record without --system")
    known: dict[str, object] = {"command": [shown(word) for word in command]}
    known |= {"kinds": list(kinds), **({"speeds": list(speeds)} if speeds else {})}
    return record_from(lambda: _Child.made(command, cwd, environment), out, known, calls, buffer_kib)


def check_root(otherwise: str) -> None:
    """Refuses to go on where the kernel would.

    Args:
        otherwise: What else the user can do.

    Raises:
        InputError: This process is not root and may not write into tracefs, or it knows other numbers of processes than
            the kernel's events.
    """
    if os.geteuid() and not any(os.access(place / "instances", os.W_OK) for place in PLACES):
        raise InputError(f"recording through the kernel needs root (sudo; {otherwise})")
    with contextlib.suppress(OSError):
        if Path("/proc/self/ns/pid").stat().st_ino != _FIRST_PID_NAMESPACE:
            raise InputError(
                "in a container the kernel cannot tell processes (record outside of the container)"
            )


def record_from(
    start: Callable[[], Source],
    out: Path,
    known: Mapping[str, object],
    calls: bool = True,
    buffer_kib: int = BUFFER_KIB,
    limit_mb: int | None = None,
) -> Recorded:
    """Records until its source has ended; the same as `record` otherwise.

    Args:
        start: Makes what is recorded.
        out: File for the recording.
        known: What is known of it before, as the importer takes it.
        calls: Record calls of futexes and of what may wait for a time as well.
        buffer_kib: Size of each core's buffer in KiB.
        limit_mb: It ends when events take more on the disk, in MiB.

    Raises:
        InputError: The kernel cannot trace, or the source cannot be started.
        OSError: The recording cannot be written.
    """
    folder = out.with_name(f"{out.name}{SUFFIX}")
    if folder.exists():
        hint = f"recover or remove it: ampsched record --recover {folder} -o FILE"
        raise InputError(f"{folder}: exists, with pages of a recorder that was ended ({hint})")
    check_writable(out)
    speeds = core_speeds()
    # Of equal cores nothing is stated, as of traces.
    about = {"speeds": speeds if len(set(speeds)) > 1 else [], **known, "wakeup_ns": wakeup_ns()}
    folder.mkdir(mode=0o700)
    run: Run | None = None
    with keeping(folder, lambda: run is not None and run.has_begun):
        with mounted() as tracefs:
            remove_left(tracefs)
            with Instance.made(
                tracefs, EVENTS, [*MORE_EVENTS, *(CALLS if calls else ())], buffer_kib
            ) as instance:
                run = Run(instance, folder, about)
                run.follow(start(), limit_mb)
        recorded = run.recorded()
        if not recorded.recording.threads:
            run.has_begun = False
            raise InputError("nothing ran meanwhile (record it longer, or while it has something to do)")
        save(recorded.recording, out)
    return recorded


def recover(folder: Path, out: Path) -> Recording:
    """Makes a recording of the pages that a killed recorder has left in a folder.

    Raises:
        InputError: The folder has no pages, or they are damaged.
        OSError: The recording cannot be written.
    """
    try:
        about: dict[str, dict[str, object]] = json.loads((folder / ABOUT).read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{folder}: has no pages of a recorder ({error})") from error
    about["options"]["unknown"] = ["what happened after the recorder was ended"]
    recording = _recording(folder, about, 0)
    save(recording, out)
    return recording


def _recording(folder: Path, about: Mapping[str, object], lost_events: int) -> Recording:
    told, pages = pages_of(folder, about)
    return import_pages(str(folder), told, pages, lost_events, json.dumps(about["options"]))


def pages_of(folder: Path, about: Mapping[str, object]) -> tuple[tuple[str, list[str], int], list[bytes]]:
    """How pages in a folder are to be read, and those of each core.

    Args:
        folder: The folder.
        about: What stands in its file `ABOUT`.
    """
    formats, page_bytes = about["formats"], about["page_bytes"]
    assert isinstance(formats, list)
    assert isinstance(page_bytes, int)
    cores = sorted(folder.glob("cpu*"), key=lambda path: int(path.name.removeprefix("cpu")))
    return (str(about["header_page"]), formats, page_bytes), [path.read_bytes() for path in cores]


class Run:
    """What is recorded, and the pages that are read meanwhile."""

    def __init__(self, instance: Instance, folder: Path, options: dict[str, object]) -> None:
        self.instance = instance
        self.folder = folder
        self.options = options | {"recorder": "system", "kernel": os.uname().release}
        self.has_begun = False
        self.took_s = 0.0
        self.cpu_s = 0.0
        self.trace_bytes = 0
        self.lost_events = 0

    def follow(self, source: Source, limit_mb: int | None) -> None:
        """Reads pages until the source has ended, or they take more than that."""
        disturbance = Disturbance()
        try:
            self._know(source)
            with self.files() as files:
                self.instance.start()
                begin_s, begin_cpu_s = time.monotonic(), time.process_time()
                try:
                    source.begin()
                    self._know(source)
                    self.has_begun = True
                    while not source.has_ended(PERIOD_S):
                        self.drain(files)
                        if limit_mb is not None and self.trace_bytes > limit_mb << 20:
                            break
                    self.took_s = time.monotonic() - begin_s
                finally:
                    self.instance.stop()
                    self.drain(files)
                    self.cpu_s = time.process_time() - begin_cpu_s
                    self.count_lost()
        finally:
            source.end()
            self.options |= source.options() | {"foreign": disturbance.share()}

    def recorded(self) -> Recorded:
        """What has come of it."""
        recording = _recording(self.folder, self._about(), self.lost_events)
        if "window" in self.options:
            recording = self._without_own(recording)
        blocked_ns, known_ns = recording.blocked_ns
        return Recorded(
            recording=recording,
            exit_code=json.loads(recording.info)["exit_code"] or 0,
            took_s=self.took_s,
            recorder_cpu_s=self.cpu_s,
            trace_bytes=self.trace_bytes,
            lost_events=max(self.lost_events, json.loads(recording.info)["lost_events"]),
            coverage=known_ns / blocked_ns if blocked_ns else 1.0,
            wakes=wake_ups(recording),
            missing=self.instance.missing,
        )

    def _without_own(self, recording: Recording) -> Recording:
        """What is no child of this process was taken for foreign load."""
        info = json.loads(recording.info)
        if info["foreign"] is not None and self.took_s > 0:
            own = recording.cpu_ns / 1e9 / self.took_s / len(allowed_cpus())
            info["foreign"] = max(0.0, info["foreign"] - own)
        return recording.with_info(json.dumps(info))

    def _about(self) -> dict[str, object]:
        instance = self.instance
        return {
            "header_page": instance.header_page,
            "formats": instance.formats,
            "page_bytes": instance.page_bytes,
            "options": self.options,
            "lost_events": self.lost_events,
        }

    def count_lost(self) -> None:
        """Asks the kernel for how many events there was no room."""
        stats = self.instance.stats()
        self.lost_events = stats.get("overrun", 0) + stats.get("dropped events", 0)

    def _know(self, source: Source) -> None:
        self.options |= source.options()
        self.write_about()

    def write_about(self) -> None:
        """Writes down how the pages are to be read, and what is known by now."""
        (self.folder / ABOUT).write_text(json.dumps(self._about()))

    @contextlib.contextmanager
    def files(self) -> Iterator[dict[int, int]]:
        """A file for each core's pages."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        files = {core: os.open(self.folder / f"cpu{core}", flags, 0o600) for core in self.instance.pipes}
        try:
            yield files
        finally:
            for file in files.values():
                os.close(file)

    def drain(self, files: Mapping[int, int]) -> None:
        """Takes all pages out of the buffers."""
        buffer = bytearray(self.instance.page_bytes)
        view = memoryview(buffer)
        for core, file in files.items():
            while count := self.instance.read(core, buffer):
                # Pages have one size in the file, so that the next one is found.
                view[count:] = bytes(len(buffer) - count)
                _write_all(file, view)
                self.trace_bytes += count


def _write_all(file: int, view: memoryview) -> None:
    while view:
        view = view[os.write(file, view) :]


def process_ended(pidfd: int, timeout_s: float) -> bool:
    """Whether a process has ended with all of its threads, after at most that time."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))


class _Child:
    """A process that waits until it may become the command."""

    def __init__(self, pid: int, gate: int, failure: int) -> None:
        self.pid = pid
        self.pidfd = os.pidfd_open(pid)
        self.gate: int | None = gate
        self.failure = failure
        self.code: int | None = None

    @classmethod
    def made(cls, command: Sequence[str], cwd: Path | None, environment: Mapping[str, str] | None) -> _Child:
        """Starts the process."""
        waits, gate = os.pipe()
        failure, tells = os.pipe()
        pid = os.fork()
        if pid == 0:
            _become(command, cwd, environment, waits, gate, tells)
        os.close(waits)
        os.close(tells)
        return cls(pid, gate, failure)

    def begin(self) -> None:
        """Lets it become the command.

        Raises:
            InputError: The command cannot be executed.
        """
        assert self.gate is not None
        os.write(self.gate, b"x")
        os.close(self.gate)
        self.gate = None
        if text := os.read(self.failure, 4096):
            raise InputError(text.decode(errors="replace"))

    def has_ended(self, timeout_s: float) -> bool:
        """Whether it has ended, after at most that time."""
        return process_ended(self.pidfd, timeout_s)

    def options(self) -> dict[str, object]:
        """Its number, and its exit code if it has ended."""
        return {"pids": [self.pid], "exit_code": self.code}

    def end(self) -> None:
        """Waits for its end, which is near: whoever does not end within some seconds is killed."""
        if self.gate is not None:
            os.close(self.gate)  # it ends without ever becoming the command
        if not self.has_ended(0.2):
            self._signal(signal.SIGTERM)
        if not self.has_ended(3):
            self._signal(signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.pidfd)
        os.close(self.failure)
        code = os.waitstatus_to_exitcode(status)
        self.code = code if code >= 0 else 128 - code

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, number)


def _become(
    command: Sequence[str],
    cwd: Path | None,
    environment: Mapping[str, str] | None,
    waits: int,
    gate: int,
    tells: int,
) -> NoReturn:
    """In the new process: waits for the gate, then executes the command; never returns."""
    try:
        os.close(gate)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        if not os.read(waits, 1):
            os._exit(1)
        if cwd is not None:
            os.chdir(cwd)
        variables = dict(os.environ if environment is None else environment)
        os.execvpe(command[0], list(command), variables)  # noqa: S606  # no shell is wanted
    except OSError as error:
        os.write(tells, f"{command[0]}: {error.strerror}".encode())
    finally:
        os._exit(127)
