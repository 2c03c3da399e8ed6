"""What a sweep says first: which policy is best, by how much and how sure that is, as `compare` has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ampsched import curves
from ampsched.decisive import SLOWDOWN, TURNAROUND, WORK_DONE, Decisive, time_text
from ampsched.naming import in_number
from ampsched.parameters import AXES, Parameters
from ampsched.sweeps.measures import measure
from ampsched.sweeps.plan import OPTIONS, Known
from ampsched.uncertainty import Verdict, judge, no_basis, sentences

if TYPE_CHECKING:
    from ampsched.sweeps.result import Sweep

LINES_MAX = 5
"""Lines about machines and workloads that differ, and about values of parameters."""
NAMED_MAX = 4
"""So many machines or workloads are named in a line."""
_COLUMNS = {
    SLOWDOWN.name: ("h_antt", 1.0),
    TURNAROUND.name: ("makespan_ns", 1e6),
    WORK_DONE.name: ("instructions", 1.0),
}
"""Column and divisor of what `compare` judges by."""
Place = tuple[str, ...]
Draws = Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Deciding:
    """What a machine and workload are judged by.

    Attributes:
        column: Of the frame.
        divisor: What its values are divided by: 1e6 of ns that are told in ms.
        name: In words.
        more_is_better: Whether more is better.
        decisive: Of `compare`; none of another metric.
    """

    column: str
    divisor: float
    name: str
    more_is_better: bool
    decisive: Decisive | None = None

    @staticmethod
    def of(metric: str, known: Known, *, is_timed: bool) -> Deciding:
        """What decides: for ``h_antt`` what `compare` judges by, else the metric."""
        if metric != "h_antt":
            found, is_time = measure(metric), metric.endswith("_ns")
            name, divisor = found.label.removesuffix(", ns"), 1e6 if is_time else 1.0
            return Deciding(metric, divisor, name, not found.lower_is_better)
        if is_timed and known.has_durations:
            return Deciding.by(WORK_DONE)
        return Deciding.by(TURNAROUND if known.apps == 1 else SLOWDOWN)

    @staticmethod
    def by(decisive: Decisive) -> Deciding:
        """The same of what `compare` judges by."""
        return Deciding(*_COLUMNS[decisive.name], decisive.name, decisive.more_is_better, decisive)

    def text(self, value: float) -> str:
        """A value in words."""
        if self.decisive:
            return self.decisive.text(value)
        return time_text(value) if self.column.endswith("_ns") else f"{value:.4g}"


@dataclass(frozen=True)
class Judged:
    """A machine, a workload and options.

    Attributes:
        place: These, as columns of a summary have them.
        options: Those that vary, such as ``governor schedutil``.
        deciding: What it is judged by.
        draws: That, of each policy by seed; the baseline first.
        known: What is known of the workload.
        margin: By how much worse others may be and still count as no worse.
    """

    place: Place
    options: Place
    deciding: Deciding
    draws: Draws
    known: Known
    margin: float

    @property
    def name(self) -> str:
        """Such as ``sync-1 on 2B2S``."""
        return ", ".join([f"{self.place[1]} on {self.place[0]}", *self.options])

    @cached_property
    def verdict(self) -> Verdict:
        """What may be said of its best policy."""
        error = self.known.model_error
        errors = error.of_changes if error else None
        return judge(self.draws, errors, more_is_better=self.deciding.more_is_better, margin=self.margin)

    def sentences(self) -> list[str]:
        """The verdict in lines, the same as those of `compare`."""
        machine, workload = ", ".join([self.place[0], *self.options]), self.place[1]
        name, text = self.deciding.name, self.deciding.text
        return sentences(self.verdict, workload, machine, name, text, self.known.against)

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain values, with the keys that `compare` has."""
        error = self.known.model_error
        return {
            **dict(zip(("machine", "workload", *OPTIONS), self.place, strict=True)),
            "metric": self.deciding.name,
            **asdict(self.verdict),
            "text": self.sentences(),
            "model_error": error.to_dict() if error else None,
        }


@dataclass(frozen=True)
class Verdicts:
    """All verdicts of a sweep by one metric.

    Attributes:
        result: The sweep.
        metric: The metric; ``h_antt`` stands for what `compare` judges by.
        judged: Those places where the baseline and another policy have results.
    """

    result: Sweep
    metric: str
    judged: Sequence[Judged]

    @staticmethod
    def of(result: Sweep, metric: str) -> Verdicts:
        """The verdicts of a sweep."""
        rows: dict[Place, list[dict[str, Any]]] = {}
        for row in result.good().iter_rows(named=True):
            rows.setdefault(tuple(str(row[name]) for name in ("machine", "workload", *OPTIONS)), []).append(
                row
            )
        several = [name for name in OPTIONS if result.frame[name].n_unique() > 1]
        found = []
        for place, some in rows.items():
            known = result.mixes.get((place[0], place[1]), Known())
            deciding = Deciding.of(metric, known, is_timed=all(row["timed"] for row in some))
            draws = _draws(some, deciding, result.baseline)
            options = tuple(f"{name} {some[0][name]}" for name in several)
            if result.baseline in draws:
                found.append(Judged(place, options, deciding, draws, known, result.margin))
        return Verdicts(result, metric, found)

    @cached_property
    def parameters(self) -> Parameters:
        """The parameters that vary."""
        frame = self.result.frame
        return Parameters.of({axis: frame[axis].unique(maintain_order=True) for axis in AXES})

    def panels(self) -> list[curves.Panel]:
        """The results along the parameter that was asked for, or that alone varies."""
        return self._panels

    @cached_property
    def _panels(self) -> list[curves.Panel]:
        parameters = self.parameters
        column = curves.column_of(parameters, self.result.over)
        works = self._works()
        cases = []
        for each in self.judged:
            machine, workload = each.place[:2]
            for policy, draws in each.draws.items():
                work = 0.0 if each.deciding.decisive is WORK_DONE else works[each.place, policy]
                cases.append(curves.Case(machine, workload, policy, draws, each.options, work))
        return curves.panels(cases, parameters, column)

    def _works(self) -> dict[tuple[Place, str], float]:
        keys = ("machine", "workload", *OPTIONS)
        found: dict[tuple[Place, str], list[float]] = {}
        for row in self.result.good().iter_rows(named=True):
            place = tuple(str(row[name]) for name in keys)
            found.setdefault((place, row["policy"]), []).append(row["instructions"])
        return {key: fmean(values) for key, values in found.items()}

    def told_along(self, panel: curves.Panel, *, is_named: bool = False) -> list[str]:
        """What there is to say along a parameter, as `compare` says it.

        Args:
            panel: A workload on a machine.
            is_named: Whether to say which, in every line.
        """
        here = self._along(panel)
        deciding = here[0][1].deciding
        best = curves.best_values(
            panel,
            deciding.name,
            deciding.text,
            more_is_better=deciding.more_is_better,
            margin=self.result.margin,
        )
        told = [best] if best else []
        if len(here) > 1 and self.has_rivals:
            policies = curves.best_policies(panel, [(value, each.verdict) for value, each in here])
            told.append(f"{panel.name}: {policies}" if is_named or not best else policies)
        return told

    def text(self, panel: curves.Panel) -> Callable[[float], str]:
        """What makes a text of a value along a parameter."""
        return self._along(panel)[0][1].deciding.text

    def _along(self, panel: curves.Panel) -> list[tuple[float, Judged]]:
        """The places of a panel by value of its parameter."""
        found = []
        for machine, workload in panel.mixes():
            value = self.parameters.values(machine, workload).get(panel.column)
            judged = self._by_mix[machine, workload, panel.place]
            found.append((value if isinstance(value, float) else 0.0, judged))
        return sorted(found, key=lambda one: one[0])

    @cached_property
    def _by_mix(self) -> dict[tuple[str, str, Place], Judged]:
        return {(each.place[0], each.place[1], each.options): each for each in self.judged}

    @property
    def has_rivals(self) -> bool:
        """Whether there is anything to compare."""
        return any(len(each.draws) > 1 for each in self.judged)

    def overall(self) -> tuple[Verdict, Deciding] | None:
        """The verdict over all places of one question, and what it is by; none of one place or several questions.

        A seed's change is the mean over the places, as `Sweep.ranking` has it; policies that are not at all places are
        left out.
        """
        if len(self.judged) < 2 or self.result.varied:
            return None
        deciding = {each.deciding.name: each.deciding for each in self.judged}
        one = next(iter(deciding.values())) if len(deciding) == 1 else Deciding.by(SLOWDOWN)
        if len(deciding) > 1 and WORK_DONE.name in deciding:
            return None
        alike = [
            policy for policy in self.judged[0].draws if all(policy in each.draws for each in self.judged)
        ]
        if len(alike) < 2 or len({len(each.draws[policy]) for each in self.judged for policy in alike}) > 1:
            return None
        first = self.result.baseline
        ratios = {
            policy: _mean_ratios([each.draws for each in self.judged], policy, first) for policy in alike
        }
        verdict = judge(ratios, more_is_better=one.more_is_better, margin=self.result.margin)
        ranked = self.result.ranking(one.column).rows(named=True)
        means = {row["policy"]: row[one.column] / one.divisor for row in ranked}
        return replace(verdict, values=(means[verdict.best], means[first])), one

    def told(self) -> list[str]:
        """The answer first, then what else there is to know, in a few lines."""
        if not self.judged:
            return []
        doubtful = {each.place[1]: each.known.against for each in self.judged if each.known.against}
        if doubtful and len(self.judged) > 1:
            doubts = [f"{name}: {'; '.join(against)}" for name, against in doubtful.items()]
            return _few([no_basis([each]) for each in doubts], "workload")
        panels = self.panels()
        along = [line for panel in panels for line in self.told_along(panel, is_named=len(panels) > 1)]
        along = _few(along, "line")
        if not self.has_rivals:
            return along
        if len(self.judged) == 1:
            return [*self.judged[0].sentences(), *along]
        if any(len(panel.mixes()) > 1 for panel in panels):
            return along
        found = self.overall()
        if found is None:
            return [*self._by_place(), *along]
        verdict, one = found
        machines = _named([each.place[0] for each in self.judged], "machines")
        workloads = _named([each.place[1] for each in self.judged], "workloads")
        answer = sentences(verdict, workloads, machines, one.name, one.text)
        answer = [line for line in answer if not line.startswith("the model's own error")]
        differ = any(
            (each.verdict.word, each.verdict.best) != (verdict.word, verdict.best) for each in self.judged
        )
        return [*answer, *(self._by_place() if differ else []), *along]

    def _by_place(self) -> list[str]:
        """Which policy is best where: places with the same words in one line."""
        groups: dict[str, list[str]] = {}
        for each in self.judged:
            groups.setdefault(curves.best_of(each.verdict), []).append(each.name)
        return _few([f"{what}: {_named(names, 'more', '; ')}" for what, names in groups.items()], "verdict")

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        panels, found = self.panels(), self.overall()
        return {
            "metric": self.metric,
            "told": self.told(),
            "verdict": None if found is None else {"metric": found[1].name, **asdict(found[0])},
            "verdicts": [each.to_dict() for each in self.judged],
            "parameters": self.parameters.to_list(),
            "curves": [
                {
                    "name": panel.name,
                    "column": panel.column,
                    "head": panel.head,
                    "told": self.told_along(panel),
                    "lines": [_line(panel, line) for line in panel.lines],
                }
                for panel in panels
            ],
        }


def _line(panel: curves.Panel, line: curves.Line) -> dict[str, Any]:
    points = [
        {"value": value, **{key: getattr(case, key) for key in AXES}, "place": ", ".join(panel.place)}
        for value, case in line.points
    ]
    return {"policy": line.policy, "points": points}


def _draws(rows: Sequence[Mapping[str, Any]], deciding: Deciding, first: str) -> Draws:
    """What decides, of each policy by seed, the mean over core orders; without policies that lack a seed."""
    found: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        if row[deciding.column] is not None:
            by_seed = found.setdefault(row["policy"], {})
            by_seed.setdefault(row["seed"], []).append(row[deciding.column] / deciding.divisor)
    seeds = found.get(first, {}).keys()
    names = [first, *(policy for policy in found if policy != first)]
    return {
        policy: tuple(fmean(found[policy][seed]) for seed in sorted(seeds))
        for policy in names
        if policy in found and found[policy].keys() == seeds
    }


def _mean_ratios(places: Sequence[Draws], policy: str, first: str) -> list[float]:
    """Of each seed, the mean over places of a policy's value as a part of the first's."""
    pairs = [zip(draws[policy], draws[first], strict=True) for draws in places]
    ratios = [[mine / other if other else 1.0 for mine, other in pair] for pair in pairs]
    return [fmean(each) for each in zip(*ratios, strict=True)]


def _named(names: Sequence[str], word: str, between: str = ", ") -> str:
    """Some names, each once; of many, how many they are."""
    each = list(dict.fromkeys(names))
    if len(each) <= NAMED_MAX:
        return between.join(each)
    return (
        f"{len(each)} {word}"
        if word != "more"
        else f"{between.join(each[:NAMED_MAX])} and {len(each) - NAMED_MAX} more"
    )


def _few(lines: Sequence[str], word: str) -> list[str]:
    """The first lines, and how many there are more."""
    left = len(lines) - LINES_MAX
    return [
        *lines[:LINES_MAX],
        *([f"and {left} more {in_number(left, word)}, which --json has"] if left > 0 else []),
    ]
