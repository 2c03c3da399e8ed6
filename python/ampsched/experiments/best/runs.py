"""What is run: each section is a comparison, and its rows are all that the report is made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ampsched import api
from ampsched._core import Workload
from ampsched.experiments.best.choice import CANDIDATES, POLICY, others
from ampsched.experiments.best.mixes import MACHINES, mixes
from ampsched.experiments.best.rows import BASELINE, Row, row_of
from ampsched.experiments.best.variants import ablations, with_fairness
from ampsched.experiments.colab.setup import workloads as colab_mixes

PEERS = ("linux", "colab", "max-fair", "min-fair", "acfs", "camp", "similarity")
"""The policies that the issue of the best policy began with, but for a-dwrr."""
OTHER_MACHINES = ("2B2S:big=1:little=1", "hikey960", "exynos5422", "pixel", "tensor", "hybrid-8P16E")
FEW = 12
"""Test mixes on the other machines."""


@dataclass(frozen=True, slots=True)
class Section:
    """A comparison."""

    name: str
    machines: tuple[str, ...]
    workloads: Callable[[], Sequence[str | Workload]]
    policies: Callable[[], Sequence[str]]
    factors: str = "oracle"
    noise: str = "none"


def _peers() -> list[str]:
    return [BASELINE, *PEERS, POLICY]


def _all() -> list[str]:
    return [*others(), POLICY]


def _variants() -> list[str]:
    names = [POLICY, *ablations().values(), *map(with_fairness, CANDIDATES)]
    return [BASELINE, *dict.fromkeys(names)]


def _few() -> list[Workload]:
    return mixes("test")[:FEW]


def _test() -> list[Workload]:
    return mixes("test")


SECTIONS = (
    Section("colab", MACHINES, colab_mixes, _all),
    Section("test", MACHINES, _test, _all),
    Section("machines", OTHER_MACHINES, _few, _peers),
    Section("predicted", MACHINES, colab_mixes, _peers, factors="predicted"),
    Section("unknown", MACHINES, colab_mixes, _peers, factors="none"),
    Section("idle noise", MACHINES, colab_mixes, _peers, noise="idle"),
    Section("busy noise", MACHINES, colab_mixes, _peers, noise="busy"),
    Section("predicted, busy noise", MACHINES, colab_mixes, _peers, factors="predicted", noise="busy"),
    Section("ablations, colab", MACHINES, colab_mixes, _variants),
    Section("ablations, test", MACHINES, _test, _variants),
)
"""All but the training mixes and the sets of the other papers."""


def run(section: Section, jobs: int = 0, progress: Callable[[str], object] = print) -> list[Row]:
    """Runs a section."""
    progress(f"{section.name}: {len(section.machines)} machines")
    comparison = api.compare(
        section.machines,
        section.workloads(),
        section.policies(),
        limits=False,
        factors=section.factors,
        noise=section.noise,
        jobs=jobs,
    )
    return [row_of(section.name, each) for each in comparison.summary()]
