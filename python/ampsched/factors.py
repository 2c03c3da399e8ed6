"""Where policies learn how much faster a thread runs on a big core."""

from dataclasses import dataclass
from typing import Literal

from ampsched import _core
from ampsched._core import InputError
from ampsched.spec import parse_spec
from ampsched.units import NS_PER_MS


@dataclass(frozen=True, slots=True)
class Factors:
    """A source of speed-ups.

    `kind` is ``oracle`` (the truth), ``noisy`` (the truth as it was up to `stale_ms` ago, times a log-normal
    error of coefficient of variation `cv`), ``sampled`` (instructions per time that the thread has shown on both
    kinds of core, looked at every `interval_ms`), ``constant`` (`value` for every thread) or ``none``.
    """

    kind: Literal["oracle", "noisy", "sampled", "constant", "none"] = "oracle"
    cv: float = 0.0
    stale_ms: float = 0.0
    interval_ms: float = 2000.0
    value: float = 1.0

    def __post_init__(self) -> None:
        _check_range("cv", self.cv, 0.0, 10.0)
        _check_range("stale_ms", self.stale_ms, 0.0, 1e6)
        _check_range("interval_ms", self.interval_ms, 0.1, 1e6)
        _check_range("value", self.value, 0.01, 100.0)

    @staticmethod
    def parse(text: str) -> "Factors":
        """Reads ``oracle``, ``noisy:cv=0.2:stale_ms=100``, ``sampled``, ``sampled:interval_ms=200``, ``constant:1.5`` or ``none``.

        Raises:
            InputError: If the text is none of these, or a number is out of its range.
        """
        name, _, rest = text.partition(":")
        if name == "constant":
            rest = f"value={rest.removeprefix('value=')}"
        known: dict[str, tuple[str, ...]] = {
            "oracle": (),
            "noisy": ("cv", "stale_ms"),
            "sampled": ("interval_ms",),
            "constant": ("value",),
            "none": (),
        }
        if name not in known:
            raise InputError(f'factors: unknown source "{name}" ({_core.suggest(name, list(known))})')
        params = dict(parse_spec(f"{name}:{rest}" if rest else name, "factors")[1])
        for key in params:
            if key not in known[name]:
                hint = f"it takes {', '.join(known[name])}" if known[name] else "it takes none"
                raise InputError(f'factors: source {name} has no parameter "{key}" ({hint})')
        return Factors(name, **params)  # type: ignore[arg-type]  # name is a key of `known`

    def __str__(self) -> str:
        match self.kind:
            case "noisy":
                return f"noisy:cv={self.cv:g}:stale_ms={self.stale_ms:g}"
            case "sampled":
                return f"sampled:interval_ms={self.interval_ms:g}"
            case "constant":
                return f"constant:{self.value:g}"
            case _:
                return self.kind

    def source(self) -> _core.FactorSource:
        """The same for the simulator."""
        match self.kind:
            case "oracle":
                return _core.FactorSource.oracle()
            case "noisy":
                return _core.FactorSource.noisy(self.cv, round(self.stale_ms * NS_PER_MS))
            case "sampled":
                return _core.FactorSource.sampled(round(self.interval_ms * NS_PER_MS))
            case "constant":
                return _core.FactorSource.constant(self.value)
            case "none":
                return _core.FactorSource.missing()


def _check_range(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise InputError(f"factors: {name} = {value:g} is not within {low:g} to {high:g}")
