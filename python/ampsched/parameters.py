"""The parameters in the names of machines, workloads and policies, as columns.

``exynos5422:big=2@600-1600`` has two big cores at 600 to 1600 MHz, ``ferret:n=4`` four threads, ``colab:decay=0.9`` a
decay: columns ``machine:big``, ``machine:big_mhz_min``, ``machine:big_mhz``, ``workload:n`` and ``colab:decay``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from ampsched._core import InputError
from ampsched.catalog import Catalog

Axis = Literal["machine", "workload", "policy"]
AXES: tuple[Axis, ...] = ("machine", "workload", "policy")
Value = float | str | None
"""A number, a word, or none where it is not known or does not apply."""
_SHARE = re.compile(
    r"(?P<cluster>[^=@:]+)(?:=(?P<cores>[^=@:]*))?(?:@(?:(?P<min>[^-@:]+)-)?(?P<max>[^-@:]+))?"
)


def split(label: str) -> tuple[str, tuple[str, ...]]:
    """The name in a label, and its parameters as texts: those parts at its end that set something."""
    head, *parts = label.split(":")
    while parts and not {"=", "@"} & set(parts[0]):
        head = f"{head}:{parts.pop(0)}"
    return head, tuple(parts)


def of_label(axis: Axis, label: str) -> dict[str, Value]:
    """The parameters that a label states, by column."""
    head, parts = split(label)
    found: dict[str, Value] = {}
    for part in parts:
        if axis == "machine":
            found |= _of_share(part)
        else:
            key, _, value = part.partition("=")
            found[f"{head if axis == 'policy' else axis}:{key}"] = _number(value)
    return found


def _of_share(part: str) -> dict[str, Value]:
    match = _SHARE.fullmatch(part)
    if match is None:
        return {}
    ends = {"": match["cores"], "_mhz_min": match["min"], "_mhz": match["max"]}
    return {f"machine:{match['cluster']}{end}": _number(text) for end, text in ends.items() if text}


def _number(text: str) -> Value:
    try:
        return float(text)
    except ValueError:
        return text


@functools.cache
def _usual(axis: Axis, name: str) -> Mapping[str, Value]:
    """What parameters are if a label does not state them, by column; empty for what is not shipped."""
    from ampsched.policy import policy_info

    try:
        if axis == "policy":
            return {f"{name}:{each.name}": each.default for each in policy_info(name).params}
        catalog = Catalog.shipped()
        if axis == "workload":
            return {f"{axis}:{key}": value for key, value in catalog.core.params(name)}
        clusters = catalog.core.machine(name).clusters
    except InputError:
        return {}
    found: dict[str, Value] = {}
    for cluster, _, cores, mhz, _ in clusters:
        found |= {f"machine:{cluster}": float(cores), f"machine:{cluster}_mhz": float(mhz)}
    return found


def without(axis: Axis, label: str, columns: Iterable[str]) -> str:
    """The label without the parameters of some columns."""
    gone = set(columns)
    head, parts = split(label)
    kept = [part for part in parts if not _is_of(axis, f"{head}:{part}", gone)]
    return ":".join([head, *kept])


def _is_of(axis: Axis, label: str, columns: set[str]) -> bool:
    found = of_label(axis, label)
    return bool(found) and set(found) <= columns


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters that vary in some results.

    Attributes:
        columns: Their columns, in the order of machines, workloads, policies.
        by_label: Values of each label by column, by axis and label.
    """

    columns: tuple[str, ...]
    by_label: Mapping[tuple[Axis, str], Mapping[str, Value]]

    @staticmethod
    def of(labels: Mapping[Axis, Iterable[str]], *, all_of: Iterable[Axis] = ()) -> Parameters:
        """The parameters in some labels.

        Args:
            labels: Of machines, workloads and policies.
            all_of: Axes of which those that do not vary have columns, too.
        """
        columns: list[str] = []
        by_label: dict[tuple[Axis, str], Mapping[str, Value]] = {}
        for axis in AXES:
            mine = list(dict.fromkeys(labels[axis]))
            stated = {label: of_label(axis, label) for label in mine}
            names = list(dict.fromkeys(name for each in stated.values() for name in each))
            for label in mine:
                usual = _usual(axis, split(label)[0])
                by_label[axis, label] = {name: stated[label].get(name, usual.get(name)) for name in names}
            columns += [
                name
                for name in names
                if axis in all_of or len({by_label[axis, label][name] for label in mine} - {None}) > 1
            ]
        return Parameters(tuple(columns), by_label)

    def values(self, machine: str, workload: str, policy: str | None = None) -> dict[str, Value]:
        """The value of each column for a machine, a workload and a policy; without one, those of the other two."""
        found: dict[str, Value] = {}
        for axis, label in zip(AXES, (machine, workload, policy), strict=True):
            found |= {} if label is None else self.by_label[axis, label]
        of_policies = {name for (axis, _), each in self.by_label.items() if axis == "policy" for name in each}
        return {
            name: found.get(name) for name in self.columns if policy is not None or name not in of_policies
        }

    def head(self, column: str) -> str:
        """What a column is called in a table: the parameter's name, as short as it is clear."""
        owner, _, name = column.rpartition(":")
        if owner == "machine":
            cluster = name.removesuffix("_mhz").removesuffix("_mhz_min")
            return (
                f"{cluster} cores"
                if cluster == name
                else name.replace("_mhz", " MHz").replace("_min", " min")
            )
        alike = [each for each in self.columns if each.rpartition(":")[2] == name]
        return name if len(alike) == 1 else f"{owner} {name}"

    def to_list(self) -> list[dict[str, str]]:
        """The columns and what they are called, as plain values."""
        return [{"column": column, "head": self.head(column)} for column in self.columns]

    def short(self, axis: Axis, label: str) -> str:
        """A label without what columns say."""
        return without(axis, label, self.columns)


def shown(value: Value) -> str:
    """A value in a table."""
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float | int) else value
