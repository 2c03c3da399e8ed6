"""Wake-up latencies, where results have them: percentiles and histograms."""

import bisect
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from ampsched.report.along import NONE, Columns
from ampsched.report.page import Block, Cell, Chart, Head, Row, Section, Table
from ampsched.report.words import number
from ampsched.units import NS_PER_MS

Values = Mapping[str, Any]
PERCENTILES = {"p50_ns": "p50 ms", "p95_ns": "p95 ms", "p99_ns": "p99 ms", "max_ns": "max ms"}
"""Of a distribution of times, what tables show."""
BOUNDS_MS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Up to how long the classes of a histogram last; the last has no bound."""


def section(
    runs: Sequence[Values],
    histograms: Iterable[Values],
    policies: Sequence[str],
    columns: Columns = NONE,
) -> Section | None:
    """Latencies of a comparison; none if its runs don't have them.

    Args:
        runs: With machine, workload, policy and ``latency_p50_ns`` and so on.
        histograms: Rows of all programs' buckets: policy, thread (none: of the program), of, upper_ns, count.
        policies: Their order.
        columns: The parameters.
    """
    if not runs or not all(f"latency_{key}" in run for run in runs for key in PERCENTILES):
        return None
    groups: dict[tuple[str, str, str], list[Values]] = {}
    for run in runs:
        groups.setdefault((run["policy"], run["workload"], run["machine"]), []).append(run)
    rows = []
    for (policy, workload, machine), of in groups.items():
        means = [fmean(run[f"latency_{key}"] for run in of) / NS_PER_MS for key in PERCENTILES]
        named = Cell(columns.short("policy", policy)), Cell(columns.short_mix(workload, machine))
        rows.append(Row((*named, *columns.cells(of[0]), *(Cell(number(ms), ms) for ms in means)), policy))
    heads = (
        Head("policy", False),
        Head("workload", False),
        *columns.heads(),
        *map(Head, PERCENTILES.values()),
    )
    note = "From the wake-up of a thread until it gets a core, of all threads; means over runs."
    blocks: list[Block] = [Table("Wake-up latency", heads, tuple(rows), note)]
    counts = _counts(histograms)
    if counts:
        blocks.append(_histogram(counts, [policy for policy in policies if policy in counts]))
    return Section("Wake-up latency", tuple(blocks))


def _counts(histograms: Iterable[Values]) -> dict[str, list[int]]:
    """Wake-ups in each class, by policy."""
    found: dict[str, list[int]] = {}
    for row in histograms:
        if row["of"] == "latency" and row["thread"] is None:
            classes = found.setdefault(row["policy"], [0] * (len(BOUNDS_MS) + 1))
            classes[bisect.bisect_left(BOUNDS_MS, row["upper_ns"] / NS_PER_MS)] += row["count"]
    return found


def _histogram(counts: Mapping[str, Sequence[int]], policies: Sequence[str]) -> Chart:
    """Shares of wake-ups by latency."""
    used = [each for each in range(len(BOUNDS_MS) + 1) if any(counts[policy][each] for policy in policies)]
    shown = range(used[0], used[-1] + 1)
    bounds = [f"{bound:g}" for bound in BOUNDS_MS] + ["more"]
    shares = {
        policy: [100 * counts[policy][each] / sum(counts[policy]) for each in shown] for policy in policies
    }
    data = {
        "bounds": [bounds[each] for each in shown],
        "unit": "ms",
        "policies": list(policies),
        "series": [{"policy": policy, "shares": shares[policy]} for policy in policies],
    }
    rows = tuple(
        Row((Cell(bounds[each], each), *(Cell(number(shares[policy][place], 2)) for policy in policies)))
        for place, each in enumerate(shown)
    )
    table = Table(
        "Share of wake-ups", (Head("up to ms"), *(Head(f"{policy} %") for policy in policies)), rows
    )
    most = {policy: bounds[max(shown, key=lambda each: counts[policy][each])] for policy in policies}
    told = ", ".join(f"under {policy} most take up to {bound} ms" for policy, bound in most.items())
    return Chart(
        "histogram", "How long woken threads waited for a core", f"Wake-up latencies: {told}.", data, table
    )


def cells(values: Values) -> list[Cell]:
    """Percentiles of what has a latency; nothing if it has none."""
    latency = values.get("latency")
    return [Cell(number(latency[key] / NS_PER_MS), latency[key]) for key in PERCENTILES] if latency else []


def heads(values: Values) -> list[Head]:
    """The heads above these cells."""
    return [Head(f"latency {name}") for name in PERCENTILES.values()] if values.get("latency") else []
