"""What is run on both sides: programs of C in a kernel, and the same in the workload language.

All amounts of work are iterations of the same loop (`spin` of truth.c), such that a run takes some 0.3 s of the guest's
time. Some workloads were chosen, and looked at while the comparison was built; the others are drawn by lot.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from ampsched_lab.campaign.plan import Mix
from ampsched_lab.campaign.plan import Program as GuestProgram

MS = 250_000
"""Iterations of 4 instructions that take 1 ms at 1,000 million instructions per second."""
BIN = "/campaign/bin/"


@dataclass(frozen=True)
class Program:
    """A program, the same on both sides.

    Attributes:
        name: Its own in the workload.
        binary: The C program.
        model: The TOML program, without its suffix.
        spins: Amounts of work in iterations.
        numbers: Other numbers.
        texts: Arguments of the C program that the TOML program states itself.
    """

    name: str
    binary: str
    model: str
    spins: Mapping[str, int]
    numbers: Mapping[str, int] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    def guest(self) -> GuestProgram:
        """For the campaign's director."""
        values = {
            **self.spins,
            **self.texts,
            **{k: v for k, v in self.numbers.items() if k not in self.texts_of},
        }
        words = [word for name, value in values.items() for word in (f"--{name}", str(value))]
        return GuestProgram(self.name, (BIN + self.binary, "--calibrations", "0", *words), reports=True)

    @property
    def texts_of(self) -> frozenset[str]:
        """Numbers of the TOML program that the C program takes from its texts."""
        return frozenset({"hogs"} if "nice" in self.texts else ())

    def params(self, ns_per_iteration: float, ratio: float) -> dict[str, float]:
        """Parameters of the TOML program."""
        spins = {f"{name}_us": count * ns_per_iteration / 1000 for name, count in self.spins.items()}
        numbers = {name.replace("-", "_"): float(value) for name, value in self.numbers.items()}
        return {"ratio": ratio, **spins, **numbers}


def _ms(amount: float) -> int:
    return round(amount * MS)


def hogs(count: int, work: float) -> Program:
    """Threads that never wait."""
    return Program(
        "hogs", "hogs", "hogs", {"work": _ms(work)}, {"hogs": count}, {"nice": ",".join("0" * count)}
    )


def _nice_hogs(work: float) -> Program:
    return Program("hogs", "hogs", "hogs-nice", {"work": _ms(work)}, {}, {"nice": "0,0,5,5"})


def lock(outside: float, inside: float, rounds: int, name: str = "lock") -> Program:
    """4 threads that take a lock in turn."""
    spins = {"outside": _ms(outside), "inside": _ms(inside)}
    return Program(name, "convoy", "convoy", spins, {"threads": 4, "rounds": rounds})


def barrier(work: float, step: float, rounds: int) -> Program:
    """4 threads that wait for each other, each with a bit more to do than the one before."""
    return Program(
        "barrier",
        "barrier",
        "barrier",
        {"work": _ms(work), "step": _ms(step)},
        {"threads": 4, "rounds": rounds},
    )


def pipeline(source: float, middle: float, sink: float, items: int, name: str = "pipeline") -> Program:
    """A source, 3 threads in the middle, a sink."""
    spins = {"source": _ms(source), "work": _ms(middle), "sink": _ms(sink)}
    return Program(name, "pipeline", "pipeline", spins, {"middle": 3, "items": items, "capacity": 4})


def sleepers(count: int, burst: float, hogs: int, work: float, rounds: int) -> Program:
    """Threads that wake up periodically, every 10, 13, ... ms, and some that never wait."""
    numbers = {"sleepers": count, "hogs": hogs, "rounds": rounds, "period-us": 10_000, "step-us": 3_000}
    return Program("sleepers", "sleepers", "sleepers", {"burst": _ms(burst), "work": _ms(work)}, numbers)


@dataclass(frozen=True)
class Workload:
    """Programs that run at the same time."""

    name: str
    what: str
    programs: tuple[Program, ...]

    def mix(self) -> Mix:
        """For the campaign."""
        return Mix(self.name, self.what, tuple(program.guest() for program in self.programs))


HOT = lock(0.5, 1.0, 50)
COOL = lock(2.0, 0.5, 35, "lock")
SINK = pipeline(0.5, 1.5, 1.25, 100)
SOURCE = pipeline(1.25, 1.5, 0.25, 100)
BARRIER = barrier(3.0, 0.5, 25)

CHOSEN = (
    Workload("hogs-3", "3 threads that never wait", (hogs(3, 200),)),
    Workload("hogs-7", "7 threads that never wait", (hogs(7, 110),)),
    Workload("hogs-nice", "2 of nice 0 and 2 of nice 5", (_nice_hogs(180),)),
    Workload("lock-hot", "4 threads, two thirds of their work under one lock", (HOT,)),
    Workload("lock-cool", "4 threads, a fifth of their work under one lock", (COOL,)),
    Workload("barrier", "4 threads with unequal shares", (BARRIER,)),
    Workload("pipeline-sink", "a pipeline whose sink is slow", (SINK,)),
    Workload("pipeline-source", "a pipeline whose source is slow", (SOURCE,)),
    Workload("sleepers", "3 that wake up every 10 to 16 ms, 3 hogs", (sleepers(3, 2.0, 3, 150, 20),)),
    Workload("lock+hogs", "a lock beside 3 hogs", (lock(0.5, 1.0, 35), hogs(3, 90))),
    Workload("pipeline+hogs", "a pipeline beside 3 hogs", (pipeline(0.5, 1.5, 1.25, 60), hogs(3, 90))),
    Workload("barrier+lock", "a barrier beside a lock", (barrier(3.0, 0.5, 15), lock(2.0, 0.5, 25))),
    Workload(
        "lock+pipeline+hogs",
        "a lock, a pipeline and 3 hogs",
        (lock(0.5, 1.0, 25), pipeline(0.5, 1.5, 1.25, 35), hogs(3, 60)),
    ),
    Workload(
        "sleepers+pipeline",
        "sleepers beside a pipeline",
        (sleepers(2, 2.0, 1, 100, 20), pipeline(1.25, 1.5, 0.25, 60)),
    ),
)

DRAWN = 6
TOTAL = 700.0
"""Work of a drawn workload in ms at 1,000 million instructions per second: some 0.3 s of 2B2S."""


def _drawn_hogs(draw: random.Random, total: float) -> Program:
    count = draw.randint(1, 6)
    return hogs(count, total / count)


def _drawn_lock(draw: random.Random, total: float) -> Program:
    outside, inside = draw.uniform(0.2, 3.0), draw.uniform(0.2, 2.0)
    return lock(outside, inside, round(total / 4 / (outside + inside)))


def _drawn_barrier(draw: random.Random, total: float) -> Program:
    work, step = draw.uniform(0.5, 5.0), draw.uniform(0.1, 1.0)
    return barrier(work, step, round(total / (4 * work + 6 * step)))


def _drawn_pipeline(draw: random.Random, total: float) -> Program:
    source, middle, sink = (draw.uniform(0.2, 2.0) for _ in range(3))
    return pipeline(source, middle, sink, round(total / (source + middle + sink)))


def _drawn_sleepers(draw: random.Random, total: float) -> Program:
    count, burst, others = draw.randint(1, 4), draw.uniform(0.5, 4.0), draw.randint(1, 3)
    rounds = round(total / 2 / count / burst)
    return sleepers(count, burst, others, total / 2 / others, min(rounds, 25))


def drawn(number: int) -> Workload:
    """A workload of one to three programs drawn by lot: nobody has chosen it, or looked at it while anything that
    the comparison tries was built.

    Args:
        number: From 1; the seed.
    """
    draw = random.Random(f"drawn {number}")
    kinds = {
        "hogs": _drawn_hogs,
        "lock": _drawn_lock,
        "barrier": _drawn_barrier,
        "pipeline": _drawn_pipeline,
        "sleepers": _drawn_sleepers,
    }
    names = draw.sample(list(kinds), draw.randint(1, 3))
    programs = tuple(kinds[name](draw, TOTAL / len(names)) for name in names)
    return Workload(f"drawn-{number}", "drawn by lot: " + ", ".join(names), programs)


WORKLOADS = (*CHOSEN, *(drawn(number) for number in range(1, DRAWN + 1)))
