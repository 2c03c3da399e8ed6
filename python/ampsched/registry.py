"""What a row of a registry says: of a policy, a task policy or a governor."""

import re
from dataclasses import dataclass
from typing import Any, Self

from ampsched._rows import RegistryRow
from ampsched.markdown import plain


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
    names: tuple[str, ...]
    """How people give these."""
    help: str

    def values(self) -> str:
        """What values it takes, for people."""
        if self.choices:
            return ", ".join(f"{number}: {choice}" for number, choice in enumerate(self.choices))
        if self.one_of:
            return ", ".join(self.names)
        return "0 or 1" if self.flag else f"{self.min:g} to {self.max:g}"

    def shown(self, value: float) -> str:
        """A value as people give it."""
        if self.choices:
            return self.choices[int(value)]
        return self.names[self.one_of.index(value)] if value in self.one_of else f"{value:g}"


@dataclass(frozen=True, slots=True)
class Registered:
    """A row of a registry."""

    name: str
    summary: str
    documentation: str
    source: str
    params: tuple[Param, ...]

    def part(self, name: str) -> str:
        """A part of the documentation as plain text.

        Args:
            name: Such as ``Purpose``, ``When to use`` or ``Limits``.

        Raises:
            KeyError: If the documentation has no such part.
        """
        found = re.search(rf"\*\*{re.escape(name)}\.\*\* (.*?)(?:\n\n|$)", self.documentation, re.DOTALL)
        if found is None:
            raise KeyError(name)
        return plain(found[1])

    @classmethod
    def of(cls, row: RegistryRow) -> Self:
        """From a row of the compiled part, which has the fields of this class."""
        fields: dict[str, Any] = {**row, "params": tuple(Param(**param) for param in row["params"])}
        return cls(**fields)
