"""Spinning before sleeping: threads of a C program in exact virtual machines, and the same with ``spin_us``."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ampsched.vm.exact import Work
from ampsched_lab.truth.costs import cases
from ampsched_lab.truth.costs.check import Row, rows_table, section, simulate

KEPT = Path("docs/reports/truth/costs/spins.json")
QUANTUM_US = 2.0
"""Of the machine's turns: a thread that spins sees what others do that late."""
ROUNDS = 200


@dataclass(frozen=True)
class Case:
    """What threads do, one on each core.

    Attributes:
        kind: Of the object.
        cores: Of machine, see ``cases.SPEEDS``.
        threads: How many.
        work: Multiplications of the first thread in each round.
        step: By how many more each further one has, or how many all have under the mutex.
        spin_us: How long a thread spins at most.
    """

    kind: str
    cores: str
    threads: int
    work: int
    step: int
    spin_us: int

    def __str__(self) -> str:
        """For the table."""
        return f"{self.kind}, {self.threads} {self.cores} cores, {self.spin_us:,} us"

    def arguments(self) -> list[str]:
        """Of the C program."""
        numbers = (self.threads, ROUNDS, self.work, self.step, self.spin_us * 1000)
        return [self.kind, *map(str, numbers)]


CASES = tuple(
    Case(kind, cores, threads, 150_000, step, spin_us)
    for kind, cores, threads, step in (
        ("barrier", "equal", 4, 30_000),
        ("barrier", "unequal", 4, 0),
        ("mutex", "equal", 4, 60_000),
        ("mutex", "unequal", 4, 60_000),
    )
    for spin_us in (0, 100, 1000, 1_000_000)
)


@dataclass(frozen=True)
class Found:
    """How long all took, their time on cores, and what 1,000 multiplications took on the first core."""

    thousand_us: float
    all_ms: float
    cpu_ms: float


def measure(program: Path) -> list[Found]:
    """All cases in exact virtual machines."""
    found = []
    with tempfile.TemporaryDirectory(prefix="ampsched-costs-") as name:
        for case in CASES:
            exact = cases.exact_machine(Path(name), case.cores, case.threads, quantum_us=QUANTUM_US)
            found.append(cases.told(exact, Work([str(program), *case.arguments()]), Found))
    return found


def simulated(case: Case, thousand_us: float) -> Found:
    """A case in the workload language."""
    share = f"({case.work} + index * {case.step if case.kind == 'barrier' else 0})"
    waits = {
        "barrier": '{ barrier = "o" }',
        "mutex": '{ lock = "o" }, '
        f'{{ run_us = {case.step * thousand_us / 1000}, profile = "chain" }}, {{ unlock = "o" }}',
    }[case.kind]
    program = f"""
[{"barriers" if case.kind == "barrier" else "mutexes"}.o]
spin_us = {case.spin_us}
[profiles.chain]
like = "swaptions"
ratio = {cases.ratio(case.cores)}
[[threads]]
name = "member"
count = {case.threads}
cores = ["index"]
body = [{{ loop = {ROUNDS}, body = [
  {{ run_us = "{thousand_us / 1000} * {share}", profile = "chain" }}, {waits}
] }}]
"""
    outcome = simulate(cases.machine_text(case.cores, case.threads), program)
    cpu_ns = sum(thread.run_ns for thread in outcome.threads)
    return Found(thousand_us, outcome.makespan_ns / 1e6, cpu_ns / 1e6)


def rows(found: Sequence[Found], part: str) -> list[Row]:
    """A figure of all cases on both sides."""
    return [
        Row(str(case), getattr(real, part), getattr(simulated(case, real.thousand_us), part))
        for case, real in zip(CASES, found, strict=True)
    ]


def keep(program: Path) -> None:
    """Measures anew."""
    cases.keep(KEPT, measure(program))


def text() -> str:
    """What the page says of spinning."""
    found = cases.kept(KEPT, Found)
    return section(
        "Spinning before sleeping",
        [
            "Threads of a C program (`lab/ampsched_lab/programs/spins.c`), one on each core, wait at a barrier or for a mutex; each "
            "spins for so long before it sleeps. The same in the workload language with `spin_us`. What 1,000 "
            "multiplications take is the program's own figure, nothing else is set; the machine costs nothing. Half of "
            f"unequal cores are 2.5 times as fast as the others; turns of the machine are {QUANTUM_US:g} us.",
            "Time on cores of all threads together, in ms:",
            rows_table("case", rows(found, "cpu_ms"), ",.1f"),
            "How long all took, in ms:",
            rows_table("case", rows(found, "all_ms"), ",.1f"),
        ],
    )
