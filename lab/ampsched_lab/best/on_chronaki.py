"""Chronaki's programs: how near threads under the operating system alone come to the same work as tasks."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean

from ampsched.markdown import ALL_BUT_FIRST, table
from ampsched.report.words import percent
from ampsched_lab.best.aims import Judged
from ampsched_lab.best.choice import POLICY
from ampsched_lab.best.variants import ablations
from ampsched_lab.papers.chronaki import runs
from ampsched_lab.papers.chronaki.cats import MIXED
from ampsched_lab.papers.chronaki.setup import (
    GTS,
    LINUX,
    LOOP_DYNAMIC,
    LOOP_STATIC,
    PROGRAMS,
    STATIC,
    TASK,
    Cores,
    Method,
)

VERSIONS = {
    "threads": STATIC.variant,
    "loop static": LOOP_STATIC.variant,
    "loop dynamic": LOOP_DYNAMIC.variant,
}
"""What has no tasks: the nine programs with threads, and four with loops."""
THREADS = "threads"
PINNED = STATIC.policy
POLICIES = (PINNED, LINUX.policy, "linux", GTS.policy, POLICY)
"""Linux is that of the paper's year, and the newest."""
SEEDS = range(1, 4)


@dataclass(frozen=True, slots=True)
class Row:
    """A version of a program under a policy on so many cores of each kind: mean over seeds."""

    program: str
    version: str
    policy: str
    big: int
    little: int
    time_s: float


def _methods() -> dict[tuple[str, str], Method]:
    """By version and policy."""
    pairs = [(version, policy) for version in VERSIONS for policy in POLICIES]
    pairs += [(THREADS, policy) for policy in ablations().values()]
    methods = {
        (version, policy): Method(f"{version}, {policy}", VERSIONS[version], policy)
        for version, policy in pairs
    }
    return {(TASK.name, TASK.policy): TASK} | methods


def measure(
    jobs: int,
    programs: Sequence[str] = PROGRAMS,
    configurations: Sequence[Cores] = MIXED,
    seeds: range = SEEDS,
) -> tuple[Row, ...]:
    """Runs programs in all versions where cores are unequal.

    Args:
        jobs: Processors to use; 0: all. Results do not depend on it.
        programs: Programs.
        configurations: Cores that are on.
        seeds: Seeds; they change the pools of two programs only.
    """
    methods = _methods()
    found = runs.run(jobs, seeds, list(methods.values()), programs, None, configurations=configurations)
    times: dict[tuple[str, str, int, int], list[float]] = {}
    for row in found.rows:
        times.setdefault((row.program, row.method, row.big, row.little), []).append(row.time_s)
    keys = {method.name: key for key, method in methods.items()}
    return tuple(
        Row(program, *keys[method], big, little, fmean(values))
        for (program, method, big, little), values in times.items()
    )


class Results:
    """Rows, and times over those of tasks."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = {(row.program, row.version, row.policy, Cores(row.big, row.little)): row for row in rows}
        self.programs = tuple(dict.fromkeys(row.program for row in rows))
        self.configurations = tuple(dict.fromkeys(Cores(row.big, row.little) for row in rows))

    def programs_of(self, version: str) -> list[str]:
        """The programs that have a version."""
        having = {program for program, each, _, _ in self._rows if each == version}
        return [program for program in self.programs if program in having]

    def gap(
        self,
        policy: str,
        programs: Iterable[str],
        version: str = THREADS,
        configurations: Sequence[Cores] = (),
    ) -> float:
        """By how much the time exceeds that of tasks: geometric mean; below 0 if it is shorter."""
        ratios = [
            self._rows[program, version, policy, cores].time_s
            / self._rows[program, TASK.name, TASK.policy, cores].time_s
            for program in programs
            for cores in configurations or self.configurations
        ]
        return geometric_mean(ratios) - 1.0

    def differs(self, policy: str) -> bool:
        """Whether threads take another time under a policy than under ours in any case."""
        return any(
            row.time_s != self._rows[program, version, POLICY, cores].time_s
            for (program, version, name, cores), row in self._rows.items()
            if (version, name) == (THREADS, policy)
        )

    def closer(self) -> list[str]:
        """The programs whose threads are closer to tasks under our policy than under GTS, or further ahead."""
        return [
            program
            for program in self.programs
            if self.gap(POLICY, [program]) < self.gap(GTS.policy, [program])
        ]

    def cases_closer(self) -> int:
        """In how many cases of a program on a configuration that is so."""
        return sum(
            self.gap(POLICY, [program], configurations=[cores])
            < self.gap(GTS.policy, [program], configurations=[cores])
            for program in self.programs
            for cores in self.configurations
        )


def judged(rows: Sequence[Row]) -> list[Judged]:
    """The aim."""
    found = Results(rows)
    closer = found.closer()
    missed = [program for program in found.programs if program not in closer]
    less = f" (not: {', '.join(missed)})" if missed else ""
    cases = len(found.programs) * len(found.configurations)
    return [
        Judged(
            "Chronaki's programs under the operating system alone: closer to tasks than GTS, on all nine",
            f"on {len(closer)} of {len(found.programs)} programs{less}, in "
            f"{found.cases_closer()} of {cases} cases; mean time of threads against tasks "
            f"{percent(found.gap(POLICY, found.programs))}, under GTS {percent(found.gap(GTS.policy, found.programs))}",
            not missed,
        )
    ]


def section(rows: Sequence[Row]) -> list[str]:
    """Blocks of the report."""
    found = Results(rows)
    without = {name: policy for name, policy in ablations().items() if found.differs(policy)}
    idle = ", ".join(name for name in ablations() if name not in without)
    ahead = [program for program in found.programs if found.gap(POLICY, [program]) <= 0]
    worst = max(found.programs, key=lambda program: found.gap(POLICY, [program]))
    dearest = max(without, key=lambda name: found.gap(without[name], found.programs))
    heads = [*(f"`{policy}`" for policy in POLICIES), *(f"without {name}" for name in without)]
    return [
        "## Chronaki's programs without tasks",
        f"Threads are at least as fast as tasks for {len(ahead)} of {len(found.programs)} programs; "
        f"{worst} stays furthest behind, {percent(found.gap(POLICY, [worst]))}. "
        f"Most is lost without *{dearest}*: {percent(found.gap(without[dearest], found.programs))} in the place of "
        f"{percent(found.gap(POLICY, found.programs))}; for a program alone, {idle} change nothing.",
        f"**Time of threads against that of tasks, mean over {', '.join(map(str, found.configurations))} cores; "
        f"`{PINNED}` pins each thread**",
        table(["program", *heads], _programs(found, (*POLICIES, *without.values())), ALL_BUT_FIRST),
        "**The same by configuration, mean over the programs**",
        table(["cores", *(f"`{policy}`" for policy in POLICIES)], _configurations(found), ALL_BUT_FIRST),
        "**OpenMP's loops against tasks**",
        table(["program", "", *(f"`{policy}`" for policy in POLICIES)], _loops(found), slice(2, None)),
    ]


def _programs(found: Results, policies: Sequence[str]) -> Iterator[list[str]]:
    for program in found.programs:
        yield [program, *(percent(found.gap(policy, [program])) for policy in policies)]
    yield ["mean", *(percent(found.gap(policy, found.programs)) for policy in policies)]


def _configurations(found: Results) -> Iterator[list[str]]:
    for cores in found.configurations:
        gaps = (found.gap(policy, found.programs, configurations=[cores]) for policy in POLICIES)
        yield [str(cores), *map(percent, gaps)]


def _loops(found: Results) -> Iterator[list[str]]:
    for version in VERSIONS:
        for program in found.programs_of(version) if version != THREADS else ():
            yield [
                program,
                version,
                *(percent(found.gap(policy, [program], version)) for policy in POLICIES),
            ]
