"""Who ran on which core of a guest, in the form in which simulations are traced.

A guest's kernel writes text (Documentation/trace/ftrace.rst): a line per event, in the order of time, with the thread
in whose context it happened, its process, the core and the time.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from ampsched._core import Machine, TraceWriter

SUFFIX = ".pftrace"
"""How names of files end that get the form of simulations; others get the kernel's text."""
KERNEL, KERNEL_PROCESS = "kernel", 2
"""Name of the application to which the kernel's own threads belong, and the number of its first thread."""
KERNEL_THREADS = "# kernel threads:"
"""Begins a line of ours with the numbers of the kernel's own threads."""
SWITCH, WAKE, MIGRATE, FREQUENCY = "sched_switch", "sched_waking", "sched_migrate_task", "cpu_frequency"
EVENTS = {SWITCH: "sched", WAKE: "sched", MIGRATE: "sched", FREQUENCY: "power"}
"""The events that are read, and the kernel's group of each."""
_WAITS = ("nanosleep", "clock_nanosleep", "poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait")
RECORDED = {
    SWITCH: "sched",
    WAKE: "sched",
    "sched_process_fork": "sched",
    "sched_process_exec": "sched",
    "sched_process_exit": "sched",
    "task_newtask": "task",
    "task_rename": "task",
    "sys_enter_futex": "syscalls",
    "sys_exit_futex": "syscalls",
    **{f"sys_{side}_{call}": "syscalls" for call in _WAITS for side in ("enter", "exit")},
}
"""The events of which recordings are made: who creates whom, at which futex threads wait, what a timer ends."""

# A thread may have any name, so what stands behind it is found from the end.
LINE = re.compile(
    r"^\s*.+-(?P<tid>\d+)\s+\(\s*(?P<process>\d+|-+)\) \[(?P<core>\d+)\] (?P<flags>\S+)\s+"
    r"(?P<seconds>\d+)\.(?P<micros>\d{6}): (?P<event>\w+): (?P<values>.*)$"
)
SWITCHED = re.compile(
    r"^prev_comm=(?P<from>.*) prev_pid=(?P<from_tid>\d+) prev_prio=-?\d+ prev_state=(?P<state>\S+) ==> "
    r"next_comm=(?P<to>.*) next_pid=(?P<to_tid>\d+) next_prio=-?\d+$"
)
WOKEN = re.compile(r"^comm=(?P<name>.*) pid=(?P<tid>\d+) prio=-?\d+ target_cpu=(?P<core>\d+)$")
MIGRATED = re.compile(r"^comm=(?P<name>.*) pid=(?P<tid>\d+) prio=-?\d+ orig_cpu=\d+ dest_cpu=(?P<core>\d+)$")
CLOCKED = re.compile(r"^state=(?P<khz>\d+) cpu_id=(?P<core>\d+)$")
READY = "R"
"""How the state of a thread begins that has lost its core and wants it back."""
INTERRUPTED = frozenset("hHsZz")
"""Flags of lines that an interrupt has written: the thread beside it has nothing to do with it."""


@dataclass(frozen=True)
class Event:
    """Something that a kernel has told.

    Attributes:
        kind: One of EVENTS.
        at_ns: When, since the first event, in ns; the kernel tells us.
        core: Where it was told.
        tid: The thread whose turn it was there, 0 for none.
        process: The process of that thread, if known.
        by_interrupt: It was no doing of that thread.
        values: What is told of it.
    """

    kind: str
    at_ns: int
    core: int
    tid: int
    process: int | None
    by_interrupt: bool
    values: re.Match[str]


PATTERNS = {SWITCH: SWITCHED, WAKE: WOKEN, MIGRATE: MIGRATED, FREQUENCY: CLOCKED}


def events(lines: Iterable[str]) -> Iterator[Event]:
    """The events in a kernel's trace; lines of other kinds are passed over."""
    first_us = None
    for line in lines:
        found = LINE.match(line)
        pattern = PATTERNS.get(found["event"]) if found else None
        values = pattern.match(found["values"].rstrip()) if found and pattern else None
        if found is None or values is None:
            continue
        at_us = int(found["seconds"]) * 1_000_000 + int(found["micros"])
        first_us = at_us if first_us is None else first_us
        yield Event(
            found["event"],
            (at_us - first_us) * 1000,
            int(found["core"]),
            int(found["tid"]),
            int(found["process"]) if found["process"].isdigit() else None,
            not INTERRUPTED.isdisjoint(found["flags"]),
            values,
        )


@dataclass
class Threads:
    """The threads of a guest: their names, and the processes to which they belong."""

    names: dict[int, str] = field(default_factory=dict)
    processes: dict[int, int] = field(default_factory=dict)
    of_kernel: set[int] = field(default_factory=set)

    @classmethod
    def read(cls, path: Path) -> "Threads":
        """All that a trace tells of them; programs that they execute rename them, and the last name counts."""
        found = cls()
        with path.open(encoding="utf-8", errors="replace") as lines:
            for event in events(found._own_lines(lines)):
                if event.process is not None:
                    found.processes[event.tid] = event.process
                values = event.values
                if event.kind == SWITCH:
                    found.names[int(values["from_tid"])] = values["from"]
                    found.names[int(values["to_tid"])] = values["to"]
                elif event.kind in {WAKE, MIGRATE}:
                    found.names[int(values["tid"])] = values["name"]
        return found

    def _own_lines(self, lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            if line.startswith(KERNEL_THREADS):
                self.of_kernel.update(map(int, line.removeprefix(KERNEL_THREADS).split()))
            else:
                yield line

    def application(self, tid: int) -> tuple[int, str]:
        """Number and name of the process of a thread; the kernel's are of one."""
        if tid in self.of_kernel:
            return 0, KERNEL
        process = self.processes.get(tid, tid)
        return process, self.names.get(process, self.names[tid])


def write_trace(text: Path, machine: Machine, file: BinaryIO) -> None:
    """Writes a guest's trace in the form of a simulation's: a track per core and per thread, wake-ups, frequencies.

    Threads and processes have their own numbers. The length of a core's queue counts threads that could run and were
    there last, or are sent there; policies that keep queues of their own may put them anywhere else.

    Args:
        text: What the kernel has written.
        machine: The machine whose cores the guest has.
        file: Where it is written.
    """
    writer = TraceWriter(file, machine)
    story = _Story(writer, Threads.read(text), machine.cluster_of_core)
    with text.open(encoding="utf-8", errors="replace") as lines:
        for event in events(lines):
            story.tell(event)
    writer.finish()


class _Story:
    """What has been told until now."""

    def __init__(self, writer: TraceWriter, threads: Threads, cluster_of_core: list[int]) -> None:
        self.writer = writer
        self.threads = threads
        self.cluster_of_core = cluster_of_core
        self.known: dict[int, int] = {}
        self.applications: dict[int, int] = {}
        self.running: dict[int, int] = {}
        self.waits_at: dict[int, int] = {}
        self.waiting = [0] * len(cluster_of_core)

    def tell(self, event: Event) -> None:
        values = event.values
        if event.kind == SWITCH:
            self._switch(event)
        elif event.kind == WAKE:
            woken = int(values["tid"])
            waker = self._thread(event.tid) if event.tid and not event.by_interrupt else None
            self.writer.wake(waker, self._thread(woken), int(values["core"]), event.at_ns)
            if woken not in self.running.values():
                self._waits(woken, int(values["core"]), event.at_ns)
        elif event.kind == MIGRATE:
            moved = int(values["tid"])
            if moved in self.waits_at:
                self._waits(moved, int(values["core"]), event.at_ns)
        elif event.kind == FREQUENCY:
            cluster = self.cluster_of_core[int(values["core"])]
            self.writer.frequency(cluster, int(values["khz"]) // 1000, event.at_ns)

    def _switch(self, event: Event) -> None:
        values, core = event.values, event.core
        before, after = int(values["from_tid"]), int(values["to_tid"])
        # Who runs at the start is only known when his turn ends.
        if before and core not in self.running:
            self._waits(before, None, event.at_ns)
            self.writer.run(core, self._thread(before), event.at_ns)
            self.running[core] = before
        if core in self.running:
            sleeps = not values["state"].startswith(READY)
            self.writer.stop(core, self._thread(self.running.pop(core)), sleeps, event.at_ns)
        if before and values["state"].startswith(READY):
            self._waits(before, core, event.at_ns)
        if after:
            self._waits(after, None, event.at_ns)
            self.writer.run(core, self._thread(after), event.at_ns)
            self.running[core] = after

    def _waits(self, tid: int, core: int | None, at_ns: int) -> None:
        """A thread waits for a core from now on, or for none."""
        before = self.waits_at.pop(tid, None)
        if core is not None:
            self.waits_at[tid] = core
        for each, change in ((before, -1), (core, 1)):
            if each is not None and before != core:
                self.waiting[each] += change
                self.writer.waiting(each, self.waiting[each], at_ns)

    def _thread(self, tid: int) -> int:
        """The number of a thread in the trace, in which it is introduced when it is first needed."""
        if tid not in self.known:
            self.known[tid] = len(self.known)
            process, name = self.threads.application(tid)
            application = self.applications.setdefault(process, len(self.applications))
            own = KERNEL_PROCESS if process == 0 else process
            self.writer.thread(self.known[tid], application, name, self.threads.names[tid], (own, tid))
        return self.known[tid]
