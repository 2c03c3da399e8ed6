"""What measurements yield, and the registry of an experiment's measurements."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args, get_origin

from ampsched._core import InputError, suggest
from ampsched.statistics import Estimate, estimate, exactly

F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of a number, in claims and as printed."""

    per_one: int
    """How many of it are 1 in the numbers that are compared."""
    published: str
    """Format of the paper's number, in the unit."""
    ours: str
    """Format of our number, in the unit."""
    suffix: str = ""
    digits: str = ".2f"
    """Format of the ends of our interval or range, in the unit."""
    interval: bool = False
    """Whether our confidence interval is printed."""

    @property
    def is_share(self) -> bool:
        """Whether it is per cent, whose differences are counted in points."""
        return self.per_one != 1


UNITS = {
    "": Unit(1, "g", ".2f"),
    "%": Unit(100, "+g", "+.1f", " %", "+.1f", interval=True),
    "% of all": Unit(100, "g", ".0f", " %", ".0f", interval=True),
    "MHz": Unit(1, "g", ".0f", " MHz", ".0f"),
}
"""By name in claims: a plain number, a relative change, a share, a frequency."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number, with an interval if it is an estimate over seeds."""

    value: Estimate | float
    of: str = ""
    """What it was found in, if it is an extreme; printed behind it."""
    text: str = ""
    """Printed instead of it."""

    @property
    def mean(self) -> float:
        """The number alone."""
        return self.value.mean if isinstance(self.value, Estimate) else self.value

    @property
    def estimate(self) -> Estimate:
        """The number with its interval, which is the number alone if it is no estimate."""
        return self.value if isinstance(self.value, Estimate) else exactly(self.value)

    @property
    def numbers(self) -> tuple[float, float | None, float | None]:
        """Value, and the ends of its interval."""
        value = self.value
        return (value.mean, value.low, value.high) if isinstance(value, Estimate) else (value, None, None)

    def printed(self, unit: Unit) -> str:
        """Such as ``-11.2 % [-12.0, -10.4] (sync-2 on 2B2S)``."""
        return (self.text or _printed(self.value, unit)) + (f" ({self.of})" if self.of else "")


@dataclass(frozen=True, slots=True)
class Count:
    """How many of how many."""

    some: int
    all: int

    @property
    def mean(self) -> float:
        """Their share."""
        return self.some / self.all

    @property
    def numbers(self) -> tuple[float, None, None]:
        """Their share."""
        return self.mean, None, None

    def printed(self, _unit: Unit) -> str:
        """Such as ``7 of 9``."""
        return f"{self.some} of {self.all}"


@dataclass(frozen=True, slots=True)
class Range:
    """From the least of some values to the greatest."""

    low: float
    high: float
    digits: str = ""
    """Format, if not the unit's."""

    @classmethod
    def of(cls, values: Sequence[float], digits: str = "") -> "Range":
        """The range of values."""
        return cls(min(values), max(values), digits)

    @property
    def numbers(self) -> tuple[float, float, float]:
        """The greatest value, and both ends."""
        return self.high, self.low, self.high

    def printed(self, unit: Unit) -> str:
        """Such as ``0.21 to 0.61``."""
        low, high = (
            f"{unit.per_one * value:{self.digits or unit.digits}}" for value in (self.low, self.high)
        )
        return f"{low} to {high}{unit.suffix}"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two numbers of which the first should be the lower one."""

    first: Estimate
    second: Estimate
    difference: Estimate
    """The first minus the second, seed by seed."""

    @classmethod
    def of(cls, first: Sequence[float], second: Sequence[float]) -> "Pair":
        """Two numbers of which there are values with the same seeds."""
        differences = [one - other for one, other in zip(first, second, strict=True)]
        return cls(estimate(first), estimate(second), estimate(differences))

    @property
    def numbers(self) -> tuple[float, float, float]:
        """Their difference, and the ends of its interval."""
        return self.difference.mean, self.difference.low, self.difference.high

    def printed(self, unit: Unit) -> str:
        """Such as ``-16.4 % [-17.3, -15.4] against -22.8 %``."""
        return f"{_printed(self.first, unit)} against {_printed(self.second, unit)}"


@dataclass(frozen=True, slots=True)
class Name:
    """What has a property, such as the workload with the greatest loss."""

    name: str
    text: str = ""
    """Printed instead of it."""

    @property
    def numbers(self) -> tuple[None, None, None]:
        """None: it is no number."""
        return None, None, None

    def printed(self, _unit: Unit) -> str:
        """The name."""
        return self.text or self.name


Measured = Number | Count | Range | Pair | Name
KINDS = {Number: "a number", Count: "a count", Range: "a range", Pair: "a pair of numbers", Name: "a name"}


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measurement with its arguments."""

    name: str
    yields: type[Measured]
    function: Callable[..., Measured]
    arguments: Mapping[str, object]

    def __call__(self, results: object) -> Measured:
        """Measures results of the part that the measurement belongs to."""
        return self.function(results, **self.arguments)


class Measurements:
    """The measurements of an experiment's part by name.

    A measurement is a function of the part's results and, by keyword, of what its claims say. Its
    annotations tell what it yields and what its arguments may be.
    """

    def __init__(self, readers: Mapping[Any, Callable[[str], object]] | None = None) -> None:
        """Makes an empty registry.

        Args:
            readers: What makes an argument's value from its text, by the type in the annotation; they raise
                `InputError`.
        """
        self._readers = readers or {}
        self._functions: dict[str, Callable[..., Any]] = {}

    def __call__(self, function: F) -> F:
        """Registers a measurement under its own name."""
        self._functions[function.__name__] = function
        return function

    def names(self) -> tuple[str, ...]:
        """All names."""
        return tuple(self._functions)

    def find(self, name: str, arguments: Mapping[str, object]) -> Measurement:
        """A measurement with arguments as a claim states them.

        Raises:
            InputError: If there is no such measurement, or if it has other arguments or values.
        """
        if name not in self._functions:
            raise InputError(f'unknown measurement "{name}" ({suggest(name, self.names())})')
        function = self._functions[name]
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())[1:]
        known = [parameter.name for parameter in parameters]
        for given in arguments:
            if given not in known:
                raise InputError(f'measurement "{name}" has no "{given}" ({suggest(given, known)})')
        for parameter in parameters:
            if parameter.default is parameter.empty and parameter.name not in arguments:
                raise InputError(f'measurement "{name}" needs "{parameter.name}"')
        hints = {parameter.name: parameter.annotation for parameter in parameters}
        values = {key: self._read(key, value, hints[key]) for key, value in arguments.items()}
        return Measurement(name, signature.return_annotation, function, values)

    def _read(self, key: str, value: object, hint: object) -> object:
        if hint in self._readers and isinstance(value, str):
            return self._readers[hint](value)
        if get_origin(hint) is Literal and value not in get_args(hint):
            choices = [str(choice) for choice in get_args(hint)]
            raise InputError(f'unknown {key} "{value}" ({suggest(str(value), choices)})')
        if isinstance(hint, type) and not isinstance(value, hint):
            raise InputError(f"{key} {value!r} is no {hint.__name__}")
        return value


def one_of(what: str, known: Sequence[str]) -> Callable[[str], str]:
    """A reader of arguments that takes one of the known names and refuses others."""

    def read(text: str) -> str:
        if text not in known:
            raise InputError(f'unknown {what} "{text}" ({suggest(text, known)})')
        return text

    return read


def some_of(what: str, known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """The same for several names, separated by commas."""
    one = one_of(what, known)
    return lambda text: tuple(one(name) for name in text.split(","))


def _printed(value: Estimate | float, unit: Unit) -> str:
    if not isinstance(value, Estimate):
        return f"{unit.per_one * value:{unit.ours}}{unit.suffix}"
    mean, low, high = (unit.per_one * each for each in (value.mean, value.low, value.high))
    shown = unit.interval and value.n > 1
    interval = f" [{low:{unit.digits}}, {high:{unit.digits}}]" if shown else ""
    return f"{mean:{unit.ours}}{unit.suffix}{interval}"
