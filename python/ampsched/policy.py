"""Policies: the shipped ones with parameters, and the base class for policies written in Python."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, ClassVar, Literal, get_args

from ampsched import _core, policy_file
from ampsched._core import Event, InputError, Pick, Plan, Topology, View
from ampsched.naming import unknown
from ampsched.registry import Registered
from ampsched.rules import Rules
from ampsched.spec import registered_spec
from ampsched.units import NS_PER_MS

EventGroup = Literal["lifecycle", "blocking", "dispatch"]
EVENT_GROUPS: tuple[EventGroup, ...] = get_args(EventGroup)


class Policy:
    """Base class of policies written in Python, for exploration.

    A policy decides at two speeds. The fast plane (which thread next, for how long) is that of a shipped
    policy, `base`, with the `rules` replaced that are given here. The slow plane is `epoch` and `on_event`: they
    look at a `View` and write changes into a `Plan`. A single fast decision can be taken over by overriding `place`,
    `pick`, `slice_ns` or `preempts`; each call then costs about a microsecond more.

    Threads, cores and applications are numbers. Times are whole nanoseconds.

    Example:
        >>> class BigForFast(Policy):
        ...     epoch_ms = 10
        ...     def epoch(self, view, plan):
        ...         for thread in view.threads():
        ...             fast = view.speedup(thread) > 2.0
        ...             plan.allow(thread, self.topology.big_cores() if fast else self.all_cores())
    """

    name: ClassVar[str] = ""
    """Label in results; the class's name if empty."""
    base: ClassVar[str] = "cfs"
    """Shipped policy, with parameters (``cfs:latency_ms=6``), whose rules are used; not its slow plane."""
    rules: ClassVar[Rules] = {}
    """Rules of the base that are replaced."""
    epoch_ms: ClassVar[float | None] = None
    """Period of `epoch`; must be given if `epoch` is overridden."""
    events: ClassVar[Sequence[EventGroup]] = EVENT_GROUPS
    """Groups of events that `on_event` hears of: added and exited; woken and blocked; started and stopped."""
    load_tracking: ClassVar[Literal["by_work", "by_time"] | None] = None
    """Whether `View.load`, `View.util` and `View.core_util` are kept: as in Linux since 5.1 (by work, the same on every
    core at every frequency) or as in older kernels (by time). A base that needs it chooses itself."""
    work_conserving: ClassVar[bool] = False
    """Promises that no core idles while a thread that may run there waits; checked when checks are on."""

    topology: Topology
    """The machine, set before `start`."""

    def start(self, topology: Topology) -> None:
        """Is called once, before the simulation starts."""

    def all_cores(self) -> list[int]:
        """The numbers of all cores."""
        return list(range(self.topology.core_count))

    def epoch(self, view: View, plan: Plan) -> None:
        """Looks at the system every `epoch_ms` and asks for changes."""

    def on_event(self, view: View, event: Event, plan: Plan) -> None:
        """Hears of an event and may ask for changes."""

    def place(self, view: View, thread: int) -> int:
        """Returns the core for a thread that starts or wakes; it must be one that the thread may use.

        An overriding method is not told who woke the thread; `view.by_rules_place` knows.
        """
        return view.by_rules_place(thread)

    def pick(self, view: View, core: int) -> Pick:
        """Returns what a core does next."""
        return view.by_rules_pick(core)

    def slice_ns(self, view: View, thread: int, core: int) -> int:
        """Returns how long a thread may run on a core while others wait; at least 1,000 ns."""
        return view.by_rules_slice_ns(thread, core)

    def preempts(self, view: View, woken: int, running: int, core: int) -> bool:
        """Returns whether a woken thread interrupts the one that runs on the core where it was put."""
        return view.by_rules_preempts(woken, running, core)

    @classmethod
    def label(cls) -> str:
        """The policy's name in results."""
        return cls.name or cls.__name__

    def needs(self) -> dict[str, Any]:
        """What the simulator has to call, from the methods that the class overrides.

        Raises:
            InputError: If `epoch` is overridden without `epoch_ms`, or the other way round, a group of events is
                unknown, or the class has something whose name is nearly that of a member of `Policy`.
        """
        _refuse_misspelt(type(self))
        if self._overrides("epoch") != (self.epoch_ms is not None):
            raise InputError(f"policy {self.label()}: epoch and epoch_ms go together; define both or neither")
        if self.epoch_ms is not None and not 0.001 <= self.epoch_ms <= 1e6:
            raise InputError(f"policy {self.label()}: epoch_ms = {self.epoch_ms} is not within 0.001 to 1e6")
        if self.load_tracking not in (None, "by_work", "by_time"):
            raise InputError(
                f'policy {self.label()}: load_tracking = "{self.load_tracking}" is not None, "by_work" or "by_time"'
            )
        for group in self.events:
            if group not in EVENT_GROUPS:
                raise unknown(f"group of events of policy {self.label()}", group, EVENT_GROUPS)
        hears = self._overrides("on_event")
        return {
            "epoch_ns": None if self.epoch_ms is None else round(self.epoch_ms * NS_PER_MS),
            "load_tracking": self.load_tracking,
            **{group: hears and group in self.events for group in EVENT_GROUPS},
            "place": self._overrides("place"),
            "pick": self._overrides("pick"),
            "slice": self._overrides("slice_ns"),
            "preempts": self._overrides("preempts"),
            "work_conserving": self.work_conserving,
        }

    def _overrides(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(Policy, method)


@dataclass(frozen=True, slots=True)
class PolicyInfo(Registered):
    """A shipped policy, from the registry."""


def policies() -> tuple[PolicyInfo, ...]:
    """All shipped policies in alphabetical order."""
    return tuple(PolicyInfo.of(row) for row in _core.policies())


def policy_info(name: str) -> PolicyInfo:
    """The registry's row of a policy.

    Raises:
        InputError: If there is no policy of that name.
    """
    _core.check_policy(name, [])
    return next(info for info in policies() if info.name == name)


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """What runs: a shipped policy with parameters, or a Python one."""

    label: str
    """Name in results, parameters included."""
    name: str
    """Registry name; of a Python policy that of its base."""
    params: tuple[tuple[str, float], ...] = ()
    make: Callable[[], Policy] | None = None
    """Makes a fresh Python policy for each simulation; absent for shipped policies."""
    file: Path | None = None
    """The file that was named, of a policy that was loaded from one; its mistakes are reported as bad input."""

    @staticmethod
    def of(policy: "PolicyLike") -> "PolicySpec":
        """From ``"colab:literal=1"``, ``"FILE.py:CLASS"``, a subclass of `Policy`, an instance, or what makes one.

        An instance is copied for each simulation, so that none sees the state of another. Its label is its `name` with
        the numbers that its class declares and it has changed, so that several instances of one class can be compared.
        Parameters of a class in a file are its numbers: ``"FILE.py:CLASS:epoch_ms=20"``.

        Raises:
            InputError: If the policy or a parameter does not exist, or a value is out of its limits.
        """
        if isinstance(policy, PolicySpec):
            return policy
        if isinstance(policy, str):
            if policy_file.is_file(policy):
                return PolicySpec._of_file(policy)
            name, params = registered_spec(policy, "policy")
            _core.check_policy(name, params)
            return PolicySpec(policy.strip(), name, params)
        return PolicySpec._of_python(*_sample_of(policy))

    @staticmethod
    def _of_file(policy: str) -> "PolicySpec":
        cls, file, values = policy_file.load(policy, Policy)
        attributes = {key: _checked(cls, key, value) for key, value in values}

        def make() -> Policy:
            try:
                made = cls()
            except Exception as error:
                raise policy_file.mistake(file, error) from None
            for key, value in attributes.items():
                setattr(made, key, value)
            return made

        spec = PolicySpec._of_python(make(), make)
        label = _with_numbers(cls.label(), dict(values))
        return replace(spec, label=label, file=file)

    @staticmethod
    def _of_python(sample: Policy, make: Callable[[], Policy]) -> "PolicySpec":
        name, params = registered_spec(sample.base, "policy")
        _core.check_policy(name, params)
        sample.needs()
        return PolicySpec(_label_of(sample), name, params, make)


def _refuse_misspelt(cls: type[Policy]) -> None:
    """Refuses what a class defines under nearly the name of a member of `Policy`, unless its own code uses it.

    Raises:
        InputError: As nobody would ever call or read it.
    """
    members = [name for name in vars(Policy) if not name.startswith("_")] + ["topology"]
    own = [vars(each) for each in cls.__mro__ if issubclass(each, Policy) and each is not Policy]
    used = {name for names in own for value in names.values() for name in _names_in(value)}
    for name in (name for names in own for name in names):
        if name.startswith("_") or name in members or name in used:
            continue
        hint = _core.suggest(name, members)
        if hint.startswith("did you mean"):
            raise InputError(f'policy {cls.label()}: nothing uses "{name}" ({hint})')


def _names_in(value: object) -> Iterator[str]:
    """The names that the code of a method uses, the functions within it included."""
    if isinstance(value, property):
        value = value.fget
    elif isinstance(value, staticmethod | classmethod):
        value = value.__func__
    if isinstance(value, FunctionType):
        value = value.__code__
    if isinstance(value, CodeType):
        yield from value.co_names
        for each in value.co_consts:
            yield from _names_in(each)


def numbers_of(cls: type[Policy]) -> dict[str, float]:
    """The parameters of a class: the numbers that it declares, by name, with their defaults."""
    found: dict[str, float] = {}
    for each in reversed(cls.__mro__):
        own = {} if each in (Policy, object) else vars(each)
        found |= {n: v for n, v in own.items() if isinstance(v, int | float) and not n.startswith("_")}
    if "epoch_ms" in found:
        found["epoch_ms"] = float(found["epoch_ms"])  # it need not be a whole number, however it is declared
    return found


def _checked(cls: type[Policy], key: str, value: float) -> float:
    """The value for a number that a class declares.

    Raises:
        InputError: If it declares no such number, or one of another type.
    """
    known = numbers_of(cls)
    title = f"policy {cls.label()}"
    if key not in known:
        hint = _core.suggest(key, sorted(known)) if known else "the class declares no numbers"
        raise InputError(f'{title} has no parameter "{key}" ({hint})')
    if isinstance(known[key], bool) and value not in (0, 1):
        raise InputError(f"{title}: parameter {key} = {value:g} is not 0 or 1")
    if isinstance(known[key], int) and not value.is_integer():
        hint = f"write {key} = {known[key]:.1f} in the class to allow fractions"
        raise InputError(f"{title}: parameter {key} = {value:g} is not a whole number ({hint})")
    return type(known[key])(value)


def _label_of(policy: Policy) -> str:
    """The name of an instance, with the numbers in which it differs from its class."""
    declared = numbers_of(type(policy))
    own = {name: value for name, value in vars(policy).items() if name in declared}
    changed = {name: value for name, value in own.items() if value != declared[name]}
    return _with_numbers(policy.name or policy.label(), changed)


def _with_numbers(label: str, numbers: Mapping[str, float]) -> str:
    return ":".join([label, *(f"{name}={value:g}" for name, value in numbers.items())])


_WANTED = (
    "a policy is a name with parameters, a subclass of Policy, an instance, or a function that makes one"
)


def _sample_of(policy: "Policy | Callable[[], Policy]") -> tuple[Policy, Callable[[], Policy]]:
    if isinstance(policy, Policy):
        return policy, lambda: copy.deepcopy(policy)
    if not callable(policy):
        raise TypeError(f"{_WANTED}, not {policy!r}")
    sample = policy()
    if not isinstance(sample, Policy):
        raise TypeError(f"{_WANTED}, not {policy!r}")
    return sample, policy


PolicyLike = str | Policy | Callable[[], Policy] | PolicySpec
"""What every function of this package accepts as a policy."""
