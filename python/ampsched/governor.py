"""Governors: who decides at which frequency a cluster of cores runs."""

from dataclasses import dataclass

from ampsched import _core
from ampsched._core import InputError
from ampsched.registry import Registered
from ampsched.spec import registered_spec


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
        name, params = registered_spec(text, "governor")
        _core.check_governor(name, params)
        return GovernorSpec(text.strip(), name, params)


@dataclass(frozen=True, slots=True)
class Governors:
    """The governors of a machine's clusters: pairs of a cluster's name, or None for all others, and a governor.

    Clusters without one stay at their highest frequency. From the first time that a policy sets a cluster's frequency
    itself, that cluster has no governor any more. Runs alone, with which others are compared, have none: they are at
    the highest frequency.
    """

    entries: tuple[tuple[str | None, GovernorSpec], ...] = ()

    @staticmethod
    def parse(text: str) -> "Governors":
        """Reads ``none``, ``schedutil``, ``ondemand:up_threshold=80`` or ``big=performance,little=powersave``.

        Raises:
            InputError: If a governor or a parameter does not exist, a value is out of its limits, or a cluster is named
                twice.
        """
        if text.strip() == "none":
            return Governors()
        entries = tuple(_entry(item.strip()) for item in text.split(","))
        clusters = [cluster for cluster, _ in entries]
        for cluster in clusters:
            if clusters.count(cluster) > 1:
                whose = "all clusters" if cluster is None else f"cluster {cluster}"
                raise InputError(f'governor: "{text}" gives two governors for {whose}')
        return Governors(entries)

    @staticmethod
    def of(value: "str | Governors") -> "Governors":
        """From a text, see `parse`; what is not one is returned as it is."""
        return Governors.parse(value) if isinstance(value, str) else value

    def __str__(self) -> str:
        labels = (
            spec.label if cluster is None else f"{cluster}={spec.label}" for cluster, spec in self.entries
        )
        return ",".join(labels) or "none"

    def specs(self) -> list[tuple[str | None, str, tuple[tuple[str, float], ...]]]:
        """Cluster, name and parameters of each, for the simulator."""
        return [(cluster, spec.name, spec.params) for cluster, spec in self.entries]


def _entry(text: str) -> tuple[str | None, GovernorSpec]:
    """A governor with the cluster that is named before it, if any: an equals sign before the first colon."""
    head, colon, rest = text.partition(":")
    cluster, equals, name = head.partition("=")
    if equals and not cluster:
        raise InputError(f'governor: "{text}" names no cluster before "="')
    return (cluster, GovernorSpec.of(name + colon + rest)) if equals else (None, GovernorSpec.of(text))
