"""Results along a parameter: which value is best under each policy, and where which policy is best."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ampsched.parameters import AXES, Parameters, shown, without
from ampsched.uncertainty import Verdict, judge

SAME_WORK = 0.02
"""Work that differs by no more than this is the same: waiting that spins is work, too."""


@dataclass(frozen=True, slots=True)
class Case:
    """One policy on one workload and machine.

    Attributes:
        machine: The machine's name, parameters included; so the others.
        workload: The workload.
        policy: The policy.
        draws: What decides, of each seed, in ascending order of seeds.
        place: What else tells it apart, such as a governor.
        work: Work that the programs do, in instructions; 0 where how much they do is what decides.
    """

    machine: str
    workload: str
    policy: str
    draws: tuple[float, ...]
    place: tuple[str, ...] = ()
    work: float = 0.0


@dataclass(frozen=True, slots=True)
class Line:
    """One policy along the parameter.

    Attributes:
        policy: Without the parameter.
        points: Values of the parameter, ascending; one of none for a policy that does not have it.
    """

    policy: str
    points: tuple[tuple[float | None, Case], ...]

    @property
    def is_curve(self) -> bool:
        """Whether it has several points."""
        return len(self.points) > 1

    def means(self) -> list[tuple[float | None, float]]:
        """The mean at each value."""
        return [(value, fmean(case.draws)) for value, case in self.points]


@dataclass(frozen=True, slots=True)
class Panel:
    """One workload on one machine along a parameter.

    Attributes:
        machine: Without the parameter.
        workload: Without the parameter.
        place: What else tells it apart.
        column: The parameter's column.
        head: What it is called.
        lines: The policies.
    """

    machine: str
    workload: str
    place: tuple[str, ...]
    column: str
    head: str
    lines: tuple[Line, ...]

    @property
    def name(self) -> str:
        """Such as ``ferret on 2B2S``."""
        return ", ".join([f"{self.workload} on {self.machine}", *self.place])

    @property
    def changes_work(self) -> bool:
        """Whether programs have more to do with some values than with others, so that none of them is the best."""
        if not self.column.startswith("workload:"):
            return False
        each = [[case.work for _, case in line.points] for line in self.lines]
        return any(max(works) > (1 + SAME_WORK) * min(works) for works in each)

    def mixes(self) -> list[tuple[str, str]]:
        """Its pairs of machine and workload, in the order of the values."""
        found = {
            (case.machine, case.workload): value or 0.0 for line in self.lines for value, case in line.points
        }
        return sorted(found, key=lambda mix: found[mix])


def column_of(parameters: Parameters, wanted: str | None = None) -> str | None:
    """The parameter of curves: the one that is wanted, else the only one that varies."""
    if wanted is not None:
        return wanted
    return parameters.columns[0] if len(parameters.columns) == 1 else None


def panels(cases: Iterable[Case], parameters: Parameters, column: str | None) -> list[Panel]:
    """The results along a parameter, by workload and machine; none where fewer than two numbers are known."""
    if column is None:
        return []
    found: dict[tuple[str, str, tuple[str, ...]], dict[str, dict[float | None, Case]]] = {}
    for case in cases:
        labels = (case.machine, case.workload, case.policy)
        machine, workload, policy = (
            without(axis, label, [column]) for axis, label in zip(AXES, labels, strict=True)
        )
        value = parameters.values(*labels).get(column)
        if isinstance(value, str):
            continue
        lines = found.setdefault((machine, workload, case.place), {})
        lines.setdefault(policy, {}).setdefault(value, case)
    made = [
        Panel(*key, column, parameters.head(column), tuple(_line(*each) for each in lines.items()))
        for key, lines in found.items()
    ]
    return [panel for panel in made if any(line.is_curve for line in panel.lines)]


def _line(policy: str, by_value: Mapping[float | None, Case]) -> Line:
    known: list[float | None] = [*sorted(value for value in by_value if value is not None)]
    return Line(policy, tuple((value, by_value[value]) for value in known or [None]))


def best_values(
    panel: Panel, name: str, text: Callable[[float], str], *, more_is_better: bool, margin: float
) -> str:
    """Which value of the parameter is best under each policy, in a sentence; empty if none is.

    With more work everything takes longer: of a parameter that sets how much there is, no value is the best.

    Args:
        panel: The results.
        name: What decides, in words.
        text: A value of that in words.
        more_is_better: Whether more of it is better.
        margin: By how much worse other values may be and still count as no worse.
    """
    if panel.changes_work:
        return ""
    told = []
    for line in (line for line in panel.lines if line.is_curve):
        draws = {shown(value): case.draws for value, case in line.points}
        if len({len(each) for each in draws.values()}) > 1:
            continue  # some of them have failed
        found = judge(draws, more_is_better=more_is_better, margin=margin)
        others = sorted((each for each in found.alike if each != found.best), key=float)
        alike = f"; no worse within {100 * margin:.3g} %: {', '.join(others)}" if others else ""
        told.append(f"{found.best} under {line.policy} ({text(found.values[0])}{alike})")
    return f"{panel.name}: {name} is best at {panel.head} = {', '.join(told)}" if told else ""


def best_of(verdict: Verdict) -> str:
    """A verdict in a few words."""
    if verdict.word == "first":
        return f"no policy can be shown to be better than {verdict.first}"
    if verdict.is_worth_it:
        return f"{verdict.best} is {verdict.word} than {verdict.first}"
    return f"not known whether any is better than {verdict.first}"


def best_policies(panel: Panel, verdicts: Sequence[tuple[float, Verdict]]) -> str:
    """At which values which policy is best, in a sentence: the words of the verdicts, gathered."""
    groups: dict[str, list[str]] = {}
    for value, verdict in verdicts:
        groups.setdefault(best_of(verdict), []).append(shown(value))
    return "; ".join(f"{what} at {panel.head} = {', '.join(values)}" for what, values in groups.items())
