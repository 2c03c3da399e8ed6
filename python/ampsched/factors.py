"""Where policies learn how much faster a thread runs on a big core."""

from dataclasses import dataclass
from typing import Literal

from ampsched import _core
from ampsched._core import InputError, Machine
from ampsched.models import load_models, models_for
from ampsched.naming import unknown
from ampsched.spec import parse_spec
from ampsched.units import NS_PER_MS


@dataclass(frozen=True, slots=True)
class Factors:
    """A source of speed-ups.

    `kind` is ``oracle`` (the truth), ``noisy`` (the truth as it was up to `stale_ms` ago, times a log-normal
    error of coefficient of variation `cv`), ``sampled`` (instructions per time that the thread has shown on both
    kinds of core, looked at every `interval_ms`), ``predicted`` (by a trained `model` from simulated performance
    counters, each of which errs by `cv`, read anew after `stale_ms`), ``constant`` (`value` for every thread) or
    ``none``.

    `model` is the name of a shipped model or the path of a model file; empty: the shipped one for the machine's cores.
    """

    kind: Literal["oracle", "noisy", "sampled", "predicted", "constant", "none"] = "oracle"
    cv: float = 0.0
    stale_ms: float = 0.0
    interval_ms: float = 2000.0
    value: float = 1.0
    model: str = ""

    def __post_init__(self) -> None:
        _check_range("cv", self.cv, 0.0, 10.0)
        _check_range("stale_ms", self.stale_ms, 0.0, 1e6)
        _check_range("interval_ms", self.interval_ms, 0.1, 1e6)
        _check_range("value", self.value, 0.01, 100.0)

    @staticmethod
    def parse(text: str) -> "Factors":
        """Reads a source and its parameters.

        ``oracle``, ``noisy:cv=0.2:stale_ms=100``, ``sampled``, ``sampled:interval_ms=200``, ``predicted``,
        ``predicted:model.json:cv=0.01``, ``constant:1.5`` or ``none``.

        Raises:
            InputError: If the text is none of these, or a number is out of its range.
        """
        name, _, rest = text.partition(":")
        if name == "constant":
            rest = f"value={rest.removeprefix('value=')}"
        model = ""
        if name == "predicted" and rest and "=" not in rest.split(":")[0]:
            model, _, rest = rest.partition(":")
        known: dict[str, tuple[str, ...]] = {
            "oracle": (),
            "noisy": ("cv", "stale_ms"),
            "sampled": ("interval_ms",),
            "predicted": ("cv", "stale_ms"),
            "constant": ("value",),
            "none": (),
        }
        if name not in known:
            raise unknown("source of factors", name, known)
        params = dict(parse_spec(f"{name}:{rest}" if rest else name, "factors")[1])
        for key in params:
            if key not in known[name]:
                hint = f"it takes {', '.join(known[name])}" if known[name] else "it takes none"
                raise InputError(f'factors: source {name} has no parameter "{key}" ({hint})')
        return Factors(name, **params, model=model)  # type: ignore[arg-type]  # name is a key of `known`

    @staticmethod
    def of(value: "str | Factors") -> "Factors":
        """From a text, see `parse`; what is not one is returned as it is."""
        return Factors.parse(value) if isinstance(value, str) else value

    def __str__(self) -> str:
        match self.kind:
            case "noisy":
                return f"noisy:cv={self.cv:g}:stale_ms={self.stale_ms:g}"
            case "sampled":
                return f"sampled:interval_ms={self.interval_ms:g}"
            case "predicted":
                model = f":{self.model}" if self.model else ""
                return f"predicted{model}:cv={self.cv:g}:stale_ms={self.stale_ms:g}"
            case "constant":
                return f"constant:{self.value:g}"
            case _:
                return self.kind

    def source(self, machine: Machine) -> _core.FactorSource:
        """The same for a simulation on a machine.

        Raises:
            InputError: If there is no such model, or none for the machine's cores.
        """
        match self.kind:
            case "oracle":
                return _core.FactorSource.oracle()
            case "noisy":
                return _core.FactorSource.noisy(self.cv, round(self.stale_ms * NS_PER_MS))
            case "sampled":
                return _core.FactorSource.sampled(round(self.interval_ms * NS_PER_MS))
            case "predicted":
                models = load_models(self.model) if self.model else _models_for(machine)
                if models is None:
                    return _core.FactorSource.constant(1.0)
                return _core.FactorSource.predicted(models, self.cv, round(self.stale_ms * NS_PER_MS))
            case "constant":
                return _core.FactorSource.constant(self.value)
            case "none":
                return _core.FactorSource.missing()


def _models_for(machine: Machine) -> _core.Models | None:
    """The shipped models for a machine; none if all its cores are equally fast, where every speed-up is 1."""
    if len({cluster[4] for cluster in machine.clusters}) == 1:
        return None
    return models_for(machine)


def _check_range(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise InputError(f"factors: {name} = {value:g} is not within {low:g} to {high:g}")
