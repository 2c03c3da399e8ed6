"""Who had which core when: the turns of one simulation."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ampsched._core import Machine
from ampsched.results import Outcome

if TYPE_CHECKING:
    import polars

SYSTEM = "system"
"""Whose turns are those of kernel threads."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A stay of a thread on a core."""

    core: int
    thread: int | None
    """Number of the thread; none of a kernel thread."""
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, repr=False)
class Timeline:
    """All turns of a simulation."""

    machine: Machine
    """With the cores in the order of their numbers."""
    outcome: Outcome
    turns: tuple[Turn, ...]
    """By core and start."""
    threads: tuple[tuple[int, str, str], ...]
    """Application's number, application and name of each thread, by number."""

    def __repr__(self) -> str:
        """A line; `to_polars` has everything."""
        of = self.outcome
        where = f"{of.workload} on {of.machine} under {of.policy}, seed {of.seed}"
        return f"<Timeline: {where}, {len(self.turns):,} turns in {of.makespan_ns / 1e6:g} ms>"

    def _repr_html_(self) -> str:
        from ampsched.report import notebook

        return notebook.timeline(self)

    @staticmethod
    def from_json(text: str, machine: Machine, policy: str) -> "Timeline":
        """From the simulator's JSON, a pair of outcome and turns.

        Args:
            text: The JSON.
            machine: With its cores in the order of the run.
            policy: The policy's name, parameters included.
        """
        outcome, turns = json.loads(text)
        return Timeline(
            machine,
            Outcome.from_values(outcome, policy),
            tuple(
                sorted((Turn(*row) for row in turns["turns"]), key=lambda turn: (turn.core, turn.start_ns))
            ),
            tuple((row["app"], row["app_name"], row["name"]) for row in turns["threads"]),
        )

    def apps(self) -> list[str]:
        """Names of the applications, by number."""
        return [app.name for app in self.outcome.apps]

    def to_polars(self) -> "polars.DataFrame":
        """One row per turn: core, app, thread, start_ns, end_ns."""
        import polars

        rows: list[dict[str, Any]] = []
        for turn in self.turns:
            app, name = (SYSTEM, None) if turn.thread is None else self.threads[turn.thread][1:]
            rows.append(
                {
                    "core": turn.core,
                    "app": app,
                    "thread": name,
                    "start_ns": turn.start_ns,
                    "end_ns": turn.end_ns,
                }
            )
        kinds = {"core": polars.Int64, "app": polars.String, "thread": polars.String}
        schema = {**kinds, "start_ns": polars.Int64, "end_ns": polars.Int64}
        return polars.DataFrame(rows, schema=schema)
