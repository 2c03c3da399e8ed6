"""The experiments that can be repeated, one row each; the package of each is loaded when it is run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from ampsched.execution import Progress
    from ampsched.experiments.claims.measured import Measurements
    from ampsched.experiments.claims.reading import Claims
    from ampsched.experiments.reproduction import Reproduction


class Report(Protocol):
    """The module `report` of an experiment's package."""

    PARTS: Sequence[str]
    """Figures or parts that can be run by themselves."""
    MEASUREMENTS: Mapping[str, "Measurements"]
    """Of the parts that have claims."""
    CLAIMS: "Claims"

    def reproduce(
        self, only: str | None, jobs: int, repeats: int, progress: "Progress | None"
    ) -> "Reproduction":
        """Runs a part, or all if None, on so many processors (0: all) with so many seeds."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A paper's experiment."""

    name: str
    """On the command line. The package is named like it, with `_` for `-`."""
    paper: str
    examples: tuple[str, ...] = ("",)
    """Options with which it may be run, for the command's help."""

    def load(self) -> Report:
        """What runs it."""
        package = self.name.replace("-", "_")
        return cast(Report, import_module(f"ampsched.experiments.{package}.report"))


EXPERIMENTS = {
    row.name: row
    for row in (
        Experiment("colab", "COLAB (CGO 2020)", ("", " --only fig5 --jobs 2 --out results")),
        Experiment("prop-sp", "Prop-SP (Euro-Par 2014 workshops)"),
        Experiment("hfee", "HFEE (IEEE Transactions on Computers 2020)", (" --only schedulers",)),
        Experiment("chronaki", "Chronaki et al. (JPDC 2018)"),
    )
}
