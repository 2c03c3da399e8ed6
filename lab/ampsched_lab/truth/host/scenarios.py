"""What is run on a computer with two equal CPUs."""

from collections.abc import Sequence

from ampsched_lab.truth.pairs.workloads import Program, Workload


def arguments(program: Program, cpus: Sequence[int]) -> list[str]:
    """Arguments of the C program."""
    values = {**program.spins, **program.numbers, **program.texts}
    words = [word for name, value in values.items() for word in (f"--{name}", str(value))]
    return ["--cpus", ",".join(map(str, cpus)), *words]


def cpus_of(program: Program, cpus: Sequence[int]) -> list[int]:
    """The CPUs that it uses."""
    pinned = program.texts.get("cpu")
    return list(cpus) if pinned is None else [cpus[int(pinned)]]


def _scenario(name: str, what: str, program: Program) -> Workload:
    return Workload(name, what, (program,))


SCENARIOS = (
    _scenario(
        "hogs-one-cpu",
        "three hogs of nice 0, 3 and 5 on one CPU",
        Program("hogs", "hogs", "hogs-pinned", {"work": 800_000_000}, {}, {"nice": "0,3,5", "cpu": "0"}),
    ),
    _scenario(
        "hogs-nice",
        "two hogs of nice 0 and two of nice 5 on two CPUs",
        Program("hogs", "hogs", "hogs-nice", {"work": 1_000_000_000}, {}, {"nice": "0,0,5,5"}),
    ),
    _scenario(
        "hogs-three",
        "three equal hogs on two CPUs",
        Program("hogs", "hogs", "hogs", {"work": 1_500_000_000}, {"hogs": 3}, {"nice": "0,0,0"}),
    ),
    _scenario(
        "convoy",
        "four threads share a mutex: 0.1 ms outside, 0.2 ms inside",
        Program(
            "convoy",
            "convoy",
            "convoy",
            {"outside": 80_000, "inside": 160_000},
            {"threads": 4, "rounds": 2000},
        ),
    ),
    _scenario(
        "barrier",
        "four threads with shares of 3 to 4.5 ms meet at a barrier",
        Program(
            "barrier",
            "barrier",
            "barrier",
            {"work": 2_400_000, "step": 400_000},
            {"threads": 4, "rounds": 300},
        ),
    ),
    _scenario(
        "pipeline",
        "a source, two middle threads and a sink joined by bounded queues",
        Program(
            "pipeline",
            "pipeline",
            "pipeline",
            {"source": 240_000, "work": 800_000, "sink": 240_000},
            {"middle": 2, "items": 2000, "capacity": 8},
        ),
    ),
    _scenario(
        "sleepers",
        "three periodic threads beside two hogs",
        Program(
            "sleepers",
            "sleepers",
            "sleepers",
            {"burst": 1_600_000, "work": 1_200_000_000},
            {"sleepers": 3, "hogs": 2, "rounds": 150, "period-us": 10_000, "step-us": 3_000},
        ),
    ),
)
"""Those of the first edition of the truth check, which compared simulations with this kind of computer only."""
