"""``--over n=1..16``: one parameter with many values, of machines, workloads or a policy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ampsched._core import InputError, Machine
from ampsched.catalog import Catalog, split_shares
from ampsched.naming import unknown
from ampsched.parameters import Axis, split
from ampsched.policy import Policy, numbers_of, policy_info
from ampsched.policy_file import is_file, load
from ampsched.ranges import Range, as_number

VALUES = Range(2, 1000)
"""How many values a parameter may be varied over."""
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_ITEM = re.compile(rf"({_NUMBER})(?:\.\.({_NUMBER})(?:(/|x|:)({_NUMBER}))?)?")
FORMS = "1..16 (whole numbers), 1..16/5 (step 5), 1..64x2 (doubled), 0.5..1:6 (six values), or a list 1,2,4"
CLOCK = "@"
"""Behind a cluster's name: its highest clock in MHz, not the number of its cores."""

OverLike = str | Mapping[str, str | Sequence[float]]
"""``"n=1..16"``, ``{"n": "1..16"}`` or ``{"n": [1, 2, 4]}``."""


@dataclass(frozen=True, slots=True)
class Varied:
    """What is simulated if a parameter is varied.

    Attributes:
        machines: All of them.
        workloads: All of them.
        policies: All of them.
        column: The parameter's column, see `ampsched.parameters`.
    """

    machines: list[Any]
    workloads: list[Any]
    policies: list[Any]
    column: str


@dataclass(frozen=True, slots=True)
class Over:
    """A parameter and its values.

    Attributes:
        key: The parameter: ``n``, ``workload:n``, ``colab:decay``, ``big`` (cores of a cluster), ``big@`` (its clock).
        values: As texts, in the order given.
    """

    key: str
    values: tuple[str, ...]

    @staticmethod
    def of(given: OverLike) -> Over:
        """Reads what is given.

        Raises:
            InputError: If it is not of that form, or there are too few or too many values.
        """
        if isinstance(given, str):
            key, equals, text = given.strip().partition("=")
            if not key or not equals:
                raise InputError(f'over "{given}" is not of the form PARAMETER=VALUES, such as n=1..16')
            return Over(
                key, _checked(key, [value for item in text.split(",") for value in _values(key, item)])
            )
        if len(given) != 1:
            raise InputError(f"over names {len(given)} parameters, not one")
        ((key, some),) = given.items()
        if isinstance(some, str):
            return Over.of(f"{key}={some}")
        return Over(key, _checked(key, [as_number(float(value)) for value in some]))

    def varied(
        self, machines: Sequence[Any], workloads: Sequence[Any], policies: Sequence[Any], catalog: Catalog
    ) -> Varied:
        """What is simulated: each machine, workload or policy that has the parameter, with each of its values.

        Args:
            machines: Texts or machines.
            workloads: Texts or workloads.
            policies: Texts or anything else that is a policy.
            catalog: Where names are looked up.

        Raises:
            InputError: If nothing has such a parameter, several have it, or it is set already.
        """
        known = list(_known(machines, workloads, policies, catalog))
        found = [each for each in known if not each.fixed and self.key in (each.name, each.full)]
        if not found:
            raise self._unknown(known)
        owners = list(dict.fromkeys(each.full for each in found))
        if len(owners) > 1:
            raise InputError(f'over: "{self.key}" may be {" or ".join(owners)}: which?')
        one = found[0]
        lists: dict[Axis, Sequence[Any]] = {"machine": machines, "workload": workloads, "policy": policies}
        having = [each.number for each in found]
        without = [each for number, each in enumerate(lists[one.axis]) if number not in having]
        if one.axis != "policy" and without:
            raise InputError(f"over: {one.axis} {without[0]} has no parameter {one.name} (leave it out)")
        made = {
            axis: [
                new
                for number, each in enumerate(some)
                for new in (self._each(one, each) if axis == one.axis and number in having else [each])
            ]
            for axis, some in lists.items()
        }
        return Varied(made["machine"], made["workload"], made["policy"], one.column)

    def _unknown(self, known: Sequence[_Known]) -> InputError:
        """The error about a parameter that nothing has: what was perhaps meant, else those of its owner, else all."""
        owner, _, name = self.key.rpartition(":")
        mine = [each for each in known if owner in (each.owner, each.of)] if owner else []
        fixed = [each for each in mine or known if each.fixed]
        for each in fixed:
            if self.key in (each.name, each.full):
                return InputError(f'over: "{self.key}" cannot be varied: {each.fixed}')
        can = [each for each in mine or known if not each.fixed]
        what, name = (f"parameter of {owner}", name) if mine else ("parameter", self.key)
        return InputError(f"over: {unknown(what, name, [each.name for each in can], _listed(can))}")

    def _each(self, one: _Known, given: object) -> list[object]:
        if isinstance(given, Machine):
            return [given.part([one.setting(value)]) for value in self.values]
        text = str(given)
        if any(part.startswith(one.setting("")) for part in split(text)[1]):
            raise InputError(f"over: {one.axis} {text} sets {one.name} already (leave it out there)")
        return [f"{text}:{one.setting(value)}" for value in self.values]


@dataclass(frozen=True, slots=True)
class _Known:
    """A parameter of the machine, workload or policy of that number."""

    axis: Axis
    number: int
    owner: str
    """In columns."""
    of: str
    """In words."""
    name: str
    fixed: str = ""
    """Why it has a single value; else empty."""

    @property
    def full(self) -> str:
        return f"{self.owner}:{self.name}"

    @property
    def column(self) -> str:
        return f"{self.owner}:{self.name.removesuffix(CLOCK)}{'_mhz' if self.name.endswith(CLOCK) else ''}"

    def setting(self, value: str) -> str:
        return f"{self.name}{value}" if self.name.endswith(CLOCK) else f"{self.name}={value}"


def _known(
    machines: Sequence[Any], workloads: Sequence[Any], policies: Sequence[Any], catalog: Catalog
) -> Iterator[_Known]:
    """All parameters that there are."""
    for number, each in enumerate(workloads):
        for name in catalog.parameters(each):
            yield _Known("workload", number, "workload", str(each), name)
    for number, each in enumerate(machines):
        machine = catalog.machine(each)
        for end in ("", CLOCK):
            for place, (cluster, *_) in enumerate(machine.clusters):
                clocks = machine.frequencies_mhz(place) if end else []
                one = (
                    f"{cluster} of {machine.name} has one clock, {clocks[0]} MHz" if len(clocks) == 1 else ""
                )
                yield _Known("machine", number, "machine", machine.name, f"{cluster}{end}", one)
    for number, each in enumerate(policies):
        name, names = _of_policy(each)
        for parameter in names:
            yield _Known("policy", number, name, name, parameter)


def _of_policy(given: object) -> tuple[str, list[str]]:
    """The name of a policy that is a text, and its parameters; of others there are none to set."""
    if not isinstance(given, str):
        return str(given), []
    if is_file(given):
        cls, *_ = load(given, Policy)
        return cls.label(), list(numbers_of(cls))
    name, _ = split_shares(given)
    return name, [each.name for each in policy_info(name).params]


def _listed(known: Sequence[_Known]) -> str:
    """The parameters that there are, by whose they are."""
    by_owner: dict[str, list[str]] = {}
    for each in known:
        by_owner.setdefault(each.of, []).append(each.name)
    told = [f"{', '.join(dict.fromkeys(names))} of {of}" for of, names in by_owner.items()]
    return f"there are {'; '.join(told)}" if told else "there are none"


def _checked(key: str, values: Sequence[str]) -> tuple[str, ...]:
    VALUES.check(f"over {key}: number of values", len(values))
    for value in values:
        if values.count(value) > 1:
            raise InputError(f"over {key} names {value} twice")
    return tuple(values)


def _values(key: str, item: str) -> list[str]:
    """The values of an item of a list."""
    match = _ITEM.fullmatch(item.strip())
    if match is None:
        raise InputError(f'over {key}: "{item}" is no number and no range; write {FORMS}')
    if match[2] is None:
        return [as_number(float(match[1]))]
    what, low, high, sign = f"over {key}={item.strip()}", float(match[1]), float(match[2]), match[3]
    if low >= high:
        raise InputError(f"{what} is empty: the first number is not below the second")
    by = float(match[4]) if sign else 1.0
    if sign is None and not (low.is_integer() and high.is_integer()):
        raise InputError(
            f"{what} is not between whole numbers: say how many values ({item}:6) or a step ({item}/0.1)"
        )
    if sign == "x":
        Range(1, without_low=True).check(f"{what}: factor", by)
        Range(0, without_low=True).check(f"{what}: the first number", low)
        return _grown(what, low, high, by)
    if sign == ":":
        if not by.is_integer():
            raise InputError(f"{what}: {as_number(by)} is no number of values")
        VALUES.check(f"{what}: number of values", int(by))
        by = (high - low) / (by - 1)
    Range(0, without_low=True).check(f"{what}: step", by)
    count = int((high - low) / by + 1e-9) + 1
    VALUES.check(f"{what}: number of values", count)
    return [as_number(low + by * number) for number in range(count)]


def _grown(what: str, low: float, high: float, by: float) -> list[str]:
    found = [low]
    while found[-1] * by <= high * (1 + 1e-9):
        VALUES.check(f"{what}: number of values", max(2, len(found)))
        found.append(found[-1] * by)
    return [as_number(value) for value in found]
