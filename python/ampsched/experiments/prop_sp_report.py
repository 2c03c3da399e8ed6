"""Runs `reproduce prop-sp` and says what came out."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ampsched.analytic import TABLE_1
from ampsched.experiments import plots, prop_sp, prop_sp_claims, prop_sp_figures
from ampsched.experiments.claims import Claim, Result
from ampsched.experiments.colab_figures import Bar, Figure
from ampsched.experiments.prop_sp import IDEAL, MODEL_POLICIES, PARTS, SMALL, Results, model_errors
from ampsched.experiments.prop_sp_figures import Tradeoff, figure_1, simulated_figure_1
from ampsched.experiments.reproduction import Draw, Reproduction, command_of, frame_of_records
from ampsched.statistics import Estimate, estimate

if TYPE_CHECKING:
    pass

PREDICTED_TEXT = (
    "\n\nThe column *predicted* repeats the simulations of Figure 2 under CAMP, HSP and dynamic Prop-SP with speed-ups that the "
    "shipped model predicts from simulated counters (`--factors predicted`; its training includes these programs' profiles); its "
    "mark is the verdict that it would have. The other policies ask for no speed-ups while programs run, or know them beforehand. "
    "A program states the ratio of its speeds where no measured profile gives the published class; a stated ratio slows slow cores "
    "without leaving a trace in a fast core's counters, so predictions are worse here than for programs that run as profiled."
)
METRICS = {"asp": "ASP (higher is better)", "unfairness": "unfairness (lower is fairer)"}


def reproduce_prop_sp(
    only: str | None = None, jobs: int = 0, repeats: int = 3, progress: prop_sp.Progress | None = None
) -> Reproduction:
    """Runs the Prop-SP experiment, or a part of it, and judges the claims.

    Args:
        only: ``"fig1"``, ``"fig2"``, ``"pareto"``, ``"priorities"``, or None for all.
        jobs: Processors to use; 0: all. Results do not depend on it.
        repeats: Seeds.
        progress: Called with the number of finished simulations and of all.
    """
    parts = prop_sp.run(only, jobs, repeats, progress)
    claims: list[Claim] = []
    if "fig1" in parts:
        claims += prop_sp_claims.analytic()
        claims += prop_sp_claims.simulated_model(parts["fig1"])
    predicted: list[Result | None] = []
    if "fig2" in parts:
        again = prop_sp.with_predictions(PARTS["fig2"], parts["fig2"], jobs, repeats)
        predicted = [None] * len(claims) + [claim.measure() for claim in prop_sp_claims.mixes(again)]
        claims += prop_sp_claims.mixes(parts["fig2"])
    return Reproduction(
        title="Prop-SP (Euro-Par 2014 workshops), reproduced",
        introduction=_introduction(only, repeats, parts),
        rules=f"{prop_sp_claims.RULE}\n\n{prop_sp_claims.SIMULATED_RULE}",
        claims=tuple((claim, claim.measure()) for claim in claims),
        sections=tuple(SECTIONS[name](part) for name, part in parts.items()),
        figures=_figures(parts),
        frames={"runs.parquet": partial(frame_of_records, _run_records(parts))},
        predicted=tuple(predicted),
    )


def _introduction(only: str | None, repeats: int, parts: Mapping[str, Results]) -> str:
    runs = sum(len(part.rows) for part in parts.values())
    return (
        f"Made by `{command_of('prop-sp', only, repeats)}`: the analytical model, and {runs} simulated mixes, "
        f"seeds 1 to {repeats}, with every program alone for comparison. Programs restart until each has ended three times; "
        "a program's time is the geometric mean of its completion times. Nothing was tuned to a claim: classes of "
        "programs and formulas are the paper's, what it leaves open is stated with the policies and programs."
        + (PREDICTED_TEXT if "fig2" in parts else "")
    )


def _figures(parts: Mapping[str, Results]) -> dict[str, Draw]:
    found: dict[str, Draw] = {}
    if "fig1" in parts:
        found["fig1.svg"] = partial(prop_sp_figures.draw, figure_1())
        found["fig1-simulated.svg"] = partial(prop_sp_figures.draw, _simulated(parts["fig1"]))
    if "fig2" in parts:
        found |= {f"{figure.name}.svg": partial(plots.draw, figure) for figure in _figure_2(parts["fig2"])}
    if "pareto" in parts:
        found["pareto.svg"] = partial(prop_sp_figures.draw_pareto, _pareto_points(parts["pareto"]))
    return found


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


def _model_section(results: Results) -> str:
    lines = [
        "## fig1: The analytical model, computed and simulated",
        "",
        "![Analytical](fig1.svg)",
        "",
        "![Simulated; the two optima are computed](fig1-simulated.svg)",
        "",
        "Greatest error of a program's slowdown / error of ASP against the model, on the machine without costs and with costs:",
        "",
        "| | " + " | ".join(f"{policy}, no costs | {policy}, costs" for policy in MODEL_POLICIES) + " |",
        "|---|" + "---:|" * (2 * len(MODEL_POLICIES)),
    ]
    errors = {machine: model_errors(results, machine) for machine in (IDEAL, SMALL)}
    for mix in TABLE_1:
        cells = [
            f"{100 * slowdown:.2f} / {100 * asp:.2f} %"
            for policy in MODEL_POLICIES
            for slowdown, asp in (errors[machine][mix, policy] for machine in (IDEAL, SMALL))
        ]
        lines.append(f"| {mix} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _figure_2(results: Results) -> list[Figure]:
    """Figure 2: ASP and unfairness of every mix under the paper's schedulers."""
    figures = []
    groups = {"fig2-single": prop_sp.SINGLE_THREADED, "fig2-multi": prop_sp.MULTITHREADED}
    titles = {
        "fig2-single": "Single-threaded mixes on 2FC-2SC",
        "fig2-multi": "Multithreaded mixes on 2FC-10SC",
    }
    for name, mixes in groups.items():
        rows = {
            label: tuple(
                Bar("", mix, policy, getattr(results, metric)(mix, policy))
                for mix in mixes
                for policy in prop_sp.POLICIES
            )
            for metric, label in METRICS.items()
        }
        figures.append(Figure(name, titles[name], rows, None))
    return figures


def _mixes_section(results: Results) -> str:
    blocks = ["## fig2: The mixes of Table 3"]
    for figure in _figure_2(results):
        blocks.append(f"![{figure.title}]({figure.name}.svg)")
        for label, bars in figure.rows.items():
            blocks.append(_grid(f"**{figure.title}: {label}**", prop_sp.POLICIES, bars))
    return "\n\n".join(blocks)


def _grid(title: str, columns: tuple[str, ...], bars: tuple[Bar, ...]) -> str:
    values = {(bar.group, bar.policy): bar.value for bar in bars}
    lines = [title, "", "| | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    lines += [
        f"| {group} | " + " | ".join(f"{values[group, each].mean:.3f}" for each in columns) + " |"
        for group in dict.fromkeys(bar.group for bar in bars)
    ]
    return "\n".join(lines)


def _pareto_points(results: Results) -> dict[str, tuple[Estimate, Estimate]]:
    """Mean ASP and unfairness of each policy over all mixes."""
    mixes = tuple(prop_sp.MIXES)
    return {
        policy: (results.mean_asp(mixes, policy), results.mean_unfairness(mixes, policy))
        for policy in PARTS["pareto"].policies
    }


def _pareto_section(results: Results) -> str:
    points = _pareto_points(results)
    front = prop_sp.pareto_front({policy: (asp.mean, fair.mean) for policy, (asp, fair) in points.items()})
    lines = [
        "## pareto: All policies between throughput and fairness",
        "",
        "![Mean ASP and unfairness of every policy](pareto.svg)",
        "",
        "Means over the mixes of Table 3 (ASP arithmetic, as it may be near 0; unfairness geometric). "
        "Bold: no other policy is better in both.",
        "",
        "| policy | ASP | unfairness |",
        "|---|---:|---:|",
    ]
    for policy, (asp, fair) in sorted(points.items(), key=lambda item: -item[1][0].mean):
        name = f"**{policy}**" if policy in front else policy
        lines.append(f"| {name} | {_plain(asp)} | {_plain(fair)} |")
    return "\n".join(lines)


def _plain(value: Estimate) -> str:
    interval = f" [{value.low:.3f}, {value.high:.3f}]" if value.n > 1 else ""
    return f"{value.mean:.3f}{interval}"


def _priorities_section(results: Results) -> str:
    lines = [
        "## priorities: Static weights",
        "",
        "Four programs with speed-up 2.3 on 2FC-2SC, two of which have the nice value of the column: mean slowdown of those of "
        "nice 0 / of the others. "
        "CFS's weights have no effect where every thread has a core for itself.",
        "",
        "| policy | " + " | ".join(f"nice {nice}" for nice in prop_sp.NICE) + " |",
        "|---|" + "---:|" * len(prop_sp.NICE),
    ]
    for policy in prop_sp.PRIORITY_POLICIES:
        cells = []
        for nice in prop_sp.NICE:
            rows = results.of(f"nice-{nice}", policy)
            first = estimate([sum(row.slowdowns[:2]) / 2 for row in rows]).mean
            second = estimate([sum(row.slowdowns[2:]) / 2 for row in rows]).mean
            cells.append(f"{first:.3f} / {second:.3f}")
        lines.append(f"| `{policy}` | {' | '.join(cells)} |")
    return "\n".join(lines)


SECTIONS = {
    "fig1": _model_section,
    "fig2": _mixes_section,
    "pareto": _pareto_section,
    "priorities": _priorities_section,
}
