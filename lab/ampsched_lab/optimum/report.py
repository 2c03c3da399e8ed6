"""Measures the cases and writes the report; the same cases give the same report.

``python -m ampsched_lab.optimum FOLDER`` writes ``report.md`` and ``cases.json`` there.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

from ampsched import api
from ampsched.limits import Objective
from ampsched.markdown import page
from ampsched_lab.optimum.cases import MACHINES, MIXES, SEEDS, TARGET_MS, Case, cases
from ampsched_lab.shared import plots
from ampsched_lab.shared.summary import opening

POLICIES = ("cfs", "linux", "wash", "colab", "max-fair", "abreast", "abreast:lengths=1")
OBJECTIVES: tuple[Objective, ...] = ("h_antt", "makespan")
NAMES: dict[Objective, str] = {"h_antt": "mean H_ANTT", "makespan": "makespan"}
FIGURE = "distances.svg"
SIMULATIONS = 4_000
TOLERANCE = 0.01


@dataclass(frozen=True, slots=True)
class Row:
    """One objective of one case."""

    machine: str
    workload: str
    about: str
    objective: Objective
    limit: float
    best: float
    proven: bool
    simulations: int
    policies: dict[str, float]
    """Value by policy, mean of both core orders."""

    @property
    def reference(self) -> float:
        """What policies are compared with: the best schedule that anybody has found."""
        return min(self.best, *self.policies.values())

    def distance(self, policy: str) -> float:
        """How far a policy is from the best schedule known: 0.1 is 10 % worse."""
        return self.policies[policy] / self.reference - 1.0


def measured(case: Case) -> list[Row]:
    """Both objectives of a case."""
    summary = api.compare(case.machine, case.workload, POLICIES, repeat=1).summary()
    rows = []
    for objective in OBJECTIVES:
        found = api.optimum(
            case.machine,
            case.workload,
            objective=objective,
            simulations=SIMULATIONS,
            tolerance=TOLERANCE,
        )
        values = {
            row.policy: row.h_antt.mean if objective == "h_antt" else row.makespan_ms.mean * 1e6
            for row in summary
        }
        rows.append(
            Row(
                case.machine.name,
                case.workload.name,
                case.about,
                objective,
                found.limit,
                found.value,
                found.proven,
                found.simulations,
                values,
            )
        )
    return rows


def write(folder: Path, progress: Callable[[str], object] = print) -> list[Row]:
    """Measures all cases and writes the report into a folder."""
    rows = []
    for case in cases():
        progress(f"{case.workload.name} on {case.machine.name}")
        rows += measured(case)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cases.json").write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    write_page(folder, rows)
    return rows


def read(folder: Path) -> list[Row]:
    """What was measured before."""
    return [Row(**fields) for fields in json.loads((folder / "cases.json").read_text())]


def write_page(folder: Path, rows: list[Row]) -> None:
    """The page and its figure."""
    (folder / "report.md").write_text(text(rows))
    series = {
        name: {
            policy: 100 * mean for policy, mean in means([row for row in rows if row.objective == objective])
        }
        for objective, name in NAMES.items()
    }
    label = "% above the best schedule known, mean of all cases"
    plots.dots(folder / FIGURE, "How far policies are from the optimum", series, label, limits=(0,))


def text(rows: list[Row]) -> str:
    """The report in Markdown."""
    antt = [row for row in rows if row.objective == "h_antt"]
    span = [row for row in rows if row.objective == "makespan"]
    parts = [
        "# The optimum of small cases",
        _answer(antt, span),
        "## How it is done",
        f"The cases follow from a rule that was committed before they were run: {len(SEEDS)} generated mixes of two "
        f"programs (with equal rounds of work, a lock or a barrier in every second one) and {len(MIXES)} mixes of "
        f"Prop-SP's first table, shortened to {TARGET_MS:g} ms; each on {' and '.join(MACHINES)}. "
        f"The search takes at most {SIMULATIONS:,} simulations for each figure and need not find what is better by "
        f"less than {100 * TOLERANCE:g} %. *Limit* is the bound of any schedule, *best* the best schedule that the "
        "search found, with a star if it is proven for schedules that change at events and at a 16th of the "
        "limit. Policies have the true speed-ups; percentages say how much worse they are than the best schedule "
        "that search or policies found, mean of both core orders. "
        "[How it is done](../../explanation/limit-of-policies.md).",
        "## H_ANTT",
        *_table(antt, 1.0, "H_ANTT"),
        "## Makespan",
        *_table(span, 1e6, "ms"),
        "## Again",
        "`python -m ampsched_lab.optimum docs/reports/optimum` writes this page and `cases.json`, with the "
        "same figures.",
    ]
    return page(*parts)


def _answer(antt: list[Row], span: list[Row]) -> str:
    """The report's first sentences."""

    def listed(rows: list[Row]) -> str:
        return ", ".join(f"{policy} {100 * mean:.1f} %" for policy, mean in means(rows))

    gaps = [row.reference / row.limit - 1.0 for row in antt]
    proven = sum(row.proven for row in (*antt, *span))
    return opening(
        [
            f"**On {len(antt)} small cases the mean H_ANTT is above that of the best schedule known by {listed(antt)}.**",
            f"The makespan is above it by {listed(span)}.",
            f"The best schedules are {100 * fmean(gaps):.1f} % above the limit of H_ANTT on average, at most "
            f"{100 * max(gaps):.1f} %, so no policy can be better than them by more than that, and {proven} of "
            f"{len(antt) + len(span)} searches are proven.",
        ],
        FIGURE,
        "Distance of each policy from the best schedule known, for mean H_ANTT and makespan",
    )


def means(rows: list[Row]) -> list[tuple[str, float]]:
    """Mean distance of each policy, the least first."""
    names = [policy for policy in POLICIES if all(policy in row.policies for row in rows)]
    found = [(policy, fmean(row.distance(policy) for row in rows)) for policy in names]
    return sorted(found, key=lambda pair: pair[1])


def _table(rows: list[Row], scale: float, unit: str) -> list[str]:
    heads = ["case", "threads", f"limit ({unit})", "best", *(f"{policy} %" for policy in POLICIES)]
    lines = [f"| {' | '.join(heads)} |", "|---|---|" + "---:|" * (len(heads) - 2)]
    for row in rows:
        cells = [
            f"{row.workload} on {row.machine}",
            row.about,
            f"{row.limit / scale:.3f}",
            f"{row.best / scale:.3f}{'*' if row.proven else ''}",
            *(f"{100 * row.distance(policy):.1f}" for policy in POLICIES),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    means = [f"{100 * fmean(row.distance(policy) for row in rows):.1f}" for policy in POLICIES]
    lines.append(f"| mean | | | | {' | '.join(means)} |")
    return ["\n".join(lines)]
