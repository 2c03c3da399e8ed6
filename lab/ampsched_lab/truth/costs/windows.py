"""Windows of created tasks: OpenMP under libgomp in exact virtual machines, and the same as a region."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ampsched.vm.exact import Work
from ampsched_lab.truth.costs import cases
from ampsched_lab.truth.costs.check import Row, rows_table, section, simulate

KEPT = Path("docs/reports/truth/costs/windows.json")
PROGRAM = Path("lab/ampsched_lab/programs/tasks.c")
PER_THREAD = 64
"""Tasks that libgomp defers: ``GOMP_task`` (libgomp/task.c) executes a task at once if more exist."""


@dataclass(frozen=True)
class Case:
    """Tasks that one thread creates.

    Attributes:
        kind: Of cores, see ``cases.SPEEDS``.
        threads: One on each core.
        tasks: How many.
        iterations: Work of the first.
        rise: How much more the last one has.
    """

    kind: str
    threads: int
    tasks: int
    iterations: int
    rise: int

    def __str__(self) -> str:
        """For the table."""
        rise = ", the later the longer" if self.rise else ""
        return f"{self.threads} {self.kind} cores, {self.tasks} tasks{rise}"

    def arguments(self) -> list[str]:
        """Of the C program."""
        return [str(each) for each in (self.tasks, self.iterations, self.rise)]


CASES = (
    Case("equal", 2, 1000, 100_000, 0),
    Case("equal", 4, 1000, 100_000, 0),
    Case("equal", 2, 600, 20_000, 200_000),
    Case("equal", 4, 800, 20_000, 100_000),
    Case("unequal", 2, 600, 100_000, 0),
    Case("unequal", 4, 1000, 100_000, 0),
    Case("unequal", 4, 600, 20_000, 200_000),
)


@dataclass(frozen=True)
class Found:
    """How long a task took alone, when the creator had created all, and when all had ended."""

    task_us: float
    created_ms: float
    all_ms: float


def measure(program: Path) -> list[Found]:
    """All cases in exact virtual machines."""
    found = []
    with tempfile.TemporaryDirectory(prefix="ampsched-costs-") as name:
        for case in CASES:
            exact = cases.exact_machine(Path(name), case.kind, case.threads)
            variables = {"OMP_PROC_BIND": "true", "OMP_NUM_THREADS": str(case.threads)}
            work = Work([str(program), *case.arguments()], variables=variables)
            found.append(cases.told(exact, work, Found))
    return found


def simulated(case: Case, task_us: float, window: int | None) -> Found:
    """A case as a region."""
    machine = cases.machine_text(case.kind, case.threads)
    keys = f"window = {window}" if window else ""
    program = f"""
regions.r = {{ graph = "tasks.csv", work_us = {task_us}, {keys} }}
[semaphores.created]
[profiles.chain]
like = "swaptions"
ratio = {cases.ratio(case.kind)}
[[threads]]
name = "creator"
cores = [0]
body = [{{ create = "r", profile = "chain" }}, {{ sem_post = "created" }}, {{ tasks = "r", profile = "chain" }}]
[[threads]]
name = "worker"
count = {case.threads - 1}
cores = ["index + 1"]
body = [{{ tasks = "r", profile = "chain" }}]
[[threads]]
name = "marker"
cores = [0]
nice = -20
body = [{{ sem_wait = "created" }}]
"""
    outcome = simulate(machine, program, files={"tasks.csv": "\n".join(graph(case)) + "\n"})
    marker = next(thread for thread in outcome.threads if thread.name == "marker")
    return Found(task_us, marker.end_ns / 1e6, outcome.makespan_ns / 1e6)


def graph(case: Case) -> Iterator[str]:
    """The tasks: number, work as a multiple of ``iterations``."""
    for task in range(case.tasks):
        work = 1 + case.rise * task // case.tasks / case.iterations
        yield f"{task},{work},,"


def rows(found: Sequence[Found], part: str, with_window: bool = True) -> list[Row]:
    """A figure of all cases on both sides."""
    made = []
    for case, real in zip(CASES, found, strict=True):
        ours = simulated(case, real.task_us, PER_THREAD * case.threads + 1 if with_window else None)
        made.append(Row(str(case), getattr(real, part), getattr(ours, part)))
    return made


def keep(program: Path) -> None:
    """Measures anew."""
    cases.keep(KEPT, measure(program))


def text() -> str:
    """What the page says of windows."""
    found = cases.kept(KEPT, Found)
    without = max(row.simulated for row in rows(found, "created_ms", with_window=False))
    return section(
        "Windows of created tasks",
        [
            "libgomp executes a task at once instead of keeping it if more than 64 per thread exist (`GOMP_task` in "
            "`libgomp/task.c`), so `window` is 64 times the threads and one. A program of OpenMP "
            "(`lab/ampsched_lab/programs/tasks.c`) under libgomp in exact virtual machines, beside a region; half of unequal cores "
            "are 2.5 times as fast as the others. What one task takes is the program's own figure, nothing else is set.",
            "When the creator has created all tasks, in ms:",
            rows_table("case", rows(found, "created_ms"), ",.1f"),
            f"Without a window creation would seem to end within {without:.1f} ms. Tasks without predecessors only: "
            "libgomp does not count those that wait for others, as `window` (and Nanos++) does, so a graph whose tasks "
            "mostly wait is best left without a window for libgomp.",
            "When all tasks have ended, in ms:",
            rows_table("case", rows(found, "all_ms"), ",.1f"),
        ],
    )
