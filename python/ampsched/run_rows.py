"""Runs of a comparison as rows of tables."""

from collections.abc import Sequence
from typing import Any

from ampsched import timeliness
from ampsched.decisive import missed
from ampsched.execution import Run


def has_periods(runs: Sequence[Run]) -> bool:
    """Whether a thread has periods."""
    return any(app.periods for run in runs for app in run.outcome.apps)


def keys_of(run: Run) -> dict[str, Any]:
    """Which run it is."""
    return {
        "machine": run.machine,
        "workload": run.workload,
        "policy": run.policy,
        "core_order": run.core_order,
        "seed": run.seed,
    }


def run_row(run: Run) -> dict[str, Any]:
    """A run as a row: which it is, and what was measured; times in ns."""
    metrics, outcome, totals = run.metrics, run.outcome, run.outcome.totals
    return {
        **keys_of(run),
        "h_antt": metrics.h_antt,
        "h_stp": metrics.h_stp,
        "h_antt_limit": run.limit and run.limit.h_antt,
        "h_stp_limit": run.limit and run.limit.h_stp,
        "makespan_limit_ns": run.limit and run.limit.makespan_ns,
        "antt": metrics.antt,
        "stp": metrics.stp,
        "uniformity": metrics.uniformity,
        "uniformity_progress": metrics.uniformity_progress,
        "unfairness": metrics.unfairness,
        "min_fairness": metrics.min_fairness,
        "makespan_ns": outcome.makespan_ns,
        "utilisation": totals.utilisation,
        "switches": outcome.counts.switches,
        "migrations": outcome.counts.migrations,
        "preemptions": outcome.counts.preemptions,
        "instructions": totals.instructions,
        "ready_ns_max": totals.ready_ns_max,
        "ready_ns": totals.ready_ns,
        "blocked_ns": totals.blocked_ns,
        **{f"latency_{name}": getattr(outcome.latency, name) for name in timeliness.PERCENTILES},
        "missed": missed(run) if has_periods([run]) else None,
        "energy_j": totals.energy_j,
        "edp_js": outcome.edp_js,
        "peak_c": outcome.peak_c,
    }


def app_rows(run: Run, *, keys: bool = True) -> list[dict[str, Any]]:
    """A row for each of a run's applications, with which run it is unless `keys` says otherwise; times in ns."""
    return [
        {
            **(keys_of(run) if keys else {}),
            "app": app.name,
            "program": app.program,
            "threads": app.threads,
            "turnaround_ns": app.turnaround_ns,
            "alone_ns": alone_ns,
            "h_ntt": h_ntt,
            "timed": timed,
            **{f"latency_{name}": getattr(app.latency, name) for name in timeliness.PERCENTILES},
            "missed": app.periods.missed if app.periods else None,
        }
        for app, alone_ns, h_ntt, timed in zip(
            run.outcome.apps, run.alone_ns, run.metrics.h_ntt, run.timed, strict=True
        )
    ]
