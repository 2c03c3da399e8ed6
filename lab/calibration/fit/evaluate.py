"""Runs a program file on an ideal machine (a core per thread, one instruction per unit of time) and measures it.

It knows just the steps that the fitted programs use. It exists to compare the models with the recordings
without the simulator under test.
"""

import heapq
import random
import tomllib
from collections import defaultdict, deque
from collections.abc import Generator
from dataclasses import dataclass, field
from math import ceil, exp, floor, log, sqrt
from typing import Any

Steps = list[dict[str, Any]]
Wait = Generator[float | None, None, None]
"""A thread's course: yields an amount of work, or None to block."""


@dataclass
class Measured:
    """What happened in a run."""

    work: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Instructions per thread, by group."""
    phases: dict[str, list[list[float]]] = field(default_factory=lambda: defaultdict(list))
    """Instructions between barriers per thread, by group."""
    item_work: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Instructions per item, by queue or pool."""
    pairs: int = 0
    operations: int = 0
    episodes: int = 0
    span: float = 0.0
    """Time of the run: the critical path on unlimited equal cores."""


@dataclass
class _Mutex:
    held: bool = False
    waiting: deque["_Thread"] = field(default_factory=deque)


@dataclass
class _Barrier:
    parties: int
    waiting: list["_Thread"] = field(default_factory=list)


@dataclass
class _Semaphore:
    count: int = 0
    waiting: deque["_Thread"] = field(default_factory=deque)


@dataclass
class _Queue:
    capacity: int
    producers: int
    used: int = 0
    takers: deque["_Thread"] = field(default_factory=deque)
    pushers: deque["_Thread"] = field(default_factory=deque)


@dataclass
class _Pool:
    total: int
    participants: int
    next: int = 0
    ended: int = 0


@dataclass
class _Thread:
    group: str
    names: dict[str, float]
    course: Wait | None = None
    parent: "_Thread | None" = None
    children: int = 0
    joining: bool = False
    work: float = 0.0
    since_barrier: float = 0.0
    phases: list[float] = field(default_factory=list)


class Run:
    """One run of a program."""

    def __init__(self, text: str, params: dict[str, float], seed: int) -> None:
        program = tomllib.loads(text)
        self.params = {**program.get("params", {}), **params}
        self.groups = {group["name"]: group for group in program["threads"]}
        self.random = random.Random(seed)
        self.measured = Measured()
        self.events: list[tuple[float, int, _Thread]] = []
        self.now, self.serial, self.alive = 0.0, 0, 0
        self.codes: dict[str, Any] = {}
        self.mutexes = {
            name: [_Mutex() for _ in range(int(self.value(keys.get("count", 1))))]
            for name, keys in program.get("mutexes", {}).items()
        }
        self.taken: dict[tuple[int, str], _Mutex] = {}
        self.barriers = {
            name: _Barrier(int(self.value(keys["parties"])))
            for name, keys in program.get("barriers", {}).items()
        }
        self.semaphores = {name: _Semaphore() for name in program.get("semaphores", {})}
        self.queues = {
            name: _Queue(int(keys["capacity"]), self.count_users("close", name))
            for name, keys in program.get("queues", {}).items()
        }
        self.pools = {
            name: _Pool(int(self.value(keys["total"])), self.count_users("dynamic", name))
            for name, keys in program.get("pools", {}).items()
        }

    def value(self, expression: Any, names: dict[str, float] | None = None) -> float:
        """A number or the value of an expression."""
        if not isinstance(expression, str):
            return float(expression)
        if expression not in self.codes:
            self.codes[expression] = compile(expression, "<amount>", "eval")
        functions = {"min": min, "max": max, "floor": floor, "ceil": ceil, "round": round, "__builtins__": {}}
        return float(eval(self.codes[expression], functions, {**self.params, **(names or {})}))

    def count_users(self, keyword: str, name: str) -> int:
        """Threads whose code has a step on an object."""

        def uses(steps: Steps) -> bool:
            return any(step.get(keyword) == name or uses(step.get("body", [])) for step in steps)

        return sum(self.instances(group) for group in self.groups.values() if uses(group["body"]))

    def instances(self, group: dict[str, Any]) -> int:
        """Threads of a group, whether they start with the program or are forked."""
        forked = [
            step
            for each in self.groups.values()
            for step in each["body"]
            if step.get("fork") == group["name"]
        ]
        initial = int(self.value(group.get("count", 1)))
        return initial + sum(int(self.value(step.get("times", 1))) for step in forked)

    def run(self) -> Measured:
        """Executes the program; raises if it cannot end."""
        for group in self.groups.values():
            self.start(group, int(self.value(group.get("count", 1))), None)
        while self.events:
            self.now, _, thread = heapq.heappop(self.events)
            self.resume(thread)
        if self.alive:
            raise RuntimeError(f"deadlock: {self.alive} threads wait for ever")
        self.measured.span = self.now
        return self.measured

    def start(self, group: dict[str, Any], count: int, parent: _Thread | None) -> None:
        """Starts instances of a group."""
        for index in range(count):
            thread = _Thread(group["name"], {"index": index, "count": count}, parent=parent)
            thread.course = self.steps(thread, group["body"])
            self.alive += 1
            if parent:
                parent.children += 1
            self.wake(thread)

    def wake(self, thread: _Thread, delay: float = 0.0) -> None:
        """Continues a thread after a delay."""
        self.serial += 1
        heapq.heappush(self.events, (self.now + delay, self.serial, thread))

    def resume(self, thread: _Thread) -> None:
        """Runs a thread until it computes, blocks or ends."""
        assert thread.course is not None
        for amount in thread.course:
            if amount is not None:
                thread.work += amount
                thread.since_barrier += amount
                self.wake(thread, amount)
            return
        self.ended(thread)

    def ended(self, thread: _Thread) -> None:
        """Books a thread that has reached its end."""
        self.alive -= 1
        self.measured.work[thread.group].append(thread.work)
        if thread.phases:
            self.measured.phases[thread.group].append(thread.phases)
        if thread.parent:
            thread.parent.children -= 1
            if thread.parent.joining and thread.parent.children == 0:
                self.wake(thread.parent)

    def steps(self, thread: _Thread, steps: Steps) -> Wait:
        """The course of a body."""
        for step in steps:
            self.measured.operations += 1
            keyword = next(iter(step))
            yield from getattr(self, f"do_{keyword}")(thread, step)

    def draw(self, amount: Any, names: dict[str, float]) -> float:
        """A constant, log-normal or quantile amount."""
        if not isinstance(amount, dict):
            return self.value(amount, names)
        if "quantiles" in amount:
            points, scale = amount["quantiles"], amount.get("scale", 1.0)
            position = self.random.random() * (len(points) - 1)
            below = min(int(position), len(points) - 2)
            return float(points[below] + (points[below + 1] - points[below]) * (position - below)) * float(
                scale
            )
        mean, variance = self.value(amount["mean"], names), log(1 + amount["cv"] ** 2)
        return mean * exp(sqrt(variance) * self.random.gauss(0, 1) - variance / 2)

    def do_compute(self, thread: _Thread, step: dict[str, Any]) -> Wait:
        yield self.draw(step["compute"], thread.names)

    def do_loop(self, thread: _Thread, step: dict[str, Any]) -> Wait:
        for _ in range(floor(self.value(step["loop"], thread.names) + 0.5)):
            yield from self.steps(thread, step["body"])
            self.measured.operations += 1

    def do_lock(self, thread: _Thread, step: dict[str, Any]) -> Wait:
        mutex = self.random.choice(self.mutexes[step["lock"]])
        self.taken[id(thread), step["lock"]] = mutex
        if mutex.held:
            mutex.waiting.append(thread)
            yield None
        mutex.held = True

    def do_unlock(self, thread: _Thread, step: dict[str, Any]) -> Wait:
        mutex = self.taken.pop((id(thread), step["unlock"]))
        self.measured.pairs += 1
        if mutex.waiting:
            self.wake(mutex.waiting.popleft())
        else:
            mutex.held = False
        return
        yield

    def do_barrier(self, thread: _Thread, step: dict[str, Any]) -> Wait:
        barrier = self.barriers[step["barrier"]]
        thread.phases.append(thread.since_barrier)
        thread.since_barrier = 0.0
        if len(barrier.waiting) + 1 < barrier.parties:
            barrier.waiting.append(thread)
            yield None
            return
        self.measured.episodes += 1
        for waiter in barrier.waiting:
            self.wake(waiter)
        barrier.waiting.clear()

    def do_sem_wait(self, thread: _Thread, step: dict[str, Any]) -> Wait:
        semaphore = self.semaphores[step["sem_wait"]]
        if semaphore.count == 0:
            semaphore.waiting.append(thread)
            yield None
        else:
            semaphore.count -= 1

    def do_sem_post(self, thread: _Thread, step: dict[str, Any]) -> Wait:
        semaphore = self.semaphores[step["sem_post"]]
        if semaphore.waiting:
            self.wake(semaphore.waiting.popleft())
        else:
            semaphore.count += 1
        return
        yield

    def do_push(self, thread: _Thread, step: dict[str, Any]) -> Wait:
        queue = self.queues[step["push"]]
        while queue.used >= queue.capacity:
            queue.pushers.append(thread)
            yield None
        queue.used += 1
        if queue.takers:
            self.wake(queue.takers.popleft())

    def do_each(self, thread: _Thread, step: dict[str, Any]) -> Wait:
        queue = self.queues[step["each"]]
        while True:
            while queue.used == 0:
                if queue.producers == 0:
                    return
                queue.takers.append(thread)
                yield None
            queue.used -= 1
            if queue.pushers:
                self.wake(queue.pushers.popleft())
            yield from self.item(thread, step["each"], step["body"])

    def do_close(self, thread: _Thread, step: dict[str, Any]) -> Wait:
        queue = self.queues[step["close"]]
        queue.producers -= 1
        while queue.producers == 0 and queue.takers:
            self.wake(queue.takers.popleft())
        return
        yield

    def do_dynamic(self, thread: _Thread, step: dict[str, Any]) -> Wait:
        pool = self.pools[step["dynamic"]]
        while pool.next < pool.total:
            pool.next += 1
            yield from self.item(thread, step["dynamic"], step["body"])
        pool.ended += 1
        if pool.ended == pool.participants:
            pool.next, pool.ended = 0, 0

    def item(self, thread: _Thread, source: str, body: Steps) -> Wait:
        """The work on one item."""
        before = thread.work
        yield from self.steps(thread, body)
        self.measured.operations += 2
        self.measured.item_work[source].append(thread.work - before)

    def do_fork(self, thread: _Thread, step: dict[str, Any]) -> Wait:
        self.start(self.groups[step["fork"]], int(self.value(step.get("times", 1))), thread)
        return
        yield

    def do_join(self, thread: _Thread, step: dict[str, Any]) -> Wait:
        thread.joining = True
        if thread.children:
            yield None
        thread.joining = False


def measure(text: str, params: dict[str, float], seed: int = 1) -> Measured:
    """Runs a program once."""
    return Run(text, params, seed).run()
