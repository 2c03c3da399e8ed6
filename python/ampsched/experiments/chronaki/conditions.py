"""Under which conditions the claims of Chronaki et al. are judged again: one thing is changed at a time."""

from collections.abc import Mapping

from ampsched.execution import Progress
from ampsched.experiments.chronaki import runs
from ampsched.experiments.chronaki.runs import Results
from ampsched.experiments.chronaki.setup import (
    GTS,
    LINUX,
    LOOPS,
    METHODS,
    PROGRAMS,
    SPINNING,
    WITH_LOOPS,
    Cores,
)
from ampsched.experiments.conditions import (
    ACTIVE,
    AS_JUDGED,
    BUSY,
    HANDOVER,
    IDLE,
    SPIN,
    TOGETHER,
    XU3_SHARING,
)
from ampsched.experiments.progress import shares

RUN_AGAIN = (IDLE, BUSY, SPIN, ACTIVE, XU3_SHARING, TOGETHER, HANDOVER)


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
    steps = shares(progress, dict.fromkeys((each.name for each in RUN_AGAIN), 1))
    seeds = range(1, repeats + 1)
    return {
        AS_JUDGED.name: results,
        **{each.name: runs.run(jobs, seeds, METHODS, PROGRAMS, steps[each.name], each) for each in RUN_AGAIN},
        "GTS never moves a thread down": results.instead(GTS, SPINNING),
        "the fair class in GTS's place": results.instead(GTS, LINUX),
        "clusters without cores idle": results.with_idle_cluster(idle_w),
    }


def of_loops(results: Results, jobs: int, repeats: int, progress: Progress | None) -> dict[str, Results]:
    """The same of the part "loops"."""
    steps = shares(progress, dict.fromkeys((each.name for each in RUN_AGAIN), 1))
    seeds = range(1, repeats + 1)
    again = {
        each.name: runs.run(jobs, seeds, (*LOOPS, GTS), WITH_LOOPS, steps[each.name], each)
        for each in RUN_AGAIN
    }
    return {AS_JUDGED.name: results, **again}
