"""Under which conditions the claims of Chronaki et al. are judged again: one thing is changed at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ampsched.execution import Progress
from ampsched_lab.papers.chronaki import runs
from ampsched_lab.papers.chronaki.runs import Results
from ampsched_lab.papers.chronaki.setup import (
    GTS,
    LINUX,
    LOOP_DYNAMIC,
    LOOPS,
    METHODS,
    PROGRAMS,
    SPINNING,
    TASK,
    WITH_LOOPS,
    Cores,
    Method,
)
from ampsched_lab.shared.conditions import (
    ACTIVE,
    AS_JUDGED,
    BUSY,
    HANDOVER,
    IDLE,
    LENGTH_300,
    LENGTH_1000,
    SPIN,
    TOGETHER,
    XU3_SHARING,
    Condition,
)
from ampsched_lab.shared.constants import with_other_constants
from ampsched_lab.shared.progress import shares

SMALLER_RATIOS = Condition("net speed-ups of Table 1 a third less", net_ratio=2 / 3)
GREATER_RATIOS = Condition("net speed-ups of Table 1 a third more", net_ratio=4 / 3)
RUN_AGAIN = (
    *(IDLE, BUSY, SPIN, ACTIVE, XU3_SHARING, TOGETHER, HANDOVER),
    *(LENGTH_300, LENGTH_1000, SMALLER_RATIOS, GREATER_RATIOS),
)
"""The ratios are stated by program, so that a clock of the little cores would change no speed."""
FED_BY_CATS = Condition("CATS feeds the workers", task_policies={TASK.variant: "cats"})
CHUNKS_OF_2 = Condition(
    "dynamic loops fetch two iterations at once", task_policies={LOOP_DYNAMIC.variant: "loop-dynamic:chunk=2"}
)
"""The paper does not say how many; OpenMP's default is one."""
INSTEAD = (FED_BY_CATS, CHUNKS_OF_2, *with_other_constants("chronaki", {GTS.policy: GTS.name}))
"""What changes some methods only; the others do what they do as judged."""


def of_programs(
    results: Results, idle_w: Mapping[Cores, float], jobs: int, repeats: int, progress: Progress | None
) -> dict[str, Results]:
    """Results of the part "programs" by the name of the condition.

    Args:
        results: As judged.
        idle_w: What a cluster without cores draws if it idles.
        jobs: Processors to use; 0: all. Results do not depend on it.
        repeats: Seeds of what is run anew.
        progress: Called with the number of finished simulations and of all.
    """
    return _again(results, METHODS, PROGRAMS, jobs, repeats, progress) | {
        "GTS never moves a thread down": results.instead(GTS, SPINNING),
        "the fair class in GTS's place": results.instead(GTS, LINUX),
        "clusters without cores idle": results.with_idle_cluster(idle_w),
    }


def of_loops(results: Results, jobs: int, repeats: int, progress: Progress | None) -> dict[str, Results]:
    """The same of the part "loops"."""
    return _again(results, (*LOOPS, GTS), WITH_LOOPS, jobs, repeats, progress)


def _again(
    results: Results,
    methods: Sequence[Method],
    programs: Sequence[str],
    jobs: int,
    repeats: int,
    progress: Progress | None,
) -> dict[str, Results]:
    steps = shares(progress, dict.fromkeys((each.name for each in (*RUN_AGAIN, *INSTEAD)), 1))
    seeds = range(1, repeats + 1)
    again = {
        each.name: runs.run(jobs, seeds, methods, programs, steps[each.name], each) for each in RUN_AGAIN
    }
    known = Results([row for row in results.rows if row.seed in seeds])
    for each in INSTEAD:
        if changed := changed_methods(methods, each):
            found = runs.run(jobs, seeds, changed, programs, steps[each.name], each)
            again[each.name] = known.replaced(found)
    return {AS_JUDGED.name: results, **again}


def changed_methods(methods: Sequence[Method], condition: Condition) -> list[Method]:
    """The methods that a condition changes, as they are under it."""
    return [
        replace(each, policy=str(condition.policies.get(each.name, each.policy)))
        for each in methods
        if each.name in condition.policies or each.variant in condition.task_policies
    ]
