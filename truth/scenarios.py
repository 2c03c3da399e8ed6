"""What is run: each scenario is one C program with arguments and one TOML program with the same parameters."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scenario:
    """One row of the table."""

    name: str
    """Also the name of the TOML program."""
    program: str
    """The C program."""
    what: str
    """One line for the report."""
    spins: dict[str, int]
    """Amounts of work, in iterations of the spin loop; become microseconds in the simulation."""
    numbers: dict[str, int]
    """Other parameters, the same on both sides."""
    texts: dict[str, str]
    """Arguments of the C program that the TOML program states itself."""

    def arguments(self) -> list[str]:
        """Command line of the C program."""
        values = {**self.spins, **self.numbers, **self.texts}
        return [part for name, value in values.items() for part in (f"--{name}", str(value))]

    def cpus(self, allowed: list[int]) -> list[int]:
        """The CPUs that it uses."""
        pinned = self.texts.get("cpu")
        return allowed if pinned is None else [allowed[int(pinned)]]

    def params(self, ns_per_iteration: float) -> dict[str, float]:
        """Parameters of the TOML program, if an iteration takes that long."""
        spins = {f"{name}_us": count * ns_per_iteration / 1000 for name, count in self.spins.items()}
        return spins | {name.replace("-", "_"): float(value) for name, value in self.numbers.items()}


# Two threads, each alone on a CPU, take turns: tells what waking a thread on an idle CPU costs here.
WAKEUP = Scenario(
    "wakeup",
    "wakeup",
    "two threads, each alone on a CPU, take turns",
    {"work": 80_000},
    {"rounds": 2000},
    {},
)

SCENARIOS = [
    Scenario(
        "hogs-one-cpu",
        "hogs",
        "three hogs of nice 0, 3 and 5 on one CPU",
        {"work": 800_000_000},
        {},
        {"nice": "0,3,5", "cpu": "0"},
    ),
    Scenario(
        "hogs-nice",
        "hogs",
        "two hogs of nice 0 and two of nice 5 on two CPUs",
        {"work": 1_000_000_000},
        {},
        {"nice": "0,0,5,5"},
    ),
    Scenario(
        "hogs-three", "hogs", "three equal hogs on two CPUs", {"work": 1_500_000_000}, {}, {"nice": "0,0,0"}
    ),
    Scenario(
        "convoy",
        "convoy",
        "four threads share a mutex: 0.1 ms outside, 0.2 ms inside",
        {"outside": 80_000, "inside": 160_000},
        {"threads": 4, "rounds": 2000},
        {},
    ),
    Scenario(
        "barrier",
        "barrier",
        "four threads with shares of 3 to 4.5 ms meet at a barrier",
        {"work": 2_400_000, "step": 400_000},
        {"threads": 4, "rounds": 300},
        {},
    ),
    Scenario(
        "pipeline",
        "pipeline",
        "a source, two middle threads and a sink joined by bounded queues",
        {"source": 240_000, "work": 800_000, "sink": 240_000},
        {"middle": 2, "items": 2000, "capacity": 8},
        {},
    ),
    Scenario(
        "sleepers",
        "sleepers",
        "three periodic threads beside two hogs",
        {"burst": 1_600_000, "work": 1_200_000_000},
        {"sleepers": 3, "hogs": 2, "rounds": 150, "period-us": 10_000, "step-us": 3_000},
        {},
    ),
]
