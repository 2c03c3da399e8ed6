"""A setting: the ways in which a program can be run that its owner decides on, and what to type for one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ampsched.naming import in_number
from ampsched.recording.check import LINUX
from ampsched.recording.cores import Cores

PLACE = "{threads}"
"""Where the number of threads stands in a command."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How a program is run.

    Attributes:
        policy: The scheduler.
        threads: Its number of threads; none if the command says nothing of it.
        cores: Which cores it may use; none: all.
        environment: Variables that are set for it, such as those of OpenMP.
        governor: Who sets clocks; none: whoever does so today.
    """

    policy: str = LINUX
    threads: int | None = None
    cores: Cores | None = None
    environment: tuple[tuple[str, str], ...] = ()
    governor: str | None = None

    @property
    def name(self) -> str:
        """Such as ``linux`` or ``4 threads under linux on the big cores``."""
        count = f"{self.threads} {in_number(self.threads, 'thread')} under " if self.threads else ""
        where = f" on {self.cores.name}" if self.cores else ""
        variables = [f"{name}={value}" for name, value in self.environment]
        governor = [f"governor {self.governor}"] if self.governor else []
        extra = " and ".join([*variables, *governor])
        return f"{count}{self.policy}{where}{f' with {extra}' if extra else ''}"

    def effort(self, usual: Setting) -> int:
        """What it takes instead of the usual setting.

        1 another number of threads or a variable, 2 ``taskset``, 4 root's rights for clocks, 8 a scheduler; or sums.
        """
        return (
            (self.threads != usual.threads or self.environment != usual.environment)
            + 2 * (self.cores != usual.cores)
            + 4 * (self.governor != usual.governor)
            + 8 * (self.policy != usual.policy)
        )

    def with_threads(self, command: Sequence[str]) -> list[str]:
        """A command with the number of threads at its place."""
        return [word.replace(PLACE, str(self.threads)) for word in command]

    def argv(self, command: Sequence[str], cpus: str | None = None) -> list[str]:
        """The words that run a command so; clocks are not among them.

        Args:
            command: The command; `PLACE` stands for the number of threads. With ``--pid``: of a program that runs.
            cpus: What Linux calls the cores; by default the machine's own numbers.
        """
        numbers = (cpus or self.cores.list) if self.cores else ""
        if list(command[:1]) == ["--pid"] and self.policy == LINUX:
            return ["taskset", "--all-tasks", "--cpu-list", "--pid", numbers, *command[1:]] if numbers else []
        pinned = ["taskset", "--cpu-list", numbers] if numbers else []
        variables = [f"{name}={value}" for name, value in self.environment]
        target = list(command) if command[:1] == ["--pid"] else ["--", *self.with_threads(command)]
        live = ["ampsched", "live", "run", "--policy", self.policy, *target]
        run = target[1:] if self.policy == LINUX else live
        return [*(["env", *variables] if variables else []), *pinned, *run]
