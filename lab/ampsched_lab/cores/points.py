"""Machines with more and more equal cores, and the loads that are put on them.

CPUs of the exact machine take turns of a quantum, and whoever holds a lock at the end of its turn lets others spin for
theirs. So the quantum decides how much contention is seen: a long one hides short critical sections, as nobody looks
while they last. It is measured with several.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ampsched.vm.exact import loader
from ampsched_lab.campaign.boot import KERNEL, Guest, Scheduler, ours
from ampsched_lab.campaign.plan import Mix, Program
from ampsched_lab.shared.two_kinds import two_kinds

CORES = (4, 8, 16, 32)
QUANTA_US = (2.0, 4.0, 50.0)
MIPS = 1000
"""Of each core."""
POLICIES = ("cfs", "colab")
PEER = "scx_bpfland"
QUEUES = "kernel_queues"
"""The design that the kernel back end does not have: threads wait in the kernel's own queues."""
SCHEDULERS = (KERNEL, PEER, QUEUES, *POLICIES)
TOLD_RATIO = 1.01
"""What our policies are told of the first half of the cores over the others: they schedule nothing less than two kinds
of cores. In truth all are equal."""
SOURCES = Path(__file__).resolve().parents[1] / "programs"
SHARED = ("truth.c", "truth.h")
WARM_MS = 5
"""From the start of a load until it counts."""
PAIRS_WORK = 500
"""Iterations of 4 instructions between two wake-ups: 2 us."""
PAIRS_MS, GROUPS_MS, WAKERS_MS, BUILD_MS = 30, 20, 40, 40
CORES_PER_GROUP, PEERS = 4, 4
CORES_PER_MESSENGER, WORKERS = 4, 4
WAKERS_WORK, REST_US = 25_000, 100
"""0.1 ms of work, and of rest on average."""


@dataclass(frozen=True)
class Point:
    """A machine with some cores whose CPUs take turns of a quantum."""

    cores: int
    quantum_us: float

    @property
    def name(self) -> str:
        """Names a folder."""
        return f"{self.cores}-{self.quantum_us:g}us"

    def guest(self, folder: Path, programs: Path) -> Guest:
        """The machine; its file is put into a folder."""
        exact = two_kinds(folder, self.name, self.cores, (MIPS, MIPS), quantum_us=self.quantum_us)
        return Guest(self.name, exact, programs)

    def scheduler(self, name: str, peers: Path, program: Path | None = None) -> Scheduler:
        """A scheduler by its name.

        Args:
            name: One of ``SCHEDULERS``.
            peers: Folder of other schedulers' programs.
            program: That loads our policies; the installed one by default.
        """
        if name == KERNEL:
            return Scheduler(KERNEL)
        if name not in POLICIES:
            return Scheduler(name, (str((peers / name).resolve()),))
        half = self.cores // 2
        told = (f"--big=0-{half - 1}", f"--little={half}-{self.cores - 1}", f"--ratio={TOLD_RATIO}")
        return replace(ours(name, program or loader("x86_64")), told=told)

    def mixes(self) -> tuple[Mix, ...]:
        """All loads, of which each keeps all cores busy but the wakers."""
        wakers, build = self._wakers(), self._build(BUILD_MS)
        beside = self._build(WAKERS_MS + WARM_MS)
        return (
            _mix("pairs", "pairs of threads that wake each other", self._pairs()),
            _mix("groups", "groups of processes that send each other messages", self._groups()),
            _mix("wakers", "threads that are woken, work and rest", wakers),
            _mix("build", "a tree of short processes", build),
            _mix("wakers+build", "both", wakers, beside),
        )

    def _pairs(self) -> Program:
        """As many pairs as cores: each has one thread to run all the time."""
        return _program("pairs", pairs=self.cores, work=PAIRS_WORK, ms=PAIRS_MS)

    def _groups(self) -> Program:
        groups = self.cores // CORES_PER_GROUP
        return _program(
            "groups", groups=groups, senders=PEERS, receivers=PEERS, ms=GROUPS_MS, warm_ms=WARM_MS
        )

    def _wakers(self) -> Program:
        messengers = self.cores // CORES_PER_MESSENGER
        return _program(
            "wakers", messengers=messengers, workers=WORKERS, work=WAKERS_WORK, rest_us=REST_US, ms=WAKERS_MS,
            warm_ms=WARM_MS,
        )  # fmt: skip

    def _build(self, ms: int) -> Program:
        return _program("build", jobs=self.cores, ms=ms, warm_ms=WARM_MS)


def _program(name: str, **numbers: int) -> Program:
    words = [
        word for what, number in numbers.items() for word in (f"--{what.replace('_', '-')}", str(number))
    ]
    return Program(name, (f"/campaign/bin/{name}", *words), reports=True)


def _mix(name: str, what: str, *programs: Program) -> Mix:
    sources = (*SHARED, *(f"{program.name}.c" for program in programs))
    return Mix(name, what, programs, is_traced=False, sources=tuple(SOURCES / file for file in sources))


def points(cores: Sequence[int], quanta_us: Sequence[float]) -> Iterator[Point]:
    """All points, short boots first."""
    for count in cores:
        for quantum_us in sorted(quanta_us, reverse=True):
            yield Point(count, quantum_us)
