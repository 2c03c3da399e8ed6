"""Ablations of CATS, which the paper's runtime could use to feed the workers: each of its rules alone and removed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ampsched.execution import Progress
from ampsched.markdown import ALL_BUT_FIRST, table
from ampsched.metrics import geometric_mean
from ampsched.statistics import Estimate
from ampsched_lab.papers.chronaki import runs
from ampsched_lab.papers.chronaki.runs import Results
from ampsched_lab.papers.chronaki.setup import EIGHT, FOUR, PROGRAMS, TASK, Cores
from ampsched_lab.shared.conditions import AS_JUDGED
from ampsched_lab.shared.progress import shares

PART = "cats"


@dataclass(frozen=True, slots=True)
class Feeding:
    """What feeds the workers of the task versions."""

    policy: str
    rules: str
    """Which of CATS's rules that is."""


FIFO = Feeding("fifo", "none: the order of readiness (as judged)")
CATS = Feeding("cats", "all of CATS")
NO_PATHS = Feeding("cats:follow=0", "without following the last critical task's path")
BY_COST = Feeding("cats-cost", "paths measured in time, not in tasks")
FEEDINGS = (
    FIFO,
    Feeding("cats:apart=0", "alone: longest path first"),
    Feeding("cats:ordered=0", "alone: critical tasks to big workers"),
    CATS,
    NO_PATHS,
    Feeding("cats:strict=1", "an equally long path is not critical"),
    Feeding("cats:steal=1", "little workers take critical tasks, too"),
    BY_COST,
)
MIXED = (FOUR[1], *EIGHT[1:])
"""Where there are workers of both kinds."""
SHOWN = EIGHT[-1]


def run(
    jobs: int, seeds: range, progress: Progress | None = None, programs: Sequence[str] = PROGRAMS
) -> dict[str, Results]:
    """Results of the task versions by the policy that feeds their workers.

    Args:
        jobs: Processors to use; 0: all. Results do not depend on it.
        seeds: Seeds.
        progress: Called with the number of finished simulations and of all.
        programs: Programs.
    """
    steps = shares(progress, dict.fromkeys((each.policy for each in FEEDINGS), 1))

    def fed_by(policy: str) -> Results:
        condition = replace(AS_JUDGED, name=policy, task_policies={TASK.variant: policy})
        return runs.run(jobs, seeds, (TASK,), programs, steps[policy], condition, MIXED)

    return {each.policy: fed_by(each.policy) for each in FEEDINGS}


def change(found: Mapping[str, Results], policy: str, cores: Cores, programs: Sequence[str]) -> Estimate:
    """Change of time against the order of readiness: geometric mean over programs, interval over seeds."""

    def ratio(seed: int) -> Callable[[str], float]:
        ours, fifo = found[policy], found[FIFO.policy]
        return lambda program: (
            ours.row(program, TASK, cores, seed).time_s / fifo.row(program, TASK, cores, seed).time_s
        )

    return found[policy].over_seeds(lambda seed: geometric_mean(list(map(ratio(seed), programs))) - 1.0)


def summary(found: Mapping[str, Results]) -> str:
    """What the ablations say, in words."""

    def ends(policy: str) -> str:
        changes = [change(found, policy, cores, PROGRAMS).mean for cores in MIXED]
        return f"{min(changes):+.1%} to {max(changes):+.1%}"

    return (
        f"CATS changes the mean time by {ends(CATS.policy)}, without following paths by {ends(NO_PATHS.policy)}, with "
        f"paths measured in time by {ends(BY_COST.policy)}."
    )


def tables(found: Mapping[str, Results]) -> list[str]:
    """Blocks of the report: means by configuration, and programs on all cores."""
    means = (
        [each.rules, f"`{each.policy}`", *(_percent(found, each, cores, PROGRAMS) for cores in MIXED)]
        for each in FEEDINGS[1:]
    )
    programs = (
        [program, *(_percent(found, each, SHOWN, [program]) for each in FEEDINGS[1:])] for program in PROGRAMS
    )
    return [
        "**Change of time against the order of readiness, mean over the nine programs**",
        table(["rules of CATS", "task policy", *map(str, MIXED)], means, slice(2, None)),
        f"**The same by program, {SHOWN}**",
        table(["program", *(f"`{each.policy}`" for each in FEEDINGS[1:])], programs, ALL_BUT_FIRST),
    ]


def _percent(found: Mapping[str, Results], each: Feeding, cores: Cores, programs: Sequence[str]) -> str:
    value = change(found, each.policy, cores, programs).mean
    return f"{value:+.1%}".replace("-0.0%", "+0.0%").replace("%", " %")
