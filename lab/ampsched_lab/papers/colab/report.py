"""Runs `reproduce colab` and says what came out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial
from typing import TYPE_CHECKING

from ampsched.comparison import Comparison
from ampsched.execution import Progress
from ampsched.markdown import ALL_BUT_FIRST, table
from ampsched_lab.papers.colab import runs
from ampsched_lab.papers.colab.conditions import CONDITIONS, names_under
from ampsched_lab.papers.colab.figures import AGAINST_LINUX, FIGURES, METRIC_NAMES
from ampsched_lab.papers.colab.measurements import MEASUREMENTS, Facts, Tested, cases_of_claims
from ampsched_lab.papers.colab.setup import BASELINE, GROUPS, STAND_INS, cases_of
from ampsched_lab.shared import conditions
from ampsched_lab.shared.claims.dependence import dependences
from ampsched_lab.shared.claims.judging import Claim
from ampsched_lab.shared.claims.reading import read_claims
from ampsched_lab.shared.normalised import LINUX, Metric, Normalised, everywhere
from ampsched_lab.shared.plots import Figure
from ampsched_lab.shared.progress import shares
from ampsched_lab.shared.reproduction import Findings, Repeats, Reproduction, seeds_text

if TYPE_CHECKING:
    import polars

PARTS = (*runs.NEEDS, conditions.PART)
CLAIMS = read_claims(
    __package__,
    MEASUREMENTS,
    [fact.name for each in (Facts, Tested) for fact in fields(each)],
    ("claims.toml", "claims-draft.toml"),
)


def reproduce(
    only: str | None = None,
    jobs: int = 0,
    repeats: int = 3,
    progress: Progress | None = None,
    max_repeats: int | None = None,
) -> Reproduction:
    """Runs the COLAB experiment, or what one figure needs, and judges the claims.

    Args:
        only: One of `PARTS`, or None for all.
        jobs: Processors to use; 0: all. Results do not depend on it.
        repeats: Seeds.
        progress: Called with the number of finished simulations and of all.
        max_repeats: Seeds at most where an interval is too wide; `repeats` if None.
    """
    how_many = Repeats.of(repeats, max_repeats)
    found = Findings("colab", only, how_many, CLAIMS)
    exact: dict[str, Comparison] = {}
    predicted: dict[str, Comparison] = {}
    seeds: dict[str, int] = {}
    for family in runs.FAMILIES:
        if figures := [figure for figure in family if only in (None, figure)]:
            results, seeds[figures[0]] = _run(found, figures, jobs, how_many, progress)
            exact |= results[runs.EXACT]
            predicted |= results[runs.PREDICTED]
    facts = asdict(Facts.of([run for each in exact.values() for run in each.runs])) if exact else {}
    if only in (None, conditions.PART):
        facts |= _conditions(found, jobs, repeats, progress)
    parts = [part for part in runs.NEEDS if only in (None, part)]
    _parts(found, parts, exact, predicted, facts)
    count = sum(len(part.runs) for part in exact.values())
    how_much = f"{count} simulations, {seeds_text(seeds)}" if exact else f"seeds 1 to {repeats}"
    return found.reproduction(
        f": {how_much}, both core orders, speed-ups known exactly (oracle). "
        "Nothing was tuned to a claim; machines, programs and policies come from independent data (see the "
        "explanations of the core model, the program models and the limits).\n\nThe column *predicted* "
        "repeats all simulations with speed-ups that the shipped model predicts from simulated counters "
        "(`--factors predicted`; its training includes these programs' profiles); its mark is the verdict "
        "that it would have.",
    )


def _parts(
    found: Findings,
    parts: Sequence[str],
    exact: Mapping[str, Comparison],
    predicted: Mapping[str, Comparison],
    facts: Mapping[str, object],
) -> None:
    """Judges the claims of parts and draws their figures."""
    bars = []
    for part in parts:
        runs_of_part = _needed(exact, part)
        data = Normalised(runs_of_part, BASELINE.policy)
        others = {policy: Normalised(runs_of_part, policy) for policy in STAND_INS}
        again = Normalised(_needed(predicted, part), BASELINE.policy)
        found.judge(part, data, again, facts, others)
        if part == "summary":
            found.section("summary: Gains over other kernels", *_gains(data, others))
        if part in FIGURES:
            figure = FIGURES[part](data)
            found.section(f"{figure.name}: {figure.title}", found.draw(figure), *_tables(figure))
            bars += figure.records()
    if parts:
        found.frames["runs.parquet"] = partial(_frame, exact, Comparison.to_polars)
        found.frames["apps.parquet"] = partial(_frame, exact, Comparison.apps_to_polars)
    if bars:
        found.keep("figures", bars)


def _run(
    found: Findings, figures: Sequence[str], jobs: int, repeats: Repeats, progress: Progress | None
) -> tuple[runs.Results, int]:
    """What figures of the same runs need, and with how many seeds."""

    def run(seeds: range, claims: Sequence[Claim] | None) -> runs.Results:
        where = everywhere if claims is None else cases_of_claims(claims)
        return runs.run(figures, jobs, seeds, where, progress)

    def wide(results: runs.Results) -> list[Claim]:
        exact = results[runs.EXACT]
        data = {figure: Normalised(_needed(exact, figure), BASELINE.policy) for figure in figures}
        return [claim for figure in figures for claim in found.wide(figure, data[figure])]

    return repeats.until_narrow(run, runs.join, wide)


def _conditions(found: Findings, jobs: int, repeats: int, progress: Progress | None) -> dict[str, object]:
    """Judges all claims under each condition; returns what causes say of that."""
    steps = shares(progress, dict.fromkeys((each.name for each in CONDITIONS), 1))
    data: dict[str, dict[str, Normalised]] = {part: {} for part in runs.NEEDS}
    as_judged = None
    for condition in CONDITIONS:
        results = runs.run_under(condition, jobs, range(1, repeats + 1), steps[condition.name], as_judged)
        as_judged = as_judged or results
        for part in runs.NEEDS:
            data[part][condition.name] = Normalised(_needed(results, part), **names_under(condition))
    depend = [each for part in runs.NEEDS for each in dependences(CLAIMS.of(part), data[part])]
    how = f"All claims under {len(CONDITIONS) - 1} conditions, each with one thing changed, seeds 1 to {repeats}."
    tested = Tested.of(data["summary"], data["fig4"])
    found.section("conditions: What COLAB's gain hangs on", _ingredients(tested), _changes(data))
    found.depends(depend, how)
    return asdict(tested)


def _ingredients(tested: Tested) -> str:
    """How much of the gain is step 4 alone."""
    without = (1 + tested.no_pull) / (1 + tested.as_judged) * (1 + tested.against_rules) - 1
    first = (
        "**In simulation COLAB's whole gain is one rule.** "
        if tested.only_pull <= tested.as_judged
        else "**One rule is most of COLAB's gain in simulation.** "
        if tested.only_pull < tested.as_judged / 2
        else ""
    )
    return (
        f"{first}Step 4 of its Algorithm 1, an idle big core that pulls a running thread from a little one, added to "
        f"`cfs`, changes H_ANTT of the 26 workloads by {tested.only_pull:+.1%}, all of COLAB by {tested.as_judged:+.1%}; "
        f"on single programs {tested.single_only_pull:+.1%} and {tested.single:+.1%}. COLAB without that rule changes them "
        f"by {tested.no_pull:+.1%} ({without:+.1%} against `cfs`) and {tested.single_no_pull:+.1%}. Changes are against "
        "Linux 3.16 if nothing else is said."
    )


def _changes(data: Mapping[str, Mapping[str, Normalised]]) -> str:
    """The means that sum an experiment up, by condition."""
    columns: dict[str, tuple[str, str, str, Metric]] = {
        "single, against Linux": ("fig4", "single", LINUX, "h_antt"),
        "mixes, against Linux": ("summary", "all", LINUX, "h_antt"),
        "the same, H_STP": ("summary", "all", LINUX, "h_stp"),
        "mixes, against WASH": ("summary", "all", "wash", "h_antt"),
        "draft, against Linux": ("tex", "draft", LINUX, "h_antt"),
    }
    rows = []
    for condition in CONDITIONS:
        cells = []
        for part, cases, against, metric in columns.values():
            change = data[part][condition.name].change(cases_of(cases), "colab", against, metric)
            cells.append(f"{100 * change.mean:+.1f} [{100 * change.low:+.1f}, {100 * change.high:+.1f}]")
        rows.append([condition.name, *cells])
    return table(["COLAB, %", *columns], rows, ALL_BUT_FIRST)


def _needed(results: Mapping[str, Comparison], part: str) -> Comparison:
    """All runs of a part."""
    needed = [results[name] for name in runs.NEEDS[part]]
    all_runs = tuple(run for each in needed for run in each.runs)
    return Comparison(needed[0].policies, all_runs, needed[0].notes)


def _gains(results: Normalised, others: Mapping[str, Normalised]) -> list[str]:
    """What WASH and COLAB change against every policy in Linux's place: a table per metric."""
    against = {BASELINE.policy: results} | dict(others)
    blocks = [
        "Mean changes over the 26 workloads on all machines. Linux 4.14 knows the cores' capacities; 7.3 also places "
        "threads by them, and moves those that need more to big cores."
    ]
    for metric, name in METRIC_NAMES.items():
        rows = []
        for policy, each in against.items():
            changes = (each.change(GROUPS["all"], own, LINUX, metric) for own in AGAINST_LINUX)
            rows.append([f"`{policy}`", *(f"{100 * change.mean:+.1f} %" for change in changes)])
        blocks.append(
            f"**{name.split(' / ')[0]}**\n\n{table(['against', *AGAINST_LINUX], rows, ALL_BUT_FIRST)}"
        )
    return blocks


def _frame(
    parts: Mapping[str, Comparison], of: "Callable[[Comparison], polars.DataFrame]"
) -> "polars.DataFrame":
    """The runs or the applications of all parts as one data frame."""
    import polars

    return polars.concat([of(part).with_columns(part=polars.lit(name)) for name, part in parts.items()])


def _tables(figure: Figure) -> list[str]:
    """The values of a figure: a table per row of its panels."""
    return [f"**{row}**\n\n{_table(figure, row)}" for row in figure.rows]


def _table(figure: Figure, row: str) -> str:
    bars = {(bar.panel, bar.group, bar.policy): bar.value for bar in figure.rows[row]}
    policies = dict.fromkeys(bar.policy for bar in figure.rows[row])
    columns = [(panel, policy) for panel in figure.panels() for policy in policies]
    rows = []
    for group in dict.fromkeys(bar.group for bar in figure.rows[row]):
        values = (bars.get((panel, group, policy)) for panel, policy in columns)
        rows.append([group, *("" if value is None else f"{value.mean:.3f}" for value in values)])
    return table(["", *(f"{panel} {policy}" for panel, policy in columns)], rows, ALL_BUT_FIRST)
