"""Governors: who decides at which frequency a cluster of cores runs."""

from dataclasses import dataclass

from ampsched import _core
from ampsched.registry import Registered
from ampsched.spec import parse_spec


@dataclass(frozen=True, slots=True)
class GovernorInfo(Registered):
    """A governor, from the registry."""


def governors() -> tuple[GovernorInfo, ...]:
    """All governors in alphabetical order."""
    return tuple(GovernorInfo.of(row) for row in _core.governors())


@dataclass(frozen=True, slots=True)
class GovernorSpec:
    """A governor with parameters."""

    label: str
    """Name in results, parameters included."""
    name: str
    """Registry name."""
    params: tuple[tuple[str, float], ...] = ()

    @staticmethod
    def of(text: str) -> "GovernorSpec":
        """From ``"ondemand:up_threshold=80"``.

        Raises:
            InputError: If the governor or a parameter does not exist, or a value is out of its limits.
        """
        name, params = parse_spec(text, "governor")
        _core.check_governor(name, params)
        return GovernorSpec(text.strip(), name, params)
