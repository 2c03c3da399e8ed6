"""Constants of policies that their papers do not print: what we have for them, and what else is tried."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from ampsched.policy import policy_info
from ampsched_lab.shared.conditions import Condition

FILE = "constants.toml"


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant, and all of the file that is said of it."""

    experiment: str
    policies: tuple[str, ...]
    """As they are run as judged; the first one names it."""
    name: str
    """The parameter."""
    paper: str
    """What the paper says of it."""
    why: str
    """We have our value."""
    tried: tuple[float, ...]

    @property
    def policy(self) -> str:
        """The policy that names it."""
        return self.policies[0]

    @property
    def ours(self) -> float:
        """The default of the parameter."""
        params = {param.name: param.default for param in policy_info(self.policy).params}
        return params[self.name]

    def condition_name(self, value: float) -> str:
        """Under which name claims are judged with another value."""
        return f"{self.policy}: {self.name} = {value:g}"

    def conditions(self, names: Mapping[str, str]) -> list[Condition]:
        """A condition for each value that is tried.

        Args:
            names: By policy the name that it has in claims, if that is another one.
        """
        return [
            Condition(
                self.condition_name(value),
                policies={names.get(each, each): f"{each}:{self.name}={value:g}" for each in self.policies},
            )
            for value in self.tried
        ]


def constants(experiment: str) -> list[Constant]:
    """Those of an experiment."""
    text = (files(__package__) / FILE).read_text(encoding="utf-8")
    rows = [
        Constant(**row | {key: tuple(row[key]) for key in ("policies", "tried")})
        for row in tomllib.loads(text)["constants"]
    ]
    return [row for row in rows if row.experiment == experiment]


def with_other_constants(experiment: str, names: Mapping[str, str] | None = None) -> tuple[Condition, ...]:
    """The conditions of all constants of an experiment; see `Constant.conditions`."""
    return tuple(each for constant in constants(experiment) for each in constant.conditions(names or {}))
