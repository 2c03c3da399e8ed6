"""The experiments that can be repeated, one row each."""

from collections.abc import Callable
from dataclasses import dataclass

from ampsched.execution import Progress
from ampsched.experiments import colab, prop_sp
from ampsched.experiments.chronaki import report as chronaki
from ampsched.experiments.colab_report import reproduce_colab
from ampsched.experiments.hfee import report as hfee
from ampsched.experiments.prop_sp_report import reproduce_prop_sp
from ampsched.experiments.reproduction import Reproduction


@dataclass(frozen=True, slots=True)
class Experiment:
    """A paper's experiment."""

    parts: tuple[str, ...]
    """Figures or parts that can be run by themselves."""
    reproduce: Callable[[str | None, int, int, Progress | None], Reproduction]
    """Runs a part, or all if None, on so many processors (0: all) with so many seeds."""


EXPERIMENTS = {
    "chronaki": Experiment(chronaki.PARTS, chronaki.reproduce_chronaki),
    "colab": Experiment(tuple(colab.NEEDS), reproduce_colab),
    "hfee": Experiment(hfee.PARTS, hfee.reproduce_hfee),
    "prop-sp": Experiment(tuple(prop_sp.PARTS), reproduce_prop_sp),
}
