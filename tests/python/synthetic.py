"""Recordings that are written event by event, as columns of numpy."""

import io
import json
import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path

from ampsched.recording import Recording, save
from ampsched.recording.imports import import_file

START, EXIT, CREATE, JOIN, LOCK, TRY_FAIL, UNLOCK = range(1, 8)
_BLOCKED = 1 << 8
_COLUMNS = ("dt", "cpu", "wait", "obj", "kf", "aux")
MS = 1_000_000


class Script:
    """Threads that are being written, each with a clock of its own; thread 0 is there from the start. Times in ns."""

    def __init__(self) -> None:
        self.clocks = [0]
        self._last = [0]
        self._events: list[list[tuple[int, ...]]] = [[]]
        self._add(0, START, 0)

    def _add(self, thread: int, kind: int, cpu_ns: int, wait_ns: int = 0, obj: int = 0, aux: int = 0) -> None:
        self.clocks[thread] += cpu_ns
        passed_ns = self.clocks[thread] - self._last[thread]
        self._last[thread] = self.clocks[thread]
        is_blocked = _BLOCKED if wait_ns and kind != START else 0
        self._events[thread].append((passed_ns, cpu_ns, wait_ns, obj, kind | is_blocked, aux))

    def start(self, creator: int = 0) -> int:
        """Starts a thread."""
        child = len(self.clocks)
        self._add(creator, CREATE, 20_000, obj=child)
        self.clocks.append(self.clocks[creator])
        self._last.append(self.clocks[creator])
        self._events.append([])
        self._add(child, START, 0, wait_ns=child, obj=child, aux=creator)
        return child

    def work(self, thread: int, work_ns: int) -> None:
        """Works."""
        self._add(thread, TRY_FAIL, work_ns, obj=1000 + thread)

    def visit(self, thread: int, work_ns: int) -> None:
        """Takes a mutex that all share for a moment, and works."""
        self._add(thread, LOCK, 0, obj=1)
        self._add(thread, UNLOCK, 30, obj=1)
        self.work(thread, work_ns)

    def join(self, thread: int, child: int) -> None:
        """Waits for the end of a thread, which ends now."""
        self._add(child, EXIT, 0)
        waited_ns = max(0, self.clocks[child] - self.clocks[thread])
        self.clocks[thread] += waited_ns
        self._add(thread, JOIN, 0, wait_ns=waited_ns, obj=child)

    def end(self, path: Path, command: str, cores: int = 4) -> Recording:
        """Ends thread 0, and writes the recording to a file as well."""
        self._add(0, EXIT, 0)
        columns = path.with_suffix(".npz")
        columns.write_bytes(self._archive())
        words = command.split()
        columns.with_suffix(".json").write_text(json.dumps({"name": words[0]}))
        recording = import_file(columns, command=words, speeds=[1.0] * cores)
        save(recording, path)
        return recording

    def _archive(self) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for thread, events in enumerate(self._events):
                archive.writestr(f"t{thread}_t.npy", _array([self._begin(thread)]))
                for place, name in enumerate(_COLUMNS):
                    archive.writestr(f"t{thread}_{name}.npy", _array([event[place] for event in events]))
        return buffer.getvalue()

    def _begin(self, thread: int) -> int:
        return self.clocks[thread] - sum(event[0] for event in self._events[thread])


def _array(numbers: Sequence[int]) -> bytes:
    shape = f"{{'descr': '<u8', 'fortran_order': False, 'shape': ({len(numbers)},), }}"
    head = shape.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack(
        f"<H{len(head)}s{len(numbers)}Q", len(head), head.encode(), *numbers
    )
