"""A workload in the simulator, with the programs begun when the kernel's were."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import ampsched
from ampsched import Explanation, Machine, Outcome, Overhead, Timeline
from ampsched.settings import SimulateSettings
from ampsched_lab.campaign.plan import SETTLE_US
from ampsched_lab.truth.pairs.workloads import Workload

PROGRAMS = Path(__file__).resolve().parent / "programs"
NS_PER_MS = 1_000_000
DIRECTOR = "director"
"""Name of the thread that starts a program."""


@dataclass(frozen=True)
class Ended:
    """What became of a program.

    Attributes:
        name: Of the program.
        turnaround_ns: From its start to the end of its last thread.
        switches: How often a core went on to one of its threads from another thread.
        moves: How often one of its threads got to another core.
        big_ns: Time of its threads on big cores.
        little_ns: The same on little cores.
    """

    name: str
    turnaround_ns: int
    switches: int
    moves: int
    big_ns: int
    little_ns: int


@dataclass(frozen=True)
class Simulator:
    """Simulates workloads.

    Attributes:
        folder: Gets files.
        machine: The machine.
        ns_per_iteration: Of the loop, on the fastest core.
        ratio: How much slower it is on the slowest.
        start_us: What the start of a program takes on the fastest core; its first thread executes it.
        look_us: What a look of a policy's slow plane takes of a core, by policy.
        governor: Who changes frequencies, if anybody.
        director_uclamp_min: Programs are started by a real-time thread that asks for so much capacity; None: by nobody
            who is simulated.
        noise: What the system does beside the programs.
    """

    folder: Path
    machine: Machine | Path
    ns_per_iteration: float
    ratio: float
    start_us: float
    look_us: Mapping[str, float] = field(default_factory=dict)
    governor: str | None = None
    director_uclamp_min: int | None = None
    noise: str = "none"

    def run(self, workload: Workload, starts_us: Sequence[int], policy: str, seed: int = 1) -> list[Ended]:
        """Simulates a workload whose programs are asked for at given times."""
        outcome = self.outcome(workload, starts_us, policy, seed)
        found = []
        for number, (program, app) in enumerate(zip(workload.programs, outcome.apps, strict=True)):
            own = [each for each in outcome.threads if each.app == number and each.name != DIRECTOR]
            # The program's own account begins when its start is over, that is, when it makes its first thread.
            began_ns = min((thread.start_ns for thread in own[1:]), default=app.start_ns)
            found.append(
                Ended(
                    program.name,
                    app.start_ns + app.turnaround_ns - began_ns,
                    sum(thread.switches for thread in own),
                    sum(thread.migrations for thread in own),
                    sum(thread.big_ns for thread in own),
                    sum(thread.little_ns for thread in own),
                )
            )
        return found

    def outcome(self, workload: Workload, starts_us: Sequence[int], policy: str, seed: int = 1) -> Outcome:
        """The same with all that is known."""
        path = self._workload(workload, starts_us)
        return ampsched.simulate(self.machine, path, policy, **self._settings(policy, seed))

    def timeline(self, workload: Workload, starts_us: Sequence[int], policy: str, seed: int = 1) -> Timeline:
        """The same with who had which core when."""
        path = self._workload(workload, starts_us)
        return ampsched.timeline(self.machine, path, policy, **self._settings(policy, seed))

    def stories(
        self, workload: Workload, starts_us: Sequence[int], policy: str, seed: int = 1
    ) -> list[Explanation]:
        """All that happens to each thread, and why."""
        outcome = self.outcome(workload, starts_us, policy, seed)
        path, end_ms = self._workload(workload, starts_us), outcome.makespan_ns / NS_PER_MS
        return [
            ampsched.explain(
                self.machine,
                path,
                policy,
                thread=number,
                at_ms=end_ms,
                window_ms=end_ms,
                **self._settings(policy, seed),
            )
            for number in range(len(outcome.threads))
        ]

    def _settings(self, policy: str, seed: int) -> SimulateSettings:
        return {
            "overhead": Overhead(epoch_us=self.look_us.get(policy, 0.0)),
            "governor": self.governor or "none",
            "noise": self.noise,
            "seed": seed,
        }

    def _director(self) -> dict[str, float]:
        if self.director_uclamp_min is None:
            return {}
        return {"directors": 1, "director_uclamp_min": self.director_uclamp_min}

    def _workload(self, workload: Workload, starts_us: Sequence[int]) -> Path:
        apps = []
        for program, start_us in zip(workload.programs, starts_us, strict=True):
            params = {
                **program.params(self.ns_per_iteration, self.ratio),
                "start_us": self.start_us,
                **self._director(),
            }
            words = ", ".join(f"{name} = {value!r}" for name, value in params.items())
            apps.append(
                f'  {{ name = "{program.name}", program = "{PROGRAMS / program.model}.toml", '
                f"start_ms = {(SETTLE_US + start_us) / 1000!r}, params = {{ {words} }} }},"
            )
        path = self.folder / f"side-{os.getpid()}.workload.toml"
        path.write_text(
            "\n".join(["[workloads.side]", f'description = "{workload.what}"', "apps = [", *apps, "]", ""]),
            "utf-8",
        )
        return path
