"""What a row of a registry says: of a policy, a task policy or a governor."""

from dataclasses import dataclass
from typing import Any, Self

from ampsched._rows import RegistryRow


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of something that is registered."""

    name: str
    default: float
    min: float
    max: float
    flag: bool
    choices: tuple[str, ...]
    """What the numbers from 0 stand for, if they stand for something."""
    one_of: tuple[float, ...]
    """All that it may be, if that is not everything between the limits."""
    help: str

    def values(self) -> str:
        """What values it takes, for people."""
        if self.choices:
            return ", ".join(f"{number}: {choice}" for number, choice in enumerate(self.choices))
        if self.one_of:
            return ", ".join(f"{value:g}" for value in self.one_of)
        return "0 or 1" if self.flag else f"{self.min:g} to {self.max:g}"


@dataclass(frozen=True, slots=True)
class Registered:
    """A row of a registry."""

    name: str
    summary: str
    documentation: str
    source: str
    params: tuple[Param, ...]

    @classmethod
    def of(cls, row: RegistryRow) -> Self:
        """From a row of the compiled part, which has the fields of this class."""
        fields: dict[str, Any] = {**row, "params": tuple(Param(**param) for param in row["params"])}
        return cls(**fields)
