"""A workload in the simulator, with the programs begun when the kernel's were."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import ampsched
from ampsched import Machine, Outcome, Overhead
from truth.campaign.plan import SETTLE_US
from truth.sides.workloads import Workload

PROGRAMS = Path(__file__).resolve().parent / "programs"


@dataclass(frozen=True)
class Ended:
    """What became of a program.

    Attributes:
        name: Of the program.
        turnaround_ns: From its start to the end of its last thread.
        switches: How often a core went on to one of its threads from another thread.
    """

    name: str
    turnaround_ns: int
    switches: int


@dataclass(frozen=True)
class Simulator:
    """Simulates workloads.

    Attributes:
        folder: Gets files.
        machine: The machine.
        ns_per_iteration: Of the loop, on the fastest core.
        ratio: How much slower it is on the slowest.
        start_us: What the start of a program takes until it begins.
        look_us: What a look of a policy's slow plane takes of a core, by policy.
    """

    folder: Path
    machine: Machine | Path
    ns_per_iteration: float
    ratio: float
    start_us: float
    look_us: Mapping[str, float] = field(default_factory=dict)

    def run(self, workload: Workload, starts_us: Sequence[int], policy: str) -> list[Ended]:
        """Simulates a workload whose programs are asked for at given times."""
        outcome = self.outcome(workload, starts_us, policy)
        switches = [0] * len(workload.programs)
        for thread in outcome.threads:
            switches[thread.app] += thread.switches
        return [
            Ended(program.name, app.turnaround_ns, count)
            for program, app, count in zip(workload.programs, outcome.apps, switches, strict=True)
        ]

    def outcome(self, workload: Workload, starts_us: Sequence[int], policy: str) -> Outcome:
        """The same with all that is known."""
        overhead = Overhead(epoch_us=self.look_us.get(policy, 0.0))
        return ampsched.simulate(self.machine, self._workload(workload, starts_us), policy, overhead=overhead)

    def _workload(self, workload: Workload, starts_us: Sequence[int]) -> Path:
        apps = []
        for program, start_us in zip(workload.programs, starts_us, strict=True):
            params = program.params(self.ns_per_iteration, self.ratio)
            words = ", ".join(f"{name} = {value!r}" for name, value in params.items())
            apps.append(
                f'  {{ name = "{program.name}", program = "{PROGRAMS / program.model}.toml", '
                f"start_ms = {(SETTLE_US + start_us + self.start_us) / 1000!r}, params = {{ {words} }} }},"
            )
        path = self.folder / f"side-{os.getpid()}.workload.toml"
        path.write_text(
            "\n".join(["[workloads.side]", f'description = "{workload.what}"', "apps = [", *apps, "]", ""]),
            "utf-8",
        )
        return path
