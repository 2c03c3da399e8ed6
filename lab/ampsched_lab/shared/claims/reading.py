"""Claims from a file.

A file is a table per part of the experiment, which holds a table per claim, named by its id:

    compare = "change"          # holds for all claims that do not say otherwise

    [causes]
    short = "Programs are shorter than the paper's."

    [fig5]
    source = "Figure 5"         # holds for the claims of this part

    [fig5.C10a]
    text = "Sync: COLAB against CFS"
    measure = { name = "change", policy = "colab", against = "cfs", cases = "sync" }
    paper = -15
    cause = "short"

The key `headline` names the paper's main claim.

Causes say why a claim is missed. One that is a table has a `text` and `tests`: names of conditions under which it is
away. What says `change` is why the verdict depends on what stands for Linux.

Other keys of a claim: `unit`, if it is not the comparison's own; `said`, how the paper's value is printed,
if not as it is ({} stands for it); `side_of`, the number on whose side the direction is right; `apart`, why
the claim is not counted; and instead of a measurement and a value `untestable`, why a simulation cannot tell.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Formatter
from typing import Any, ParamSpec, TypeVar

from ampsched._core import InputError, suggest
from ampsched_lab.shared.claims.comparisons import COMPARISONS, Comparison, PaperValue, Published
from ampsched_lab.shared.claims.judging import Check, Claim
from ampsched_lab.shared.claims.measured import KINDS, UNITS, Measurement, Measurements, Unit

P = ParamSpec("P")
T = TypeVar("T")

INHERITED = ("source", "compare", "apart")
"""Keys that may stand above the claims for which they hold."""
KEYS = (
    "text",
    "measure",
    "paper",
    "unit",
    "said",
    "side_of",
    "cause",
    "change",
    "untestable",
    *INHERITED,
)


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of an experiment."""

    rules: str
    """How they are judged beyond the common rule; Markdown."""
    headline: str
    """Id of the paper's main claim; empty if the file names none."""
    all: tuple[Claim, ...]

    def of(self, part: str) -> list[Claim]:
        """Those of a part, in the file's order."""
        return [claim for claim in self.all if claim.part == part]


def read_claims(
    package: str,
    measurements: Mapping[str, Measurements],
    facts: Sequence[str] = (),
    names: Sequence[str] = ("claims.toml",),
) -> Claims:
    """Reads the claims of an experiment.

    Args:
        package: The experiment's package, in which the files are.
        measurements: The measurements of each part of the experiment that has claims.
        facts: Names of what is measured for the causes of misses.
        names: The files.

    Raises:
        InputError: If a file cannot be used; the message names file and claim.
    """
    texts = {name: (files(package) / name).read_text(encoding="utf-8") for name in names}
    return parse_claims(texts, measurements, facts)


def parse_claims(
    texts: Mapping[str, str], measurements: Mapping[str, Measurements], facts: Sequence[str] = ()
) -> Claims:
    """The same from the text of each file. Files share their causes."""
    tables = {file: _in_file(file, tomllib.loads, text) for file, text in texts.items()}
    rules = [_in_file(file, _text, table, "rules", "").strip() for file, table in tables.items()]
    causes: dict[str, Cause] = {}
    for file, table in tables.items():
        causes |= _in_file(file, _causes, table.get("causes", {}), facts)
    claims: dict[str, Claim] = {}
    for file, table in tables.items():
        for claim in _in_file(file, _Reader(table, measurements, causes).claims):
            if claim.id in claims:
                raise InputError(f"{file}: claim {claim.id}: there is another claim of that id")
            claims[claim.id] = claim
    unused = causes.keys() - {name for claim in claims.values() for name in claim.cause_names}
    if unused:
        raise InputError(f'{", ".join(texts)}: cause "{min(unused)}" is no claim\'s')
    headline = "".join(_in_file(file, _text, table, "headline", "") for file, table in tables.items())
    if headline and headline not in claims:
        raise InputError(f'{", ".join(texts)}: headline "{headline}" is no claim\'s id')
    return Claims("\n\n".join(filter(None, rules)), headline, tuple(claims.values()))


def _in_file(file: str, read: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """What is read; errors name the file."""
    try:
        return read(*arguments, **named)
    except (tomllib.TOMLDecodeError, InputError) as error:
        raise InputError(f"{file}: {error}") from None


@dataclass(frozen=True, slots=True)
class Cause:
    """Why claims are missed."""

    text: str
    """In one line; braces hold names of facts."""
    tests: tuple[str, ...] = ()
    """Conditions under which it is away."""


def _causes(table: Mapping[str, object], facts: Sequence[str]) -> dict[str, Cause]:
    """Causes by name."""
    return {name: _cause(name, table, facts) for name in table}


def _cause(name: str, table: Mapping[str, object], facts: Sequence[str]) -> Cause:
    stated = table[name]
    row = stated if isinstance(stated, dict) else {"text": _text(table, name)}
    where = f'cause "{name}": '
    _check_keys(row, ("text", "tests"), where)
    tests = row.get("tests", [])
    if not isinstance(tests, list) or not all(isinstance(test, str) for test in tests):
        raise InputError(f"{where}tests {tests!r} is no list of names of conditions")
    cause = Cause(" ".join(_text(row, "text").split()), tuple(tests))
    for _, fact, _, _ in Formatter().parse(cause.text):
        if fact is not None:
            _known("fact", fact, facts, where)
    return cause


class _Reader:
    """The claims of one file."""

    def __init__(
        self, table: Mapping[str, Any], measurements: Mapping[str, Measurements], causes: Mapping[str, Cause]
    ) -> None:
        own = {key: value for key, value in table.items() if key not in ("rules", "headline", "causes")}
        self._parts = {key: value for key, value in own.items() if isinstance(value, dict)}
        self._common = {key: value for key, value in own.items() if key not in self._parts}
        self._measurements = measurements
        self._causes = causes

    def claims(self) -> list[Claim]:
        """All claims of the file."""
        _check_keys(self._common, INHERITED, "")
        claims = []
        for part, table in self._parts.items():
            _known("part", part, tuple(self._measurements), "")
            stated = {key: value for key, value in table.items() if isinstance(value, dict)}
            own = {key: value for key, value in table.items() if key not in stated}
            _check_keys(own, INHERITED, f"part {part}: ")
            for id_, row in stated.items():
                try:
                    claims.append(self._claim(id_, part, row, self._common | own | row))
                except InputError as error:
                    raise InputError(f"claim {id_}: {error}") from None
        return claims

    def _claim(self, id_: str, part: str, stated: dict[str, Any], row: dict[str, Any]) -> Claim:
        _check_keys(stated, KEYS, "")
        text, source = _text(row, "text"), _text(row, "source")
        cause, change, apart = (_text(row, key, "") for key in ("cause", "change", "apart"))
        for name in filter(None, (cause, change)):
            _known("cause", name, tuple(self._causes), "")
        published, check = self._untestable(stated) if "untestable" in stated else self._check(part, row)
        why, why_changed = (self._causes.get(name, Cause("")) for name in (cause, change))
        names, reasons = (cause, change), (why.text, why_changed.text)
        return Claim(id_, part, text, source, published, check, apart, names, *reasons, why.tests)

    @staticmethod
    def _untestable(stated: dict[str, Any]) -> tuple[str, str]:
        for key in ("measure", "paper", "compare"):
            if key in stated:
                raise InputError(f'it states "{key}" and is "untestable"')
        return _text(stated, "said"), " ".join(_text(stated, "untestable").split())

    def _check(self, part: str, row: dict[str, Any]) -> tuple[str, Check]:
        """How the paper's value is printed, and how the claim is checked."""
        compare = _text(row, "compare")
        _known("comparison", compare, tuple(COMPARISONS), "")
        comparison = COMPARISONS[compare]
        unit_name = _text(row, "unit", comparison.unit)
        _known("unit", unit_name, tuple(UNITS), "")
        unit = UNITS[unit_name]
        paper = Published(
            _paper(row, compare, comparison, unit),
            unit.is_share,
            _number(row, "side_of", unit.per_one),
        )
        measurement = self._measurement(part, row)
        if measurement.yields not in comparison.takes:
            raise InputError(
                f'measurement "{measurement.name}" yields {KINDS[measurement.yields]}, '
                f'comparison "{compare}" takes {" or ".join(KINDS[kind] for kind in comparison.takes)}'
            )
        return _published(row, comparison, unit), Check(measurement, comparison, paper, unit)

    def _measurement(self, part: str, row: dict[str, Any]) -> Measurement:
        stated = _need(row, "measure")
        arguments = dict(stated) if isinstance(stated, dict) else {"name": stated}
        name = _text(arguments, "name")
        del arguments["name"]
        return self._measurements[part].find(name, arguments)


def _paper(row: dict[str, Any], compare: str, comparison: Comparison, unit: Unit) -> PaperValue:
    """The paper's value in the scale of what is measured."""
    if comparison.paper == "none":
        if "paper" in row:
            raise InputError(f'comparison "{compare}" takes no "paper"')
        return None
    value: Any = _need(row, "paper")
    if comparison.paper == "number" and _is_number(value):
        return float(value / unit.per_one)
    if comparison.paper == "share" and value == "all":
        return 1.0
    if comparison.paper == "share" and _is_pair(value) and 0 <= value[0] <= value[1] != 0:
        return float(value[0] / value[1])
    if comparison.paper == "range" and _is_pair(value):
        return value[0] / unit.per_one, value[1] / unit.per_one
    if comparison.paper == "name" and isinstance(value, str):
        return value
    raise InputError(f'paper {value!r} is no {comparison.paper}, which comparison "{compare}" takes')


def _published(row: dict[str, Any], comparison: Comparison, unit: Unit) -> str:
    """How the paper's value is printed."""
    value: Any = row.get("paper")
    if comparison.paper == "range":
        text = f"{value[0]:g} to {value[1]:g}{unit.suffix}"
    elif comparison.paper == "share" and value != "all":
        text = f"{value[0]} of {value[1]}"
    elif comparison.paper == "number":
        text = f"{value:{unit.published}}{unit.suffix}" if value or not unit.interval else "no effect"
    else:
        text = str(value)
    return _text(row, "said", comparison.published).replace("{}", text)


def _number(row: Mapping[str, Any], key: str, per_one: int = 1) -> float | None:
    if key not in row:
        return None
    if not _is_number(row[key]):
        raise InputError(f"{key} {row[key]!r} is no number")
    return float(row[key] / per_one)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))


def _need(row: Mapping[str, object], key: str) -> object:
    if key not in row:
        raise InputError(f'there is no "{key}"')
    return row[key]


def _text(row: Mapping[str, object], key: str, default: str | None = None) -> str:
    value = row.get(key, default) if default is not None else _need(row, key)
    if not isinstance(value, str):
        raise InputError(f"{key} {value!r} is no text")
    return value


def _known(what: str, name: str, known: Sequence[str], where: str) -> None:
    if name not in known:
        raise InputError(f'{where}unknown {what} "{name}" ({suggest(name, known)})')


def _check_keys(row: Mapping[str, object], known: Sequence[str], where: str) -> None:
    for key in row:
        _known("key", key, known, where)
