"""The model's own error: how far times that recordings predicted were off where the programs then ran.

The laboratory writes the table (`make -C lab truth-elsewhere`): programs were recorded on two equal cores, predicted
for machines with unequal ones, and run there under a policy that knows the cores, with known speed-ups. No seed shows
this error, and no interval of seeds contains it. Under Linux, which does not know the cores of those machines, times
are further off, as placing is chance; so are changes from Linux to that policy, each measured with one or two runs.
"""

import tomllib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ampsched.recording import Recording
from ampsched.uncertainty import ModelErrors

POLICY = "acfs"
"""Under which the programs of the table ran."""
TABLE = "model-errors.toml"
"""The table, among the shipped data."""
SETTINGS_TABLE = "setting-errors.toml"
"""That of numbers of threads and sets of cores, which `make -C lab settings` writes."""
REPORTED_TABLE = "reported-errors.toml"
"""What users have measured of both kinds of changes, which `make -C lab errors` writes."""
FOLLOWS_MOST = 0.9
"""Of programs of which less follows the cores, what they wait for decides."""
KINDS = {
    "waiting": "of which a tenth of the time or more follows no cores",
    "processes": "of several processes",
    "threads": "of one process",
}


@dataclass(frozen=True, slots=True)
class ModelError:
    """What is known of programs of a kind.

    Attributes:
        kind: One of `KINDS`.
        programs: How many there were.
        runs: How often they ran, each program once per machine.
        mean: Mean of the predicted times' absolute errors, as a part of the time.
        worst: The largest error: 0.1 is 10 % too long.
        change: ln(measured / predicted) of what the policy makes of the time under Linux.
        date: Of the table.
    """

    kind: str
    programs: int
    runs: int
    mean: float
    worst: float
    change: tuple[float, ...]
    date: str

    @property
    def of_changes(self) -> ModelErrors:
        """The errors of changes."""
        return ModelErrors(self.change)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "text": self.text}

    @property
    def text(self) -> str:
        """In words."""
        programs = f"{self.programs} programs {KINDS[self.kind]}"
        return f"{self.mean:.1%} off, at worst {self.worst:+.1%}, under {POLICY} ({programs})"


def kind_of(recording: Recording, follows: float) -> str:
    """Which of `KINDS` a program is, by its recording and the share of its time that follows the cores, 0 to 1."""
    if follows < FOLLOWS_MOST:
        return "waiting"
    return "processes" if len({process for _, process, *_ in recording.threads}) > 1 else "threads"


def model_error(recording: Recording, follows: float) -> ModelError:
    """What is known of programs such as a recorded one; see `kind_of`."""
    return model_error_of(kind_of(recording, follows))


def setting_errors() -> ModelErrors:
    """Errors of what other numbers of threads on some of the cores make of the time under Linux."""
    return ModelErrors(
        (*_read(SETTINGS_TABLE)["change"], *_reported(lambda row: row["question"] != "policy"))
    )


def model_error_of(kind: str) -> ModelError:
    """What is known of programs of one of `KINDS`."""
    table = _read(TABLE)
    found = table[kind]
    reported = _reported(lambda row: row["question"] == "policy" and row["kind"] == kind)
    return ModelError(kind=kind, date=table["date"], **{**found, "change": (*found["change"], *reported)})


def _reported(is_wanted: Callable[[dict[str, Any]], bool]) -> list[float]:
    """Errors that users have measured and reported."""
    return [error for row in _read(REPORTED_TABLE)["reported"] if is_wanted(row) for error in row["change"]]


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((files("ampsched") / "data" / name).read_text("utf-8"))
