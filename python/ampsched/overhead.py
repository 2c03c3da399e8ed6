"""What the policy's own work costs, if it is to be charged."""

from dataclasses import dataclass

from ampsched._core import InputError
from ampsched.naming import unknown
from ampsched.spec import parse_spec

NS_MAX = 1e9
NS_PER_US = 1000


@dataclass(frozen=True, slots=True)
class Overhead:
    """Time that a policy takes from the programs.

    `decision_ns` is charged to a core whenever it is given a thread, `epoch_us` to the first core whenever the
    policy's slow plane looks at the system. Runs alone, with which others are compared, are not charged.
    """

    decision_ns: float = 0.0
    epoch_us: float = 0.0

    def __post_init__(self) -> None:
        for name in ("decision_ns", "epoch_us"):
            value = getattr(self, name)
            if not 0 <= value <= NS_MAX:
                raise InputError(f"overhead: {name} = {value:g} is not within 0 to {NS_MAX:g}")

    @staticmethod
    def parse(text: str) -> "Overhead":
        """Reads ``none``, ``decision_ns=150``, ``decision_ns=150:epoch_us=20``.

        Raises:
            InputError: If the text is none of these, or a number is out of its range.
        """
        if text.strip() == "none":
            return Overhead()
        params = dict(parse_spec(f"costs:{text}", "overhead")[1])
        for key in params:
            if key not in ("decision_ns", "epoch_us"):
                raise unknown("cost of an overhead", key, ["decision_ns", "epoch_us"])
        return Overhead(**params)

    @staticmethod
    def of(value: "str | Overhead") -> "Overhead":
        """From a text, see `parse`; what is not one is returned as it is."""
        return Overhead.parse(value) if isinstance(value, str) else value

    def __str__(self) -> str:
        if self == Overhead():
            return "none"
        return f"decision_ns={self.decision_ns:g}:epoch_us={self.epoch_us:g}"

    def costs_ns(self) -> tuple[int, int]:
        """Cost of a decision and of an epoch in whole ns."""
        return round(self.decision_ns), round(self.epoch_us * NS_PER_US)
