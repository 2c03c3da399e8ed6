"""The page of a comparison in simulation."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ampsched.comparison import SLOWDOWN, TURNAROUND, WORK_DONE, Decisive
from ampsched.parameters import AXES, Axis
from ampsched.report import along, timely, words
from ampsched.report.along import NONE, Columns
from ampsched.report.asked import Asked
from ampsched.report.page import Block, Cell, Chart, Facts, Head, Notes, Page, Row, Section, Table, Text
from ampsched.report.parts import machine_section, policies_section, repeat_section, timeline_chart
from ampsched.report.words import H_ANTT, MAKESPAN, WORK, Metric, listed, number, plural
from ampsched.uncertainty import MARGIN, NO_BASIS, ModelErrors, Verdict, judge, sentences

TIMELINES_MAX = 4
"""Workloads on machines of which runs are drawn: each has two figures."""
ANSWERS_MAX = 3
"""Curves whose answers are told at once."""
RUNS_MAX = 1000
"""Runs that are listed one by one."""

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Mix:
    """A workload on a machine: what is compared under each policy."""

    machine: str
    workload: str
    summary: tuple[Values, ...]
    """A row per policy."""
    runs: tuple[Values, ...]
    errors: ModelErrors | None = None
    """The model's own, if they were measured for such programs."""
    margin: float = MARGIN
    doubt: str = ""  # why there is no verdict, as the console tells it
    columns: Columns = NONE
    """The parameters of the comparison."""

    @property
    def name(self) -> str:
        """Such as ``sync-2 on 2B2S``."""
        return f"{self.workload} on {self.machine}"

    @property
    def short(self) -> str:
        """The same without what the columns say."""
        return self.columns.short_mix(self.workload, self.machine)

    def policy(self, row: Values) -> Cell:
        """The cell of a row's policy, without what the columns say."""
        return Cell(self.columns.short("policy", row["policy"]))

    @property
    def metric(self) -> Metric:
        """What decides: work done if a duration stops all programs, else their slowdown."""
        stopped = all(app["timed"] for run in self.runs for app in run["apps"])
        return WORK if stopped else H_ANTT

    @property
    def best(self) -> Values:
        """The row of the best policy."""
        pick = min if self.metric.lower_is_better else max
        return pick(self.summary, key=lambda row: row[self.metric.key]["mean"])

    @property
    def decisive(self) -> Decisive:
        """What decides, as the console tells it: the turnaround of a single program."""
        if self.metric is WORK:
            return WORK_DONE
        return TURNAROUND if len(self.runs[0]["apps"]) == 1 else SLOWDOWN

    @property
    def verdict(self) -> Verdict:
        """What may be said of the best policy against the first."""
        decisive = self.decisive
        draws = {row["policy"]: self._draws(row["policy"], decisive) for row in self.summary}
        return judge(draws, self.errors, more_is_better=decisive.more_is_better, margin=self.margin)

    def _draws(self, policy: str, decisive: Decisive) -> list[float]:
        """What decides, of each seed, in ascending order of seeds: the mean over core orders."""
        found: dict[int, list[float]] = {}
        for run in self.runs:
            if run["policy"] == policy:
                value = run["makespan_ns"] / 1e6 if decisive is TURNAROUND else run[self.metric.key]
                found.setdefault(run["seed"], []).append(value)
        return [fmean(found[seed]) for seed in sorted(found)]


def page(values: Values, asked: Asked, histograms: Sequence[Values] = ()) -> Page:
    """The page of a comparison.

    Args:
        values: Those of `Comparison.to_dict`.
        asked: What it came from.
        histograms: Buckets of wake-up latencies, see `timely.section`.
    """
    mixes = _mixes(values)
    policies = list(values["policies"])
    answer, certainty = _answer_along(values, mixes) or _answer(mixes, policies)
    machines = list(dict.fromkeys(mix.machine for mix in mixes))
    sections = [
        machine_section(asked, machines),
        _programs(mixes, policies),
        policies_section(policies),
        _timelines(mixes, asked),
        timely.section(values["runs"], histograms, policies, Columns.of(values)),
        _energy(mixes),
        _details(mixes),
        _assumed(values, asked),
        _all_runs(values, Columns.of(values)),
        repeat_section(asked),
    ]
    return Page(
        f"{listed(policies)}: {_names(values, mixes)}",
        answer,
        _blocks(values, mixes, policies),
        tuple(section for section in sections if section),
        tuple(policies),
        certainty=certainty,
    )


def _blocks(values: Values, mixes: Sequence[Mix], policies: Sequence[str]) -> tuple[Block, ...]:
    """What supports the answer: curves along a parameter, the table, all side by side if they are no curves."""
    metrics = _drawn_metrics(mixes)
    if mixes[0].decisive is TURNAROUND:
        metrics.sort(key=lambda metric: metric is not MAKESPAN)
    curves = along.charts(values, metrics, policies)
    table = answer_table(mixes, policies[0])
    return (*curves, table) if _is_along(values, mixes) else (*curves, table, figure(mixes, policies))


def _is_along(values: Values, mixes: Sequence[Mix]) -> bool:
    """Whether curves have all that there is, each of several workloads or machines."""
    curves = values.get("curves", ())
    drawn = {
        (point["machine"], point["workload"])
        for curve in curves
        for line in curve["lines"]
        for point in line["points"]
    }
    return len(curves) < len(mixes) and len(drawn) == len(mixes)


def _answer_along(values: Values, mixes: Sequence[Mix]) -> tuple[str, str] | None:
    """The answer along a parameter, as the console tells it; none if there is no curve, or there are many."""
    curves = values.get("curves", ())
    if not _is_along(values, mixes) or len(curves) > ANSWERS_MAX:
        return None
    answers = [curve["told"][-1] if curve["told"] else "" for curve in curves]
    named = [
        f"{curve['name']}: {answer}" if len(curves) > 1 and not answer.startswith(curve["name"]) else answer
        for curve, answer in zip(curves, answers, strict=True)
        if answer
    ]
    others = [f"{line}." for curve in curves for line in curve["told"][:-1]]
    n = max(row["h_antt"]["n"] for row in values["summary"])
    text = (
        f"Simulated: {'; '.join(named)}." if named else f"Simulated: {listed([mix.name for mix in mixes])}."
    )
    return text, " ".join([*others, _seeds(n)])


def _mixes(values: Values) -> list[Mix]:
    keys = list(dict.fromkeys((row["machine"], row["workload"]) for row in values["summary"]))

    def of(rows: Sequence[Values], key: tuple[str, str]) -> tuple[Values, ...]:
        return tuple(row for row in rows if (row["machine"], row["workload"]) == key)

    # What earlier versions have saved has none.
    verdicts = {(row["machine"], row["workload"]): row for row in values.get("verdicts", ())}

    def judged(key: tuple[str, str]) -> dict[str, Any]:
        row = verdicts.get(key)
        if row is None:
            return {}
        errors = row["model_error"] and ModelErrors(tuple(row["model_error"]["change"]))
        doubt = next((line for line in row.get("text", ()) if line.startswith(NO_BASIS)), "")
        return {"errors": errors, "margin": row["margin"], "doubt": doubt}

    columns = Columns.of(values)
    return [
        Mix(*key, of(values["summary"], key), of(values["runs"], key), columns=columns, **judged(key))
        for key in keys
    ]


def _names(values: Values, mixes: Sequence[Mix]) -> str:
    if _is_along(values, mixes):
        return listed([f"{curve['name']} over {curve['head']}" for curve in values["curves"]])
    return mixes[0].name if len(mixes) == 1 else f"{len(mixes)} pairs of workload and machine"


def _answer(mixes: Sequence[Mix], policies: Sequence[str]) -> tuple[str, str]:
    """The answer in one sentence, and how sure it is."""
    return _answer_of_one(mixes[0], policies[0]) if len(mixes) == 1 else _answer_of_many(mixes, policies)


def _answer_of_one(mix: Mix, first: str) -> tuple[str, str]:
    best, metric = mix.best, mix.metric
    name = best["policy"]
    shown = words.interval(best[metric.key], metric.digits, metric.factor)
    if len(mix.summary) == 1:
        return f"Under {name}, {mix.name} has {metric.name} {shown}.", _seeds(best[metric.key]["n"])
    how, place = mix.decisive, (mix.workload, mix.machine)
    return words.told([mix.doubt] if mix.doubt else sentences(mix.verdict, *place, how.name, how.text))


def _answer_of_many(mixes: Sequence[Mix], policies: Sequence[str]) -> tuple[str, str]:
    first = policies[0]
    wins = {policy: sum(mix.best["policy"] == policy for mix in mixes) for policy in policies}
    means = {policy: _mean_change(mixes, policy) for policy in policies}
    best = min(policies, key=lambda policy: means[policy])
    count = f"{len(mixes)} pairs of workload and machine"
    if best == first:
        return f"Stay with {first}: over {count} no policy is better on average.", _win_text(wins, len(mixes))
    settled = sum(words.excludes_zero(_change(mix, best)) for mix in mixes)
    n = max(_change(mix, best)["n"] for mix in mixes)
    sure = (
        f"Chance alone (95 %) explains its change on {len(mixes) - settled} of {len(mixes)}, {plural(n, 'seed')}. "
        if n > 1
        else _seeds(1) + " "
    )
    verb = "better" if means[best] < 0 else "worse"
    mean = f"{number(100 * abs(means[best]), 1)} % {verb}"
    if n > 1 and not settled:
        text = f"Simulated: no policy is surely better than {first} on any of {count}; {best} is {mean} on average."
        return text, sure + _win_text(wins, len(mixes))
    text = f"Simulated: {best} is best on average over {count}: {number(100 * abs(means[best]), 1)} % {verb} than {first}"
    return f"{text} (H_ANTT, geometric mean).", sure + _win_text(wins, len(mixes))


def _change(mix: Mix, policy: str) -> Values:
    row = next(row for row in mix.summary if row["policy"] == policy)
    assert mix.metric.change is not None, "what decides has a change"
    found: Values = row[mix.metric.change]
    return found


def _mean_change(mixes: Sequence[Mix], policy: str) -> float:
    """Geometric mean of the changes, lower is better whatever the metric."""
    logs = []
    for mix in mixes:
        ratio = max(1e-12, 1 + _change(mix, policy)["mean"])
        logs.append(math.log(ratio) if mix.metric.lower_is_better else -math.log(ratio))
    return math.exp(fmean(logs)) - 1


def _win_text(wins: Mapping[str, int], of: int) -> str:
    told = [f"{name} {count}" for name, count in sorted(wins.items(), key=lambda item: -item[1]) if count]
    return f"Of {of} pairs, so many are won: {', '.join(told)}."


def _seeds(n: int) -> str:
    one = "One seed: how sure that is, is unknown. Repeat it with --repeat 5."
    return f"Means of {n} seeds with 95 % intervals." if n > 1 else one


def answer_table(mixes: Sequence[Mix], first: str) -> Table:
    """Policies by metric, with intervals, and how sure."""
    metrics, columns = _metrics(mixes), mixes[0].columns
    named = _named(mixes)
    heads = [Head("policy", False), *(Head(axis, False) for axis in named), *columns.heads()]
    for metric in metrics:
        heads.append(Head(metric.name, hint=metric.hint))
        heads += [Head("change", hint=f"Relative to {first}.")] if metric.change else []
        heads += (
            [Head("beyond chance?", False, "Whether the 95 % interval of the change excludes 0.")]
            if metric is metrics[0]
            else []
        )
    rows = tuple(_answer_row(mix, row, metrics, first, named) for mix in mixes for row in mix.summary)
    n = max(row[metrics[0].key]["n"] for mix in mixes for row in mix.summary)
    note = f"± is half the 95 % confidence interval over {n} seeds. " if n > 1 else ""
    return Table("The answer", tuple(heads), rows, f"{note}Changes are against {first}.")


def _named(mixes: Sequence[Mix]) -> list[Axis]:
    """Which of workload and machine tell mixes apart, beside the parameters."""
    axes: tuple[Axis, ...] = ("workload", "machine")
    columns = mixes[0].columns
    apart: list[Axis] = [
        axis for axis in axes if len({columns.short(axis, getattr(mix, axis)) for mix in mixes}) > 1
    ]
    return list(axes) if apart and not columns.heads_by_column else apart


def _metrics(mixes: Sequence[Mix]) -> list[Metric]:
    """What the answer's table shows: what decides comes first."""
    deciding = list(dict.fromkeys(mix.metric for mix in mixes))
    if deciding == [WORK]:
        return [WORK]
    return [*deciding, words.H_STP, MAKESPAN]


def _answer_row(mix: Mix, row: Values, metrics: Sequence[Metric], first: str, named: Sequence[Axis]) -> Row:
    is_first = row["policy"] == first
    cells = [mix.policy(row), *(Cell(mix.columns.short(axis, row[axis])) for axis in named)]
    cells += mix.columns.cells(row)
    for metric in metrics:
        value = row[metric.key]
        cells.append(Cell(words.interval(value, metric.digits, metric.factor), value["mean"]))
        if metric.change:
            change = row[metric.change]
            shown = words.change_cell(change, lower_is_better=metric.lower_is_better)
            cells.append(Cell("–", 0.0) if is_first else shown)
            if metric is metrics[0]:
                cells.append(Cell("–" if is_first else words.sure(change)))
    is_best = len(mix.summary) > 1 and row is mix.best
    return Row(tuple(cells), row["policy"], is_best)


def figure(mixes: Sequence[Mix], policies: Sequence[str]) -> Chart:
    """All metrics with their intervals; the reader chooses."""
    metrics = _drawn_metrics(mixes)
    shown = metrics[0]
    told = [
        f"{row['policy']} {words.interval(row[shown.key], shown.digits, shown.factor)}"
        for mix in mixes[:1]
        for row in mix.summary
    ]
    alt = f"{shown.name} of each policy with 95 % intervals, {mixes[0].name}: {', '.join(told)}."
    rows = ((mix.name if len(mixes) > 1 else "", row) for mix in mixes for row in mix.summary)
    return words.intervals(policies, metrics, rows, alt)


def _drawn_metrics(mixes: Sequence[Mix]) -> list[Metric]:
    """What figures show."""
    every = [*_metrics(mixes), words.ENERGY, words.EDP]
    return [metric for metric in every if all(row[metric.key] for mix in mixes for row in mix.summary)]


def _programs(mixes: Sequence[Mix], policies: Sequence[str]) -> Section:
    """The programs of each workload, and the slowdown of each under each policy; values of parameters in one table."""
    columns, groups = mixes[0].columns.of_mixes, dict[str, list[Mix]]()
    for mix in mixes:
        groups.setdefault(mix.short, []).append(mix)
    heads = (
        Head("program", False),
        *columns.heads(),
        Head("threads"),
        *(Head(policy) for policy in policies),
    )
    note = "Against running alone on as many big cores; means."

    def table(short: str, some: Sequence[Mix]) -> Table:
        rows = tuple(row for mix in some for row in _program_rows(mix, policies, columns))
        return Table(f"Slowdown (H_NTT) of each program, {short}", heads, rows, note)

    return Section("Programs", tuple(table(short, some) for short, some in groups.items()))


def _program_rows(mix: Mix, policies: Sequence[str], columns: Columns) -> Iterator[Row]:
    for index, app in enumerate(mix.runs[0]["apps"]):
        means = {policy: fmean(_slowdowns(mix, policy, index)) for policy in policies}
        least = min(means.values())
        cells = [Cell(f"{mean:.2f}", mean, "good" if mean == least else "") for mean in means.values()]
        name = app["app"] if app["app"] == app["program"] else f"{app['app']} ({app['program']})"
        threads = Cell(f"{app['threads']:,}", app["threads"])
        yield Row((Cell(name), *columns.cells(mix.summary[0]), threads, *cells))


def _slowdowns(mix: Mix, policy: str, app: int) -> list[float]:
    return [run["apps"][app]["h_ntt"] for run in mix.runs if run["policy"] == policy]


def _timelines(mixes: Sequence[Mix], asked: Asked) -> Section | None:
    """The best and the worst run of each workload, simulated again."""
    blocks: list[Block] = []
    for mix in mixes[:TIMELINES_MAX]:
        key, sign = mix.metric.key, 1 if mix.metric.lower_is_better else -1
        ranked = sorted(mix.runs, key=lambda run: sign * run[key])
        for word, run in (
            {"Best": ranked[0], "Worst": ranked[-1]}.items() if len(ranked) > 1 else [("Only", ranked[0])]
        ):
            found = asked.timeline(run)
            if found is None:
                continue
            shown = number(mix.metric.factor * run[key], mix.metric.digits)
            order = "" if run["core_order"] == "as-is" else f", {run['core_order'].replace('-', ' ')}"
            where = f" of {mix.name}" if len(mixes) > 1 else ""
            title = (
                f"{word} run{where}: {run['policy']}, {mix.metric.name} {shown}, seed {run['seed']}{order}"
            )
            blocks.append(timeline_chart(found, title))
    if not blocks:
        return None
    if len(mixes) > TIMELINES_MAX:
        blocks.append(Text(f"Of {len(mixes)} workloads on machines the first {TIMELINES_MAX} are drawn."))
    return Section("Timelines of the best and the worst run", tuple(blocks))


def _energy(mixes: Sequence[Mix]) -> Section | None:
    """Energy and heat, if they were accounted for."""
    rows = []
    for mix in mixes:
        for row in mix.summary:
            if row["energy_j"] is None:
                return None
            peaks = [
                run["peak_c"]
                for run in mix.runs
                if run["policy"] == row["policy"] and run["peak_c"] is not None
            ]
            rows.append(
                Row(
                    (
                        mix.policy(row),
                        Cell(mix.short),
                        *mix.columns.cells(row),
                        Cell(words.interval(row["energy_j"]), row["energy_j"]["mean"]),
                        words.change_cell(row["energy_change"], lower_is_better=True),
                        Cell(words.interval(row["edp_js"]), row["edp_js"]["mean"]),
                        Cell(number(max(peaks), 1), max(peaks)) if peaks else Cell("–"),
                    ),
                    row["policy"],
                )
            )
    names = ("energy J", "change", "energy × makespan J s", "peak °C")
    parameters = mixes[0].columns.heads()
    heads = (Head("policy", False), Head("workload", False), *parameters, *map(Head, names))
    return Section("Energy and heat", (Table("Energy and heat", heads, tuple(rows)),))


def _details(mixes: Sequence[Mix]) -> Section:
    """Waiting, switches, migrations, utilisation, fairness."""
    rows = tuple(
        Row(
            (
                mix.policy(row),
                Cell(mix.short),
                *mix.columns.cells(row),
                Cell(number(row["waiting_ms"], 2), row["waiting_ms"]),
                Cell(number(row["longest_wait_ms"], 2), row["longest_wait_ms"]),
                Cell(number(row["switches"], 0), row["switches"]),
                Cell(number(row["migrations"], 0), row["migrations"]),
                Cell(f"{100 * row['utilisation']:.1f}", row["utilisation"]),
                Cell(number(row["unfairness"], 2), row["unfairness"]),
            ),
            row["policy"],
        )
        for mix in mixes
        for row in mix.summary
    )
    heads = (
        Head("policy", False),
        Head("workload", False),
        *mixes[0].columns.heads(),
        Head("waiting ms", hint="Mean time of a thread in run queues."),
        Head("longest wait ms", hint="Longest stay of a thread in a run queue, mean over the runs."),
        Head("switches"),
        Head("migrations"),
        Head("busy %", hint="Mean utilisation of the cores."),
        Head("unfairness", hint="Greatest slowdown of a program / smallest; 1 is fair."),
    )
    return Section("Waiting, switches, fairness", (Table("Means over all runs", heads, rows),))


def _assumed(values: Values, asked: Asked) -> Section:
    """What a reader must know before trusting it."""
    stated = asked.stated()
    notes = [*([] if stated else values["notes"]), *values["caveats"]]
    standing = (
        "Simulated: programs are models or recordings, machines are descriptions. Intervals cover random amounts, not "
        "the model's errors."
    )
    facts = (Facts(tuple(stated)),) if stated else ()
    return Section("What was assumed", (*facts, Notes((standing, *notes))))


def _short(columns: Columns, key: str, value: object) -> str:
    return columns.short(key, str(value)) if key in AXES else str(value)


def _all_runs(values: Values, columns: Columns) -> Section:
    """Each run, folded."""
    keys = ("policy", "workload", "machine", "core_order", "seed", "h_antt", "h_stp")
    rows = []
    for run in values["runs"][:RUNS_MAX]:
        named = [
            Cell(str(run[key]).replace("-", " ") if key == "core_order" else _short(columns, key, run[key]))
            for key in keys[:5]
        ]
        named[3:3] = columns.cells(run)
        measured = [Cell(f"{run[key]:.4f}", run[key]) for key in keys[5:]]
        makespan_ms = run["makespan_ns"] / 1e6
        rows.append(Row((*named, *measured, Cell(number(makespan_ms, 2), makespan_ms)), run["policy"]))
    heads = ("policy", "workload", "machine", "core order", "seed", "H_ANTT", "H_STP", "makespan ms")
    named_heads = tuple(Head(head, position > 3) for position, head in enumerate(heads))
    all_heads = (*named_heads[:3], *columns.heads(), *named_heads[3:])
    left = len(values["runs"]) - len(rows)
    note = f"{left:,} more runs are in the JSON." if left > 0 else ""
    return Section("All runs", (Table("Each simulation", all_heads, tuple(rows), note),), is_folded=True)
