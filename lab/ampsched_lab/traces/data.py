"""The traces that judge: those of lab/data/traces, or of a folder that cannot be shipped."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "lab/data/traces"


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace, and what is known of it.

    Attributes:
        name: Its name in reports.
        path: Its file.
        machine: The machine that it is of, a name or a path.
        policy: Ours that is nearest to what scheduled.
        scheduler: What scheduled, in words.
        source: From where it is.
    """

    name: str
    path: Path
    machine: str
    policy: str
    scheduler: str
    source: str


def traces(folder: Path = FOLDER) -> list[Trace]:
    """The traces of a folder, which ``traces.toml`` describes."""
    stated = tomllib.loads((folder / "traces.toml").read_text("utf-8"))
    return [_trace(folder, name, each) for name, each in stated.items()]


def _trace(folder: Path, name: str, stated: dict[str, str]) -> Trace:
    beside = folder / stated["machine"]
    machine = str(beside) if beside.is_file() else stated["machine"]
    return Trace(
        name, folder / stated["file"], machine, stated["policy"], stated["scheduler"], stated["source"]
    )
