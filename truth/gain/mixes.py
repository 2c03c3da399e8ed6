"""What is run: mixes of the truth check's programs, each with threads for which others wait.

The amounts were chosen once, from what alone would take some 4 s on the big cores of the virtual machine, before any
policy was measured.
"""

from dataclasses import dataclass
from pathlib import Path

from truth.scenarios import Scenario

STEP = 6_400_000
"""Iterations that take some 20 ms on a big core of the virtual machine: several periods of its quotas per step of a
program would be better still, but a mix has to end."""


@dataclass(frozen=True)
class Mix:
    """Programs that run at the same time, by their names in the mix."""

    name: str
    what: str
    """For the report."""
    programs: dict[str, Scenario]

    def commands(self, folder: Path) -> list[dict]:
        """Arguments of `ampsched.live.MixProgram`; `folder` holds the compiled programs."""
        return [
            {
                "name": name,
                # What an iteration costs is measured apart from the mixes.
                "command": (str(folder / scenario.program), "--calibrations", "1", *scenario.arguments()),
            }
            for name, scenario in self.programs.items()
        ]


def _convoy(what: str, outside: float, inside: float, rounds: int) -> Scenario:
    spins = {"outside": round(outside * STEP), "inside": round(inside * STEP)}
    return Scenario("convoy", "convoy", what, spins, {"threads": 4, "rounds": rounds}, {})


def _pipeline(what: str, source: float, middle: float, sink: float, items: int) -> Scenario:
    spins = {"source": round(source * STEP), "work": round(middle * STEP), "sink": round(sink * STEP)}
    return Scenario("pipeline", "pipeline", what, spins, {"middle": 3, "items": items, "capacity": 4}, {})


HOT = _convoy("4 threads, two thirds of their work under one lock", 0.5, 1.0, 50)
COOL = _convoy("4 threads, a fifth of their work under one lock", 2.0, 0.5, 40)
SINK = _pipeline("a source (1), 3 middle threads (3 each), a sink (2.5)", 0.5, 1.5, 1.25, 120)
SOURCE = _pipeline("a source (2.5), 3 middle threads (3 each), a sink (0.5)", 1.25, 1.5, 0.25, 130)
HOGS = Scenario(
    "hogs-three", "hogs", "3 threads that never wait", {"work": 125 * STEP}, {}, {"nice": "0,0,0"}
)

MIXES = [
    Mix("locks", "two programs whose threads share a lock", {"hot": HOT, "cool": COOL}),
    Mix("pipelines", "two pipelines with a slowest stage each", {"sink": SINK, "source": SOURCE}),
    Mix("hogs", "a lock, a pipeline and three hogs", {"hot": HOT, "sink": SINK, "hogs": HOGS}),
]
