"""Recordings that are written by hand, event by event."""

import json
import random
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from ampsched.recording import Recording

KINDS = {
    "start": 1,
    "exit": 2,
    "create": 3,
    "join": 4,
    "lock": 5,
    "unlock": 7,
    "cond-wait": 8,
    "cond-wake": 9,
    "sem-wait": 13,
    "sem-post": 14,
    "futex-wait": 27,
    "sleep": 29,
    "io": 32,
    "wake": 33,
    "block": 34,
}
"""Numbers of kinds of events in the file."""


@dataclass(frozen=True)
class Event:
    """An event; times in ms."""

    kind: str
    at: float
    work: float = 0.0
    wait: float = 0.0
    object: int = 0
    aux: int = 0


@dataclass(frozen=True)
class Thread:
    """A thread of process 0 with its events."""

    name: str
    events: Sequence[Event]


def written(threads: Sequence[Thread], *, cores: int = 1, **info: object) -> Recording:
    """A recording of threads on equal cores; `info` is what else is known of it as a whole."""
    last = max(event.at for thread in threads for event in thread.events)
    about = {
        "name": "by-hand",
        "command": ["by-hand"],
        "recorder": "preload",
        "cores": [{"speed": 1.0}] * cores,
        "wakeup_ns": 0,
        "wall_ns": _ns(last),
        "exit_code": 0,
        **info,
    }
    blocks = [_block(b"H", json.dumps(about).encode())]
    rows = [{"name": thread.name, "process": 0} for thread in threads]
    blocks.append(_block(b"T", json.dumps(rows).encode()))
    blocks += [_block(b"E", _events(index, thread.events)) for index, thread in enumerate(threads)]
    blocks.append(_block(b"Z", json.dumps(about).encode()))
    return Recording.read("by-hand.ampr", b"AMPREC1\n" + b"".join(blocks))


def drawn(seed: int, *, has_mutexes: bool = True) -> Recording:
    """A recording of up to six threads, drawn by lot, in which everything happens after its cause."""
    return _Drawn(random.Random(seed), has_mutexes).recording()


class _Drawn:
    """Threads as they would run if each had a core."""

    def __init__(self, draw: random.Random, has_mutexes: bool) -> None:
        self.draw, self.has_mutexes = draw, has_mutexes
        self.count = draw.randint(1, 6)
        self.at = [0.0]
        self.events = [[Event("start", 0)]]
        self.creators: dict[int, int] = {}
        self.live = {0}
        self.free_at: dict[int, float] = {}

    def recording(self) -> Recording:
        for tie in range(self.draw.randint(1, 80)):
            self.act(self.draw.choice(sorted(self.live)), tie)
        for thread in self.live:
            self.step(thread, "exit", 1)
        name = self.draw.choice(["", "t1", "w.1", "x.1.0"])
        return written([Thread(name, events) for events in self.events])

    def step(
        self, thread: int, kind: str, work: float = 0, *, until: float = 0, of: int = 0, aux: int = 0
    ) -> None:
        """A thread works, and waits until a time if that has not come yet."""
        begin = self.at[thread] + work
        self.at[thread] = max(begin, until)
        self.events[thread].append(Event(kind, self.at[thread], work, self.at[thread] - begin, of, aux))

    def act(self, thread: int, tie: int) -> None:
        draw, others = self.draw, sorted(self.live - {thread})
        work, kind = draw.choice([0, 0.5, 2, 7]), draw.choice("cjmpssw")
        if kind == "c" and len(self.at) < self.count:
            child = len(self.at)
            self.step(thread, "create", work, of=child)
            self.at.append(self.at[thread])
            self.events.append([Event("start", self.at[thread], aux=thread + 1)])
            self.creators[child] = thread
            self.live.add(child)
        elif kind == "j" and self.creators.get(thread) in self.live:
            self.step(thread, "exit", work)
            self.live.remove(thread)
            self.step(self.creators[thread], "join", until=self.at[thread], of=thread)
        elif kind == "m" and self.has_mutexes:
            self.step(thread, "lock", work, until=self.free_at.get(1000, 0), of=1000)
            self.step(thread, "unlock", 1, of=1000)
            self.free_at[1000] = self.at[thread]
        elif kind == "p":
            until = self.at[thread] + work + draw.choice([1, 5])
            self.step(thread, draw.choice(["sleep", "io"]), work, until=until, aux=draw.choice([0, 1]))
        elif kind == "s" and others:
            self.step(thread, "sem-post", work, of=tie + 1)
            self.step(draw.choice(others), "sem-wait", until=self.at[thread], of=tie + 1)
        else:
            self.step(thread, "sleep", work)


def _events(thread: int, events: Sequence[Event]) -> bytes:
    out = bytearray(_number(thread) + _number(len(events)))
    before = 0
    for event in events:
        flags = 4 * (event.aux != 0) + 8 * (event.wait != 0)
        out += bytes([KINDS[event.kind], flags])
        out += _number(_ns(event.at) - before) + _number(event.object) + _number(_ns(event.work))
        out += _number(event.aux) if event.aux else b""
        out += _number(_ns(event.wait)) if event.wait else b""
        before = _ns(event.at)
    return bytes(out)


def _ns(ms: float) -> int:
    return round(ms * 1e6)


def _number(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _block(letter: bytes, data: bytes) -> bytes:
    packed = zlib.compress(data)
    return letter + struct.pack("<III", len(packed), len(data), zlib.crc32(packed)) + packed
