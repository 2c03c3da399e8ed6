"""What can be said of how simulations are run, each declared once.

From a declaration follow the keyword argument of `ampsched.simulate`, `explain`, `compare` and `references`,
its entry in their documentation, its check, and the option of each command that simulates.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    TypedDict,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from ampsched._core import InputError
from ampsched.catalog import Catalog
from ampsched.factors import Factors
from ampsched.governor import Governors
from ampsched.naming import check_known
from ampsched.noise import Noise
from ampsched.overhead import Overhead
from ampsched.ranges import Range

CoreOrder = Literal["as-is", "big-first", "little-first"]
CoreOrders = Literal["both", "big-first", "little-first", "as-is"]
SEED_MAX = 2**64 - 1
REPETITIONS_MAX = 10_000
MS_MAX = 1e9
"""Longest time of a simulation that can be asked for or about, in ms."""
LIMIT_S_MAX = 1e6
FACTOR_MAX = 1e12
"""Greatest ratio of speeds, and greatest speed of data in MB/s."""


@dataclass(frozen=True, slots=True)
class Option:
    """How a setting is given on the command line, if not by its own name and as itself."""

    flag: str
    type: object
    help: str
    read: Callable[[Any], object] = lambda value: value
    """Makes the setting's value of what was given."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is declared of a setting beside its name and type."""

    default: object
    help: str
    """What it means, in sentences."""
    metavar: str | None = None
    """What stands for its value in a command's help; none for choices and flags."""
    range: Range | None = None
    read: Callable[[Any], object] | None = None
    """Makes an object of a text, and leaves such an object as it is; raises `InputError`."""
    short: str | None = None
    """Its option in short."""
    option: Option | None = None

    def checked(self, name: str, type_: object, value: object) -> object:
        """The value, as an object if it was a text.

        Raises:
            InputError: If it is out of its range, no choice, or a text that means nothing.
        """
        if value is None:
            return value
        if self.read:
            return self.read(value)
        if self.range:
            self.range.check(name, cast(float, value))
        if get_origin(type_) is Literal:
            check_known(f"value of {name}", str(value), get_args(type_))
        return value


UntilMs = Annotated[
    float | None,
    Setting(
        None,
        "Stop at this simulated time, even if programs still run.",
        "MS",
        Range(0, MS_MAX, without_low=True),
    ),
]


class AloneSettings(TypedDict, total=False):
    """How programs are run; when a program runs alone to compare others with it, too."""

    seed: Annotated[
        int,
        Setting(1, "Seed of all random amounts; with --repeat, the first of them.", "N", Range(0, SEED_MAX)),
    ]
    factors: Annotated[
        str | Factors,
        Setting(
            "oracle",
            "Where policies get speed-ups from: oracle, noisy:cv=0.2:stale_ms=100, sampled, predicted or "
            "predicted:MODEL (a trained model and simulated counters), constant:1.5 or none.",
            "SOURCE",
            read=Factors.of,
        ),
    ]
    noise: Annotated[
        str | Noise,
        Setting(
            "auto",
            "What the system does beside the programs, by interrupts and kernel threads: none, idle, busy, or a file "
            "(.toml); auto: idle beside a recording that is named by its file, else none. "
            "Programs that run alone for comparison get the same noise.",
            "NOISE",
            read=Noise.of,
        ),
    ]
    energy: Annotated[
        bool,
        Setting(
            False,
            "Account for power, energy and heat; the machine must state its power.",
        ),
    ]
    repetitions: Annotated[
        int | None,
        Setting(
            None,
            "Restart programs that finish, with other random amounts, until each has finished N times; "
            "then stop. A program's turnaround is the geometric mean over its repetitions (the protocol of "
            "Prop-SP).",
            "N",
            Range(1, REPETITIONS_MAX),
        ),
    ]
    limit_s: Annotated[
        float,
        Setting(
            3600.0,
            "Fail if a workload has not ended by then (simulated seconds).",
            "S",
            Range(0, LIMIT_S_MAX, without_low=True),
        ),
    ]
    check: Annotated[bool, Setting(False, "Check the simulator's invariants after every event (slow).")]


class MixSettings(AloneSettings, total=False):
    """How several programs are run together, and a policy is judged by them."""

    overhead: Annotated[
        str | Overhead,
        Setting(
            "none",
            "What the policy's own work costs: none, decision_ns=150 or decision_ns=150:epoch_us=20.",
            "COSTS",
            read=Overhead.of,
        ),
    ]
    governor: Annotated[
        str | Governors,
        Setting(
            "none",
            "What sets the frequencies: none (always the highest), schedutil, ondemand:up_threshold=80, or by "
            "cluster big=performance,little=powersave.",
            "NAMES",
            read=Governors.of,
        ),
    ]


class RunSettings(MixSettings, total=False):
    """How one simulation is run."""

    core_order: Annotated[
        CoreOrder,
        Setting(
            "as-is",
            "Whether the cores are numbered as the machine says, from the biggest or from the littlest on. "
            "Cores that a program names are those of the machine as it says.",
        ),
    ]
    until_ms: UntilMs


class BatchSettings(TypedDict, total=False):
    """How many simulations are run."""

    jobs: Annotated[
        int,
        Setting(0, "Processors to use; 0: all. Results do not depend on it.", "N", Range(0), short="-j"),
    ]


class CatalogSettings(TypedDict, total=False):
    """What the names of machines and workloads mean."""

    catalog: Annotated[
        Catalog | None,
        Setting(
            None,
            "Where names are looked up; the shipped catalogue by default.",
            "FILE",
            short="-f",
            option=Option(
                "--file",
                list[Path] | None,
                "Read this .toml file, too: profiles, programs, core types. Repeatable.",
                lambda files: Catalog.shipped().with_files(*files) if files else None,
            ),
        ),
    ]


class SimulateSettings(RunSettings, CatalogSettings, total=False):
    """Settings of `simulate` and `explain`."""


class OrderedSettings(MixSettings, BatchSettings, CatalogSettings, total=False):
    """Settings of what is run in several orders of the cores."""

    core_order: Annotated[
        CoreOrders,
        Setting(
            "both",
            "Whether the cores are numbered from the biggest, from the littlest on or as the machine says; both: "
            "run both orders and average, as COLAB does. If all cores are equal, one is run. Cores that a program "
            "names are those of the machine as it says.",
        ),
    ]


class SweepSettings(OrderedSettings, total=False):
    """Settings of `sweep`, whose programs must end."""

    repeat: Annotated[int, Setting(1, "Number of seeds.", "N", Range(1, REPETITIONS_MAX), short="-r")]


class CompareSettings(OrderedSettings, total=False):
    """Settings of `compare`. Of a program that has not ended by `until_ms`, it is told how much it has done."""

    repeat: Annotated[
        int,
        Setting(
            5,
            "Number of seeds, the same ones for every policy.",
            "N",
            Range(1, REPETITIONS_MAX),
            short="-r",
        ),
    ]
    until_ms: UntilMs


def _microseconds(value: str | Sequence[float]) -> Sequence[float]:
    """Times of a text such as ``0.2,0.5``."""

    def number(item: str) -> float:
        try:
            return float(item)
        except ValueError:
            raise InputError(f'grab_us = "{value}": "{item}" is not a number') from None

    return [number(item) for item in value.split(",")] if isinstance(value, str) else value


class GraphSettings(TypedDict, total=False):
    """What the sizes of a task graph's data mean."""

    bandwidth_mb_s: Annotated[
        float | None,
        Setting(
            None,
            "Speed of data between workers in MB/s, for graphs that state sizes; without it data takes no time.",
            "MB/S",
            Range(0, FACTOR_MAX, without_low=True),
        ),
    ]


class TaskSettings(GraphSettings, total=False):
    """How a task graph is executed."""

    ratio: Annotated[
        float | None,
        Setting(
            None,
            "Speed of a big core over that of a little one; the graph's own by default.",
            "R",
            Range(0, FACTOR_MAX, without_low=True),
        ),
    ]
    grab_us: Annotated[
        str | Sequence[float] | None,
        Setting(
            None,
            "What taking a task from a shared queue costs, in µs, for each class of workers, such as 0.2,0.5 (0).",
            "LIST",
            read=_microseconds,
        ),
    ]


class ReferenceSettings(AloneSettings, BatchSettings, CatalogSettings, total=False):
    """Settings of `references`: of programs that run alone."""


S = TypeVar("S")
F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Declared:
    """A setting as declared."""

    name: str
    type: object
    setting: Setting


def catalog_of(settings: CatalogSettings) -> Catalog:
    """The catalogue that is meant."""
    return settings.get("catalog") or Catalog.shipped()


def declared(settings: type) -> Mapping[str, Declared]:
    """The declarations of a class of settings by name."""
    return _declared(settings)


@functools.cache
def _declared(settings: type) -> Mapping[str, Declared]:
    rows = {}
    for name, hint in get_type_hints(settings, include_extras=True).items():
        kind, setting = get_args(hint)
        rows[name] = Declared(name, kind, setting)
    return rows


def complete(settings: type[S], given: Mapping[str, object]) -> S:
    """All settings of a class: those given, checked, texts read, and the defaults of the others.

    Raises:
        InputError: If a value is wrong.
        TypeError: If something is given that is not one of them.
    """
    rows = declared(settings)
    if unknown := given.keys() - rows.keys():
        raise TypeError(f"{settings.__name__} has no {', '.join(sorted(unknown))}")
    return cast(
        S,
        {
            name: row.setting.checked(name, row.type, given.get(name, row.setting.default))
            for name, row in rows.items()
        },
    )


def only(settings: type[S], given: Mapping[str, object]) -> S:
    """Those of the given settings that a class declares."""
    return cast(S, {name: value for name, value in given.items() if name in declared(settings)})


def takes_settings(function: F) -> F:
    """Lets a function take complete and checked settings, ``**settings: Unpack[...]``.

    Its signature and documentation show them one by one.
    """
    signature = inspect.signature(function)
    (settings,) = get_args(signature.parameters["settings"].annotation)
    rows = declared(settings).values()
    own = [each for name, each in signature.parameters.items() if name != "settings"]
    shown = [
        inspect.Parameter(
            row.name, inspect.Parameter.KEYWORD_ONLY, default=row.setting.default, annotation=row.type
        )
        for row in rows
    ]
    whole = signature.replace(parameters=[*own, *shown])

    @functools.wraps(function)
    def wrapped(*args: object, **kwargs: object) -> object:
        bound = whole.bind(*args, **kwargs)
        given = only(settings, bound.kwargs)
        return function(*bound.args, **{**bound.kwargs, **complete(settings, given)})

    wrapped.__signature__ = whole  # type: ignore[attr-defined]
    entries = [f"    {row.name}: {row.setting.help}" for row in rows]
    wrapped.__doc__ = _with_entries(inspect.getdoc(function) or "", entries)
    return cast(F, wrapped)


def _with_entries(doc: str, entries: list[str]) -> str:
    """A docstring with more arguments at the end of its arguments."""
    arguments, raises, rest = doc.partition("\n\nRaises:")
    return "\n".join([arguments, *entries]) + raises + rest
