"""Task graphs: generating, reading and writing them, and executing them under a task policy on unequal workers."""

from dataclasses import dataclass
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ampsched import _core
from ampsched._core import DATA_BYTES_MAX, TaskGraph, TaskWorkers
from ampsched.files import check_suffix, read_text, shown, write_text, writing
from ampsched.registry import Param, Registered
from ampsched.settings import GraphSettings, TaskSettings, only, takes_settings
from ampsched.spec import registered_spec

if TYPE_CHECKING:
    import polars

BYTES_PER_MB = 1e6
S_PER_US = 1e-6
GANTT_SUFFIXES = (".svg",)
WORKERS = "4x10,4x4"
"""Who executes a graph if nothing else is said."""


@dataclass(frozen=True, slots=True)
class TaskPolicyInfo(Registered):
    """A task policy, from the registry."""

    off_line: bool
    """Whether it decides beforehand from all costs, instead of while the workers run."""


def task_policies() -> tuple[TaskPolicyInfo, ...]:
    """All task policies in alphabetical order."""
    return tuple(TaskPolicyInfo.of(row) for row in _core.task_policies())


@dataclass(frozen=True, slots=True)
class TaskProgramInfo:
    """A program whose task graph can be generated."""

    name: str
    summary: str
    documentation: str
    ratio: float
    """Measured speed of a big core over that of a little one."""
    params: tuple[Param, ...]


def task_programs() -> tuple[TaskProgramInfo, ...]:
    """All programs whose task graphs can be generated, in alphabetical order."""
    return tuple(
        TaskProgramInfo(
            name=row["name"],
            summary=row["summary"],
            documentation=row["documentation"],
            ratio=row["ratio"],
            params=tuple(Param(**param) for param in row["params"]),
        )
        for row in _core.task_programs()
    )


@takes_settings
def task_graph(source: str | Path | TaskGraph, **settings: Unpack[GraphSettings]) -> TaskGraph:
    """The task graph of a program or in a file.

    Args:
        source: A program with parameters (``"fluidanimate:frames=50:barriers=1"``, see `task_programs`), the path of a
            file (see `read_task_graph`), or a graph. A text with a dot or a slash before any colon is a path.

    Raises:
        InputError: If there is no such program, parameter or file, or something is wrong with it.

    Example:
        >>> task_graph("blackscholes").tasks
        6400
    """
    if isinstance(source, TaskGraph):
        return source
    head = str(source).partition(":")[0]
    if isinstance(source, Path) or "." in head or "/" in head:
        return read_task_graph(source, **settings)
    name, params = registered_spec(source, "task program")
    return TaskGraph.program(name, params)


@takes_settings
def read_task_graph(path: str | Path, **settings: Unpack[GraphSettings]) -> TaskGraph:
    """Reads a task graph from a file; the ending of its name tells the format.

    Formats: ``.csv`` (``id,work,kind,dep;dep``), ``.stg`` (Standard Task Graph set), ``.dot`` or ``.gv`` (Graphviz),
    ``.json`` (WfCommons WfFormat). Work is in seconds on a worker of speed 1.

    Args:
        path: The file.

    Raises:
        InputError: If the file cannot be read, or is wrong; its text names file, line and task.
    """
    return TaskGraph.read(shown(path), read_text(Path(path), DATA_BYTES_MAX), _bytes_per_s(settings))


@takes_settings
def write_task_graph(graph: TaskGraph, path: str | Path, **settings: Unpack[GraphSettings]) -> None:
    """Writes a task graph into a file; the ending of its name tells the format, see `read_task_graph`.

    With a bandwidth, times become sizes of files (``.json``).

    Args:
        graph: The graph.
        path: The file; it is replaced if it exists.

    Raises:
        InputError: If the format cannot hold something of the graph, such as sizes of data that no bandwidth made times
            of.
    """
    text = graph.write(shown(path), _bytes_per_s(settings))
    write_text(path, text)


@dataclass(frozen=True, slots=True, repr=False)
class TaskSchedule:
    """Which worker executes which task when, and what it is measured by."""

    policy: str
    """Task policy with its parameters; ``recorded`` if it was read from a recording."""
    core: _core.TaskSchedule

    def __repr__(self) -> str:
        """A line; `to_polars` has everything."""
        return f"<TaskSchedule of {self.graph.name} under {self.policy}: {self.makespan_s:g} s>"

    def _repr_html_(self) -> str:
        from ampsched.report import notebook

        return notebook.schedule(self)

    @property
    def graph(self) -> TaskGraph:
        """The task graph; of a recording, work is the time that a task took times its worker's speed."""
        return self.core.graph

    @property
    def makespan_s(self) -> float:
        """End of the last task in seconds."""
        return self.core.makespan_s

    @property
    def lower_bound_s(self) -> float:
        """No schedule is shorter: the longer of critical path and work / sum of the speeds."""
        return self.core.lower_bound_s

    @property
    def over_bound(self) -> float:
        """Makespan / lower bound - 1; 0 is certainly optimal."""
        return self.makespan_s / self.lower_bound_s - 1 if self.lower_bound_s > 0 else 0.0

    @property
    def classes(self) -> list[tuple[str, int]]:
        """Classes of workers in their order: name, number of workers."""
        return self.core.classes

    @property
    def utilisation(self) -> list[float]:
        """Share of the makespan that each worker executes tasks, 0 to 1."""
        whole_s = self.makespan_s
        return [busy_s / whole_s if whole_s > 0 else 0.0 for busy_s in self.core.busy_s]

    def class_utilisation(self) -> list[float]:
        """Mean utilisation of each class of workers."""
        shares = iter(self.utilisation)
        return [
            fsum(next(shares) for _ in range(count)) / count if count else 0.0 for _, count in self.classes
        ]

    def to_dict(self) -> dict[str, Any]:
        """What it is measured by, as plain values, for JSON."""
        return {
            "policy": self.policy,
            "makespan_s": self.makespan_s,
            "lower_bound_s": self.lower_bound_s,
            "utilisation": self.utilisation,
        }

    def to_polars(self) -> "polars.DataFrame":
        """One row per execution, by start: task, kind, worker, start_s, end_s."""
        import polars

        names = ("task", "kind", "worker", "start_s", "end_s")
        return polars.DataFrame(dict(zip(names, self.core.columns(), strict=True)))

    def write_gantt(self, path: str | Path, title: str = "") -> None:
        """Draws the schedule as SVG: one row per worker, time from left to right.

        Raises:
            InputError: If the path does not end with ``.svg``.
        """
        check_suffix("drawing", Path(path), *GANTT_SUFFIXES)
        heading = title or f"{self.policy}: {self.makespan_s:g} s"
        write_text(path, self.core.gantt(heading))

    def write_trace(self, path: str | Path) -> None:
        """Writes a trace for https://ui.perfetto.dev; times are rounded to ns."""
        with writing(path) as file:
            self.core.perfetto(file)


def read_recording(path: str | Path) -> TaskSchedule:
    """Reads what a real task runtime has executed, to look at it as at a simulated schedule.

    The file is CSV with the columns ``task``, ``kind``, ``worker``, ``start_s``, ``end_s`` and ``after`` (names
    separated by ``;``), as the task runtime writes it; ``kind`` and ``after`` may be absent. A first line such as ``#
    workers big:2.5x4,little:1x4`` states the workers (name, speed, number).

    Args:
        path: The file.

    Raises:
        InputError: If the file cannot be read, or is wrong; its text names file, line and task.
    """
    return TaskSchedule(
        "recorded", _core.TaskSchedule.recorded(shown(path), read_text(Path(path), DATA_BYTES_MAX))
    )


@takes_settings
def run_tasks(
    graph: str | Path | TaskGraph,
    workers: str = WORKERS,
    policy: str = "fifo",
    **settings: Unpack[TaskSettings],
) -> TaskSchedule:
    """Executes a task graph under a task policy, simulated; each worker has a core for itself.

    The schedule of an off-line policy is computed first and then executed.

    Args:
        graph: A program, the path of a file, or a graph; see `task_graph`.
        workers: ``COUNTxSPEED,...``; ``big`` and ``little`` stand for `ratio` and 1.
        policy: Task policy with parameters, such as ``cats:steal=1``.

    Raises:
        InputError: If something does not exist or is wrong.

    Example:
        >>> graph = TaskGraph.read("one.csv", "a,4,,")
        >>> run_tasks(graph, "1x2,1x1", "heft").makespan_s
        2.0
    """
    graph = task_graph(graph, **only(GraphSettings, settings))
    ratio, grab_us = settings["ratio"], settings["grab_us"]
    grab_s = None if grab_us is None else [float(us) * S_PER_US for us in grab_us]
    crew = TaskWorkers(workers, graph.ratio if ratio is None else ratio, grab_s)
    name, params = registered_spec(policy, "task policy")
    return TaskSchedule(policy.strip(), _core.run_task_graph(graph, crew, name, params))


def _bytes_per_s(settings: GraphSettings) -> float | None:
    bandwidth_mb_s = settings["bandwidth_mb_s"]
    return None if bandwidth_mb_s is None else bandwidth_mb_s * BYTES_PER_MB
