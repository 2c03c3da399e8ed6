"""Completion times alone, to which Prop-SP's metrics refer.

Prop-SP (Saez et al., Euro-Par 2014 workshops, sections 2 and 4) measures every program twice by itself: ``CT_fast`` on
the whole machine, with the distribution of fast-core time over its threads that suits it best, and ``CT_slow`` on the
slow cores only. Slowdown is CT_sched / CT_fast; ASP (`ampsched.metrics.asp`) compares with CT_slow.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ampsched._core import Machine, Workload
from ampsched.execution import BASELINE_POLICY, Progress, job_of, run_all
from ampsched.policy import PolicySpec
from ampsched.settings import AloneSettings, only

SCHEMES = ("prop-sp:even=0", "prop-sp:even=1")
"""The paper's two ways to share a program's credits: BusyFCs and Even."""
FAST_CORES = "fast cores"
"""Name of the third way to run alone: without slow cores."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Completion times of an application alone, in ns; geometric means if it was repeated."""

    app: str
    fast_ns: int
    """CT_fast: alone on the machine, the best of the ways to use it."""
    slow_ns: int
    """CT_slow: alone on the slow cores only."""
    best: str
    """How `fast_ns` was reached: a policy, or ``fast cores`` alone."""


def run_alone(
    machine: Machine,
    workload: Workload,
    settings: AloneSettings,
    *,
    schemes: Sequence[PolicySpec] = (),
    processes: int = 0,
    progress: Progress | None = None,
) -> list[Reference]:
    """Measures CT_fast and CT_slow of each application of a workload.

    CT_fast is the least of the times under each of the schemes on the whole machine, and under `cfs` on its fast cores
    alone: a program with a single thread has nothing to distribute, and spends its time on a fast core.

    Args:
        machine: The machine with its fast and slow cores.
        workload: The applications; when they start is left out.
        settings: How: seed and repetitions as in the mix give it the same random amounts. Policies cost nothing.
        schemes: Policies for CT_fast; by default Prop-SP's two distributions, `SCHEMES`.
        processes: Processors to use; 0: all.
        progress: Called with the number of finished simulations and of all.

    Raises:
        InputError: If an application cannot go on, or does not end within the limit.
    """
    settings = only(AloneSettings, settings)
    schemes = tuple(schemes) or tuple(map(PolicySpec.of, SCHEMES))
    baseline = PolicySpec.of(BASELINE_POLICY)
    fast, slow = machine.only_big(), machine.only_little()
    ways = [(fast, baseline), *((machine, scheme) for scheme in schemes), (slow, baseline)]
    names = [FAST_CORES, *(scheme.label for scheme in schemes)]
    workload = workload.renumbered(machine, machine)  # as much work where there are fast cores only
    alone = [workload.alone(app) for app in range(len(workload.apps))]
    jobs = [(job_of(settings, where, app, policy), policy) for app in alone for where, policy in ways]
    outcomes = iter(run_all(jobs, processes, progress))
    found = []
    for app in alone:
        *fast_ns, slow_ns = [next(outcomes).apps[0].turnaround_ns for _ in ways]
        best_ns, best = min(zip(fast_ns, names, strict=True), key=lambda pair: pair[0])
        found.append(Reference(app.name, best_ns, slow_ns, best))
    return found
