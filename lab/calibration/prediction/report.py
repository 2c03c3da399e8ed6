"""Writes docs/reports/prediction (how well speed-ups can be predicted from counters) and the shipped models.

make -C lab prediction
"""

import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

import core_parts
import degradation
import numpy as np
import opening
from choice import PARTS, RECIPES, best, nested
from colab_table2 import Table2, evaluate
from gem5_rows import gem5_rows

from ampsched.catalog import Catalog
from ampsched.markdown import wrapped
from ampsched.training.costs import STALLS
from ampsched.training.model import Method, default_method, fit
from ampsched.training.pmu import pmu_of
from ampsched.training.rows import Array, TrainingSet, clean
from ampsched.training.simulated import COUNTER_CV, NOISY_WINDOWS, Noise, simulated_rows
from ampsched.training.train import model_file, train, write_model
from ampsched.training.validation import (
    BASELINES,
    LABEL_SIGMA,
    Errors,
    Predict,
    errors,
    learning_curve,
    leave_one_out,
    trained,
)

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "docs/reports/prediction"
MODELS = ROOT / "python/ampsched/data/models"
TEMPLATE = Path(__file__).parent / "template.md"
# A machine of each kind of core pair that is shipped, and the name of its model.
MACHINES = {
    "2B2S": "cortex-a57-cortex-a53",
    "exynos5422": "cortex-a15-cortex-a7",
    "hybrid-8P16E": "golden-cove-gracemont",
    "opteron-2FC-2SC": "opteron-2600-opteron-800",
    "tensor": "cortex-x1-cortex-a55",
}
NOISES = {
    "exact": None,
    f"each count errs by {COUNTER_CV:.0%}": Noise(COUNTER_CV),
    "and all counters take turns": Noise(COUNTER_CV, turns=True),
}
# The goals that were set before the first run.
GOAL_MEAN, GOAL_LABELS = 0.10, 0.85


def row(name: str, found: Errors) -> str:
    (low, high), (label_low, label_high) = found.mean_interval, found.labels_interval
    return (
        f"| {name} | {100 * found.mean:.1f} % [{100 * low:.1f}, {100 * high:.1f}] | {100 * found.worst:.0f} % | {found.r2:.2f} "
        f"| {found.rank:.2f} | {100 * found.labels:.0f} % [{100 * label_low:.0f}, {100 * label_high:.0f}] | {100 * found.loss:.1f} % |"
    )


HEAD = [
    "| | mean error | worst | R² | rank corr. | labels right | loss |",
    "|---|---|---|---|---|---|---|",
]


def default_of(rows: TrainingSet) -> Method:
    return default_method(is_big=rows.is_big)


def predictors(rows: TrainingSet, methods: Sequence[Method]) -> dict[str, Predict]:
    pmu = pmu_of(rows.core_type)
    return {str(method): trained(method, pmu) for method in methods} | BASELINES


def left_out(rows: TrainingSet, predict: Predict) -> Errors:
    return errors(rows, leave_one_out(rows, predict))


def own_rows(rows: TrainingSet, method: Method) -> Errors:
    """A method tested on the rows that it was fitted to: what its form can express."""
    return errors(rows, fit(rows, method, pmu_of(rows.core_type)).predict(rows))


@cache
def sets_of(machine: str, noise: Noise | None) -> list[TrainingSet]:
    found = Catalog.shipped().machine(machine)
    pmus = {core_type: pmu_of(core_type) for _, core_type, *_ in found.clusters}
    return [clean(rows) for rows in simulated_rows(found, pmus, noise=noise)]


def core_name(rows: TrainingSet) -> str:
    return f"{rows.core_type} at {rows.mhz:.0f} MHz" if rows.mhz else rows.core_type


OTHER_CYCLES, BOTH = "the other core's cycles without stalls", "both"
Met = dict[str, tuple[bool, bool]]
"""By the core whose counters are read: whether the goals of the error and of the labels are met."""


def met(found: Errors) -> tuple[bool, bool]:
    return found.mean <= GOAL_MEAN, found.labels >= GOAL_LABELS


def goals() -> tuple[list[str], dict[str, Met]]:
    """The default methods on every kind of core with every kind of noise, and which goals they meet."""
    lines = [
        "| counters of | counts | mean error | labels right | loss | goal |",
        "|---|---|---|---|---|---|",
    ]
    outcomes: dict[str, Met] = {name: {} for name in NOISES}
    for machine in MACHINES:
        for name, noise in NOISES.items():
            for rows in sets_of(machine, noise):
                found = left_out(rows, trained(default_of(rows), pmu_of(rows.core_type)))
                (low, high), (label_low, label_high) = found.mean_interval, found.labels_interval
                outcomes[name][core_name(rows)] = met(found)
                means, marks = (
                    f"{what} {'✓' if is_met else '✗'}"
                    for what, is_met in zip(("error", "labels"), met(found), strict=True)
                )
                lines.append(
                    f"| {core_name(rows)} ({machine}) | {name} | {100 * found.mean:.1f} % [{100 * low:.1f}, {100 * high:.1f}] "
                    f"| {100 * found.labels:.0f} % [{100 * label_low:.0f}, {100 * label_high:.0f}] "
                    f"| {100 * found.loss:.1f} % | {means}, {marks} |"
                )
    return lines, outcomes


GOALS = {
    (True, True): "both goals",
    (True, False): "the error alone",
    (False, True): "the labels alone",
    (False, False): "neither",
}


def outcome(outcomes: dict[str, Met]) -> str:
    """Which goals are met from which cores, and which verdicts noise changes."""
    exact, *noisy = outcomes.items()
    parts = []
    for state, what in GOALS.items():
        if cores := [core for core, its in exact[1].items() if its == state]:
            parts.append(f"{what} from the counters of {listed(cores)}")
    text = f"Exact counters meet {'; '.join(parts)}."
    for name, its in noisy:
        changed = [f"{core} ({GOALS[its[core]]})" for core in its if its[core] != exact[1][core]]
        text += f" Where {name.removeprefix('and ')}, {'these differ: ' + listed(changed) if changed else 'nothing differs'}."
    return text


def listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none"


def told() -> dict[str, str]:
    """Which goals all counters meet if they are told what shows on the other core only."""
    found = defaultdict(list)
    for machine in MACHINES:
        for rows in sets_of(machine, None):
            accounts = trained(Method("cycles", "costs", None), pmu_of(rows.core_type))
            for name, more in informed(rows, machine).items():
                found[name].append(f"{core_name(rows)} ({GOALS[met(left_out(more, accounts))]})")
    return {"told_cycles": listed(found[OTHER_CYCLES]), "told_both": listed(found[BOTH])}


def hybrid() -> dict[str, str]:
    """Between what speed-ups of the hybrid pair lie, and how many labels its own rows give right."""
    rows = sets_of("hybrid-8P16E", None)[0]
    own = own_rows(rows, replace(default_of(rows), counters=None))
    return {
        "hybrid_low": f"{rows.speedup.min():.1f}",
        "hybrid_high": f"{rows.speedup.max():.1f}",
        "hybrid_own": f"{own.labels:.0%}".replace("%", " %"),
    }


def choices() -> list[str]:
    """Every recipe on every kind of core, and the choice among them by nested cross-validation."""
    lines = []
    for what, is_big in (("big", True), ("little", False)):
        sets = [rows for machine in MACHINES for rows in sets_of(machine, None) if rows.is_big == is_big]
        if best(sets) != default_method(is_big=is_big):
            raise ValueError(
                f"the default for {what} cores is {default_of(sets[0])}, chosen was {best(sets)}"
            )
        names = [f"{rows.core_type} {rows.mhz:.0f}" for rows in sets]
        lines += [
            f"### From {what} cores",
            "",
            f"| mean error / labels right, % | {' | '.join(names)} | mean |",
        ]
        lines += [f"|---|{'---|' * len(sets)}---|"]
        for recipe in RECIPES:
            found = [left_out(rows, trained(recipe, pmu_of(rows.core_type))) for rows in sets]
            lines.append(overview(str(recipe), found))
        outcome = nested(sets)
        found = [errors(rows, values) for rows, values in zip(sets, outcome.predicted, strict=True)]
        lines.append(overview("**nested choice**", found))
        counts = "; ".join(f"{name}: {count}" for name, count in outcome.chosen.most_common())
        lines += ["", f"Chosen with one program left out: {counts}.", ""]
    return lines


def overview(name: str, found: Sequence[Errors]) -> str:
    cells = [f"{100 * each.mean:.1f} / {100 * each.labels:.0f}" for each in found]
    mean = f"{100 * np.mean([each.mean for each in found]):.1f} / {100 * np.mean([each.labels for each in found]):.0f}"
    return f"| {name} | {' | '.join(cells)} | {mean} |"


def simulated_tables(machine: str) -> list[str]:
    lines = []
    for rows in sets_of(machine, None):
        method = default_of(rows)
        every = replace(method, counters=None)
        lines += [f"### {machine}: from the counters of the {core_name(rows)}", "", *HEAD]
        lines += [
            row(name, left_out(rows, predict)) for name, predict in predictors(rows, [method, every]).items()
        ]
        lines.append(row("all counters, on its own rows", own_rows(rows, every)))
        accounts = trained(Method("cycles", "costs", None), pmu_of(rows.core_type))
        for name, more in informed(rows, machine).items():
            lines.append(row(f"all counters and {name}", left_out(more, accounts)))
        chosen = fit(rows, method, pmu_of(rows.core_type)).features
        lines += ["", f"The default model reads {', '.join(map(str, chosen))}.", ""]
    return lines


def informed(rows: TrainingSet, machine: str) -> dict[str, TrainingSet]:
    """Rows that also know what no counter here shows: what the program does on the core at the other end.

    None for a kind of core in between, whose ratio to both ends is no sum over cycles.
    """
    sets = sets_of(machine, None)
    fastest, slowest = max(sets, key=mean_speed), min(sets, key=mean_speed)
    if rows is not fastest and rows is not slowest:
        return {}
    other = slowest if rows is fastest else fastest
    if other.programs != rows.programs:
        raise ValueError(f"{machine}: the cores' rows differ")
    stalls = sum(other.column(name) for name in other.counters if name in STALLS)
    per = rows.column("instructions") / other.column("instructions")
    busy, misses = per * (other.column("cycles") - stalls), per * other.column("l2_misses")
    return {
        OTHER_CYCLES: with_counter(rows, "other_busy_cycles", busy),
        "the misses of its L2": with_counter(rows, "other_l2_misses", misses),
        BOTH: with_counter(with_counter(rows, "other_busy_cycles", busy), "other_l2_misses", misses),
    }


def mean_speed(rows: TrainingSet) -> float:
    """Instructions per microsecond."""
    return float(np.mean((rows.mhz or 0.0) * rows.column("instructions") / rows.column("cycles")))


def with_counter(rows: TrainingSet, name: str, counts: Array) -> TrainingSet:
    return replace(rows, counters=(*rows.counters, name), counts=np.column_stack([rows.counts, counts]))


def gem5_tables() -> list[str]:
    sets, families = gem5_rows()
    lines = []
    for raw in sets:
        rows = clean(raw)
        if len(rows) != len(raw):
            raise ValueError("a gem5 pair was lost in cleaning")
        lines += [f"### gem5: from the counters of the {'big' if rows.is_big else 'little'} core", ""]
        usable = len(rows.counters)
        lines += [
            f"{len(rows)} pairs, {len(set(rows.groups))} groups of programs, {usable} complete counters.",
            "",
        ]
        for what, grouped in {"program": rows, "core pair": rows.with_groups(families)}.items():
            lines += [f"One {what} left out at a time:", "", *HEAD]
            lines += [
                row(name, left_out(grouped, predict))
                for name, predict in predictors(grouped, RECIPES).items()
            ]
            lines += [""]
        chosen = fit(rows, default_of(rows), pmu_of(rows.core_type)).features
        lines += [f"The default model reads {', '.join(map(str, chosen))}.", ""]
    return lines


def curves() -> list[str]:
    """Mean error by the number of programs in training."""
    sets = {f"{core_name(rows)} (2B2S)": rows for rows in sets_of("2B2S", None)}
    sets |= {rows.core_type: clean(rows) for rows in gem5_rows()[0]}
    sizes = (8, 12, 16, 20, 24, 30)
    lines = [f"| counters of | {' | '.join(map(str, sizes))} |", f"|---|{'---|' * len(sizes)}"]
    for name, rows in sets.items():
        fitting = [size for size in sizes if size < len(set(rows.groups))]
        found = dict(learning_curve(rows, trained(default_of(rows), pmu_of(rows.core_type)), fitting))
        cells = [f"{100 * found[size]:.0f} %" if size in found else "–" for size in sizes]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def near_threshold(rows: TrainingSet) -> int:
    """Programs that are nearer to a label's threshold than the mean error of the default method."""
    mean, sigma = rows.speedup.mean(), rows.speedup.std()
    distance = np.min([np.abs(rows.speedup - mean - sign * LABEL_SIGMA * sigma) for sign in (-1, 1)], axis=0)
    error = left_out(rows, trained(default_of(rows), pmu_of(rows.core_type))).mean
    return int((distance / rows.speedup < error).sum())


def table2(found: Table2) -> list[str]:
    lines = [
        "| counter | coefficient | greatest count per instruction | greatest term |",
        "|---|---|---|---|",
    ]
    rows = (
        f"| `{name}` | {factor:g} | {most:.3g} | {term:.2g} |" for name, factor, most, term in found.terms
    )
    return [*lines, *rows]


def report() -> str:
    profiles, printed = sets_of("2B2S", None)[0], evaluate()
    table, outcomes = goals()
    parts = {
        "goals": table,
        "choices": choices(),
        "simulated": [line for machine in MACHINES for line in simulated_tables(machine)],
        "gem5": gem5_tables(),
        "curves": curves(),
        "table2": table2(printed),
    }
    numbers = {
        "opening": opening.answer(opening.rows_of(table), 100 * GOAL_MEAN, 100 * GOAL_LABELS),
        "big": default_method(is_big=True),
        "little": default_method(is_big=False),
        "recipes": len(RECIPES),
        "parts": PARTS,
        "outcome": outcome(outcomes),
        **told(),
        **hybrid(),
        "near": near_threshold(sets_of("hybrid-8P16E", None)[0]),
        **{name: f"{100 * value:.1f} %" for name, value in core_parts.errors().items()},
        "goal_mean": f"{100 * GOAL_MEAN:.0f} %",
        "goal_labels": f"{100 * GOAL_LABELS:.0f} %",
        "profiles": len(profiles),
        "programs": len(set(profiles.groups)),
        "windows": NOISY_WINDOWS,
        "gem5_groups": len(set(gem5_rows()[0][0].groups)),
    }
    texts = {name: "\n".join(lines).strip() for name, lines in parts.items()}
    return wrapped(TEMPLATE.read_text(encoding="utf-8").format(**texts, **numbers, **asdict(printed)))


def write_models() -> None:
    """The shipped models, of the same rows and the default methods."""
    for machine, name in MACHINES.items():
        found = Catalog.shipped().machine(machine)
        pmus = {core_type: pmu_of(core_type) for _, core_type, *_ in found.clusters}
        models = train(simulated_rows(found, pmus))
        write_model(MODELS / f"{name}.json", model_file(name, models, {"source": f"machine {machine}"}))


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    write_models()
    text = report()
    (FOLDER / "report.md").write_text(text, encoding="utf-8")
    opening.draw(opening.rows_of(text.splitlines()), 100 * GOAL_MEAN, FOLDER / opening.FIGURE)
    degradation.write(FOLDER)
    print(f"written: {FOLDER}", file=sys.stderr)


if __name__ == "__main__":
    main()
