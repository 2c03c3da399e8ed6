"""Runs `reproduce prop-sp` and says what came out."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ampsched.analytic import TABLE_1
from ampsched.execution import Progress
from ampsched.markdown import ALL_BUT_FIRST, table
from ampsched.statistics import Estimate, estimate
from ampsched_lab.papers.prop_sp import figures, runs, setup
from ampsched_lab.papers.prop_sp.figures import Tradeoff, figure_1, simulated_figure_1
from ampsched_lab.papers.prop_sp.measurements import MEASUREMENTS, Model
from ampsched_lab.papers.prop_sp.runs import Results, model_errors
from ampsched_lab.papers.prop_sp.setup import IDEAL, MODEL_POLICIES, SMALL
from ampsched_lab.shared.claims.dependence import dependences
from ampsched_lab.shared.claims.judging import Claim
from ampsched_lab.shared.claims.reading import read_claims
from ampsched_lab.shared.conditions import PART
from ampsched_lab.shared.plots import Bar, Figure
from ampsched_lab.shared.reproduction import Findings, Repeats, Reproduction, seeds_text

PARTS = (*runs.PARTS, PART)
CLAIMS = read_claims(__package__, MEASUREMENTS)
PREDICTED_TEXT = (
    "The column *predicted* repeats the simulations of Figure 2 under CAMP, HSP and dynamic Prop-SP with "
    "speed-ups that the shipped model predicts from simulated counters (`--factors predicted`; its training "
    "includes these programs' profiles); its mark is the verdict that it would have. The other policies ask "
    "for no speed-ups while programs run, or know them beforehand. A program states the ratio of its speeds "
    "where no measured profile gives the published class; a stated ratio slows slow cores without leaving a "
    "trace in a fast core's counters, so predictions are worse here than for programs that run as profiled."
)
METRICS = {"asp": "ASP (higher is better)", "unfairness": "unfairness (lower is fairer)"}


def reproduce(
    only: str | None = None,
    jobs: int = 0,
    repeats: int = 3,
    progress: Progress | None = None,
    max_repeats: int | None = None,
) -> Reproduction:
    """Runs the Prop-SP experiment, or a part of it, and judges the claims.

    Args:
        only: One of `PARTS`, or None for all.
        jobs: Processors to use; 0: all. Results do not depend on it.
        repeats: Seeds.
        progress: Called with the number of finished simulations and of all.
        max_repeats: Seeds at most where an interval is too wide; `repeats` if None.
    """
    how_many = Repeats.of(repeats, max_repeats)
    found = Findings("prop-sp", only, how_many, CLAIMS)
    parts, seeds = {}, {}
    for name in runs.PARTS:
        if only in (None, name):
            parts[name], seeds[name] = _run(found, name, jobs, how_many, progress)
    again = _again(parts.get("fig2"), jobs)
    _sections(found, parts, again)
    if only in (None, PART):
        _conditions(found, parts.get("fig2"), again, jobs, repeats, progress)
    if parts:
        found.keep("runs", _run_records(parts))
    count = sum(len(part.rows) for part in parts.values())
    introduction = (
        f": the analytical model, and {count} simulated mixes, {seeds_text(seeds or {'': repeats})}, with every program "
        "alone for comparison. Programs restart until each has ended three times; a program's time is the "
        "geometric mean of its completion times. Nothing was tuned to a claim: classes of programs and "
        "formulas are the paper's, what it leaves open is stated with the policies and programs."
    )
    if "fig2" in parts:
        introduction += f"\n\n{PREDICTED_TEXT}"
    return found.reproduction(introduction, "reproduced")


def _sections(found: Findings, parts: Mapping[str, Results], again: Results | None) -> None:
    """Judges the claims of parts and shows what came out."""
    if "fig1" in parts:
        _model(found, parts["fig1"])
    if again:
        _mixes(found, parts["fig2"], again)
    if "pareto" in parts:
        _pareto(found, parts["pareto"])
    if "priorities" in parts:
        _priorities(found, parts["priorities"])


def _again(results: Results | None, jobs: int) -> Results | None:
    """Figure 2 with predicted speed-ups, if it was run."""
    return runs.with_predictions(runs.PARTS["fig2"], results, jobs) if results else None


def _conditions(
    found: Findings,
    results: Results | None,
    again: Results | None,
    jobs: int,
    repeats: int,
    progress: Progress | None,
) -> None:
    """Judges the claims of Figure 2 under each condition; what is not known is run first."""
    as_judged = results or runs.PARTS["fig2"].run(jobs, range(1, repeats + 1), progress)
    predicted = again or _again(as_judged, jobs)
    assert predicted is not None, "there are results"
    under = runs.under_conditions(as_judged, predicted, jobs, repeats)
    found.depends(
        dependences(CLAIMS.of("fig2"), under),
        f"The claims about simulations under {len(under) - 1} conditions, each with one thing changed, seeds 1 to "
        f"{repeats}.",
    )


def _run(
    found: Findings, name: str, jobs: int, repeats: Repeats, progress: Progress | None
) -> tuple[Results, int]:
    """A part's results, and with how many seeds; only the claims of Figure 2 have intervals."""

    def wide(results: Results) -> list[Claim]:
        return found.wide(name, results) if name == "fig2" else []

    part = runs.PARTS[name]
    return repeats.until_narrow(lambda seeds, _: part.run(jobs, seeds, progress), Results.and_of, wide)


def _run_records(parts: Mapping[str, Results]) -> list[dict[str, Any]]:
    return [
        {
            "part": name,
            "machine": row.machine,
            "mix": row.mix,
            "policy": row.policy,
            "seed": row.seed,
            "asp": row.asp,
            "unfairness": row.unfairness,
            "slowdowns": list(row.slowdowns),
        }
        for name, part in parts.items()
        for row in part.rows
    ]


def _simulated(results: Results) -> Tradeoff:
    """Figure 1 with simulated values for the policies that can be simulated."""
    values = {}
    for model, policy in MODEL_POLICIES.items():
        for mix in TABLE_1:
            rows = results.of(mix, policy, SMALL)
            values[mix, model] = (
                estimate([row.asp for row in rows]).mean,
                estimate([row.unfairness for row in rows]).mean,
            )
    return simulated_figure_1(values)


def _model(found: Findings, results: Results) -> None:
    found.judge("fig1", Model.with_simulation(results))
    heads = [f"{policy}, {costs}" for policy in MODEL_POLICIES for costs in ("no costs", "costs")]
    found.section(
        "fig1: The analytical model, computed and simulated",
        found.picture(
            "fig1", "Throughput over fairness of Table 1's mixes, computed", partial(figures.draw, figure_1())
        ),
        found.picture(
            "fig1-simulated",
            "Simulated; the two optima are computed",
            partial(figures.draw, _simulated(results)),
        ),
        "Greatest error of a program's slowdown / error of ASP against the model, on the machine without "
        "costs and with costs:",
        table(["", *heads], _errors(results), ALL_BUT_FIRST),
    )


def _errors(results: Results) -> list[list[str]]:
    errors = {machine: model_errors(results, machine) for machine in (IDEAL, SMALL)}
    rows = []
    for mix in TABLE_1:
        both = (errors[machine][mix, policy] for policy in MODEL_POLICIES for machine in (IDEAL, SMALL))
        rows.append([mix, *(f"{100 * slowdown:.2f} / {100 * asp:.2f} %" for slowdown, asp in both)])
    return rows


def _figure_2(results: Results) -> list[Figure]:
    """Figure 2: ASP and unfairness of every mix under the paper's schedulers."""
    figures = []
    groups = {"fig2-single": setup.SINGLE_THREADED, "fig2-multi": setup.MULTITHREADED}
    titles = {
        "fig2-single": "Single-threaded mixes on 2FC-2SC",
        "fig2-multi": "Multithreaded mixes on 2FC-10SC",
    }
    for name, mixes in groups.items():
        rows = {
            label: tuple(
                Bar("", mix, policy, getattr(results, metric)(mix, policy))
                for mix in mixes
                for policy in setup.POLICIES
            )
            for metric, label in METRICS.items()
        }
        figures.append(Figure(name, titles[name], rows, None))
    return figures


def _mixes(found: Findings, results: Results, again: Results) -> None:
    found.judge("fig2", results, again)
    blocks = []
    for figure in _figure_2(results):
        blocks.append(found.draw(figure))
        for label, bars in figure.rows.items():
            blocks.append(f"**{figure.title}: {label}**\n\n{_grid(setup.POLICIES, bars)}")
    found.section("fig2: The mixes of Table 3", *blocks)


def _grid(columns: Sequence[str], bars: Sequence[Bar]) -> str:
    values = {(bar.group, bar.policy): bar.value for bar in bars}
    rows = (
        [group, *(f"{values[group, each].mean:.3f}" for each in columns)]
        for group in dict.fromkeys(bar.group for bar in bars)
    )
    return table(["", *columns], rows, ALL_BUT_FIRST)


def _pareto_points(results: Results) -> dict[str, tuple[Estimate, Estimate]]:
    """Mean ASP and unfairness of each policy over all mixes."""
    mixes = tuple(setup.MIXES)
    return {
        policy: (results.mean_asp(mixes, policy), results.mean_unfairness(mixes, policy))
        for policy in runs.PARTS["pareto"].policies
    }


def _pareto(found: Findings, results: Results) -> None:
    points = _pareto_points(results)
    front = runs.pareto_front({policy: (asp.mean, fair.mean) for policy, (asp, fair) in points.items()})
    rows = (
        [f"**{policy}**" if policy in front else policy, _plain(asp), _plain(fair)]
        for policy, (asp, fair) in sorted(points.items(), key=lambda item: -item[1][0].mean)
    )
    found.section(
        "pareto: All policies between throughput and fairness",
        found.picture(
            "pareto", "Mean ASP and unfairness of every policy", partial(figures.draw_pareto, points)
        ),
        "Means over the mixes of Table 3 (ASP arithmetic, as it may be near 0; unfairness geometric). "
        f"`linux` is the newest generation, `{setup.LINUX}` that of the paper's year. "
        "Bold: no other policy is better in both.",
        table(["policy", "ASP", "unfairness"], rows, ALL_BUT_FIRST),
    )


def _plain(value: Estimate) -> str:
    interval = f" [{value.low:.3f}, {value.high:.3f}]" if value.n > 1 else ""
    return f"{value.mean:.3f}{interval}"


def _priorities(found: Findings, results: Results) -> None:
    rows = [
        [f"`{policy}`", *(_pairs(results.of(f"nice-{nice}", policy)) for nice in setup.NICE)]
        for policy in setup.PRIORITY_POLICIES
    ]
    found.section(
        "priorities: Static weights",
        "Four programs with speed-up 2.3 on 2FC-2SC, two of which have the nice value of the column: mean "
        "slowdown of those of nice 0 / of the others. Linux's weights have no effect where every thread has "
        "a core for itself.",
        table(["policy", *(f"nice {nice}" for nice in setup.NICE)], rows, ALL_BUT_FIRST),
    )


def _pairs(rows: Sequence[runs.Row]) -> str:
    """Mean slowdown of the first two programs / of the others."""
    first = estimate([sum(row.slowdowns[:2]) / 2 for row in rows]).mean
    second = estimate([sum(row.slowdowns[2:]) / 2 for row in rows]).mean
    return f"{first:.3f} / {second:.3f}"
