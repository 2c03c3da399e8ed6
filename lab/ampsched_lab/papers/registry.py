"""The experiments that can be repeated, one row each; the package of each is loaded when it is run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from ampsched.execution import Progress
    from ampsched_lab.shared.claims.measured import Measurements
    from ampsched_lab.shared.claims.reading import Claims
    from ampsched_lab.shared.reproduction import Reproduction


class Report(Protocol):
    """The module `report` of an experiment's package."""

    PARTS: Sequence[str]
    """Figures or parts that can be run by themselves."""
    MEASUREMENTS: Mapping[str, "Measurements"]
    """Of the parts that have claims."""
    CLAIMS: "Claims"

    def reproduce(
        self,
        only: str | None,
        jobs: int,
        repeats: int,
        progress: "Progress | None",
        max_repeats: int | None,
    ) -> "Reproduction":
        """Runs a part, or all if None, on so many processors (0: all) with so many seeds.

        Seeds are added, up to `max_repeats`, as long as an interval is too wide for a verdict.
        """


@dataclass(frozen=True, slots=True)
class Baseline:
    """The Linux of a paper: whose fair class stands for it. What is derived from that is derived from here."""

    kernel: str
    """The generation of the policy `linux`, nearest to the paper's kernel."""
    why: str
    """What the paper compares with, and why this generation fits; Markdown."""

    @property
    def policy(self) -> str:
        """What is run."""
        return f"linux:kernel={self.kernel}"


RULES = "cfs"
"""One idea of Linux 3.16 as rules for kernels: what stood for Linux before, and is run beside it."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A paper's experiment."""

    name: str
    """On the command line. The package is named like it, with `_` for `-`."""
    paper: str
    baseline: Baseline
    examples: tuple[str, ...] = ("",)
    """Options with which it may be run, for the command's help."""

    def load(self) -> Report:
        """What runs it."""
        package = self.name.replace("-", "_")
        return cast(Report, import_module(f"ampsched_lab.papers.{package}.report"))


EXPERIMENTS = {
    row.name: row
    for row in (
        Experiment(
            "colab",
            "COLAB (CGO 2020)",
            Baseline(
                "3.16",
                "The paper's CFS is that of Linux 3.16 in gem5 (section 5.1). It is told nothing of the cores: "
                "kernels of arm64 know capacities since 4.10, so what the machines' files say of them does not "
                "reach it. Clusters have an L2 each, so that threads are woken within their cluster "
                "and cross it by balancing; gem5's own device tree for big.LITTLE states the clusters, whether the "
                "paper's did is not said.",
            ),
            ("", " --only fig5 --jobs 2 --out results"),
        ),
        Experiment(
            "prop-sp",
            "Prop-SP (Euro-Par 2014 workshops)",
            Baseline(
                "3.16",
                "The paper is about Solaris: its opponents are RR, A-DWRR, CAMP and HSP, which the authors built "
                "there, and none of its claims compares with Linux. Linux stands in two tables that are ours, "
                "of all policies and of priorities; the generation is that of the paper's year. It takes the "
                "Opterons' cores for equal, as x86-64 kernels do.",
            ),
        ),
        Experiment(
            "hfee",
            "HFEE (IEEE Transactions on Computers 2020)",
            Baseline(
                "4.14",
                "The paper's Linux is the standard scheduler of kernel 4.14 under Ubuntu MATE 16.04.3 on the board "
                "(section 5). It knows the capacities that the board's device tree states, and balances by them; "
                "placement by capacity came with 4.20, by energy with 5.0. The board's vendor configures its 4.14 "
                "with HPERF_HMP, a scheduler for unequal cores which mainline does not have. The paper does not "
                "name it, and its Figure 13, in which Linux uses little cores more than big ones, speaks against "
                "it; it is not modelled. DTPM leaves the placement to Linux in the paper; the policy `dtpm` has "
                "the rules of `cfs` for that.",
            ),
            (" --only schedulers",),
        ),
        Experiment(
            "chronaki",
            "Chronaki et al. (JPDC 2018)",
            Baseline(
                "3.16",
                "The paper's baseline is static threading, a thread pinned to each core, on a vendor's kernel 3.x "
                "with ARM's global task scheduling: its GTS is a patch of the fair class, which is the policy "
                "`gts` here. The fair class without the patch is no method of the paper and in no claim; it is "
                "run beside the others as *Linux*, to show what GTS changes.",
            ),
        ),
    )
}
