"""ampsched: which scheduling policy is best for these programs on this processor with unequal cores?

Example:
    >>> import ampsched
    >>> result = ampsched.compare("2B2S", "sync-1", ["cfs", "static"])
    >>> result.to_polars().height
    4
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ampsched._core import (
        Event,
        InputError,
        Machine,
        Pick,
        Plan,
        TaskGraph,
        ThreadStats,
        Topology,
        View,
        Workload,
    )
    from ampsched.alone import Reference
    from ampsched.api import compare, explain, limit, optimum, references, simulate, timeline
    from ampsched.catalog import Catalog
    from ampsched.comparison import Comparison, SummaryRow
    from ampsched.execution import Run
    from ampsched.explaining import Explanation, Told
    from ampsched.factors import Factors
    from ampsched.governor import GovernorInfo, Governors, governors
    from ampsched.limits import Distance, Limit, Optimum, Stay
    from ampsched.metrics import MixMetrics
    from ampsched.noise import Noise, noise_names
    from ampsched.outcome_parts import (
        AppOutcome,
        ClassOutcome,
        ClusterEnergy,
        ClusterOutcome,
        CoreOutcome,
        Counts,
        ThreadOutcome,
        Totals,
    )
    from ampsched.overhead import Overhead
    from ampsched.policy import Policy, PolicyInfo, policies
    from ampsched.results import Outcome
    from ampsched.rules import Rules
    from ampsched.statistics import Estimate
    from ampsched.sweeps.optimise import Optimised, optimise
    from ampsched.sweeps.sweep import sweep
    from ampsched.tasks import (
        TaskPolicyInfo,
        TaskProgramInfo,
        TaskSchedule,
        read_recording,
        read_task_graph,
        run_tasks,
        task_graph,
        task_policies,
        task_programs,
        write_task_graph,
    )
    from ampsched.timeliness import Distribution, Periods
    from ampsched.turns import Timeline, Turn

__version__ = "0.1.0"

__all__ = [
    "AppOutcome",
    "Catalog",
    "ClassOutcome",
    "ClusterEnergy",
    "ClusterOutcome",
    "Comparison",
    "CoreOutcome",
    "Counts",
    "Distance",
    "Distribution",
    "Estimate",
    "Event",
    "Explanation",
    "Factors",
    "GovernorInfo",
    "Governors",
    "InputError",
    "Limit",
    "Machine",
    "MixMetrics",
    "Noise",
    "Optimised",
    "Optimum",
    "Outcome",
    "Overhead",
    "Periods",
    "Pick",
    "Plan",
    "Policy",
    "PolicyInfo",
    "Reference",
    "Rules",
    "Run",
    "Stay",
    "SummaryRow",
    "TaskGraph",
    "TaskPolicyInfo",
    "TaskProgramInfo",
    "TaskSchedule",
    "ThreadOutcome",
    "ThreadStats",
    "Timeline",
    "Told",
    "Topology",
    "Totals",
    "Turn",
    "View",
    "Workload",
    "compare",
    "explain",
    "governors",
    "limit",
    "noise_names",
    "optimise",
    "optimum",
    "policies",
    "read_recording",
    "read_task_graph",
    "references",
    "run_tasks",
    "simulate",
    "sweep",
    "task_graph",
    "task_policies",
    "task_programs",
    "timeline",
    "write_task_graph",
]

_HOMES = {
    "_core": "Event InputError Machine Pick Plan TaskGraph ThreadStats Topology View Workload",
    "alone": "Reference",
    "api": "compare explain limit optimum references simulate timeline",
    "catalog": "Catalog",
    "comparison": "Comparison SummaryRow",
    "execution": "Run",
    "explaining": "Explanation Told",
    "factors": "Factors",
    "governor": "GovernorInfo Governors governors",
    "limits": "Distance Limit Optimum Stay",
    "metrics": "MixMetrics",
    "noise": "Noise noise_names",
    "outcome_parts": "AppOutcome ClassOutcome ClusterEnergy ClusterOutcome "
    "CoreOutcome Counts ThreadOutcome Totals",
    "overhead": "Overhead",
    "policy": "Policy PolicyInfo policies",
    "results": "Outcome",
    "rules": "Rules",
    "statistics": "Estimate",
    "sweeps.optimise": "Optimised optimise",
    "sweeps.sweep": "sweep",
    "tasks": "TaskPolicyInfo TaskProgramInfo TaskSchedule read_recording read_task_graph "
    "run_tasks task_graph task_policies task_programs write_task_graph",
    "timeliness": "Distribution Periods",
    "turns": "Timeline Turn",
}
"""Modules with what this package has of them: a name's module is imported when the name is first used."""


def __getattr__(name: str) -> object:
    for module, names in _HOMES.items():
        if name in names.split():
            found: object = getattr(importlib.import_module(f"ampsched.{module}"), name)
            globals()[name] = found
            return found
    try:
        return importlib.import_module(f"ampsched.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"ampsched.{name}":
            raise
    raise AttributeError(f"module 'ampsched' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
