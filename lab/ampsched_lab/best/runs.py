"""What is run: each section is a comparison, and its rows are all that the report is made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import polars

from ampsched import api
from ampsched._core import Workload
from ampsched.comparison import Comparison
from ampsched_lab.best.choice import CANDIDATES, POLICY, others
from ampsched_lab.best.graphs import graph_mixes
from ampsched_lab.best.mixes import MACHINES, SLEEPERS, mixes, sleeper_mixes
from ampsched_lab.best.rows import BASELINE, Row, row_of
from ampsched_lab.best.variants import ablations, param, with_energy, with_fairness, with_lengths
from ampsched_lab.papers.colab.setup import workloads as colab_mixes

PEERS = ("linux", "colab", "max-fair", "min-fair", "acfs", "camp", "similarity")
"""The policies that the issue of the best policy began with, but for a-dwrr."""
OTHER_MACHINES = ("2B2S:big=1:little=1", "hikey960", "exynos5422", "pixel", "tensor", "hybrid-8P16E")
FEW = 12
"""Fresh mixes on the other machines."""
BOARD = "exynos5422"
"""The machine whose power is measured best."""
PRICES = (0.5, 1, 2)
"""Of energy."""
OF_ENERGY = ("linux", "eas", "hfee")


@dataclass(frozen=True, slots=True)
class Section:
    """A comparison."""

    name: str
    machines: tuple[str, ...]
    workloads: Callable[[], Sequence[str | Workload]]
    policies: Callable[[], Sequence[str]]
    factors: str = "oracle"
    noise: str = "none"
    governor: str = "none"
    """With one, energy is counted."""


def _peers() -> list[str]:
    return [BASELINE, *PEERS, POLICY]


def _all() -> list[str]:
    return [*others(), POLICY]


def _variants() -> list[str]:
    names = [POLICY, *ablations().values(), *map(with_fairness, CANDIDATES), *known_lengths().values()]
    return [BASELINE, *dict.fromkeys(names)]


def known_lengths() -> dict[int, str]:
    """The policy with known lengths, by `fairness`."""
    own = {value: f"{with_lengths()}:fairness={value}" for value in (0, 2)}
    return own | {int(param("fairness").default): with_lengths()}


def _few() -> list[Workload]:
    return mixes("fresh")[:FEW]


def _test() -> list[Workload]:
    return mixes("test")


def _fresh() -> list[Workload]:
    return mixes("fresh")


def _sleepers() -> list[Workload]:
    return sleeper_mixes("fresh")


def _graphs() -> list[Workload]:
    return graph_mixes("fresh")


def _told() -> list[str]:
    return [*_peers(), with_lengths()]


def _own() -> list[str]:
    return [BASELINE, POLICY]


def _late() -> list[str]:
    names = [BASELINE, "eevdf", *PEERS, POLICY, with_fairness(2), *ablations().values()]
    return [*dict.fromkeys(names)]


def _priced() -> list[str]:
    return [BASELINE, *OF_ENERGY, POLICY, *map(with_energy, PRICES)]


SECTIONS = (
    Section("colab", MACHINES, colab_mixes, _all),
    Section("test", MACHINES, _test, _own),
    Section("fresh", MACHINES, _fresh, _all),
    Section("sleepers", MACHINES, _sleepers, _late),
    Section("graphs", MACHINES, _graphs, _told),
    Section("energy", (BOARD,), _fresh, _priced, governor="performance"),
    Section("machines", OTHER_MACHINES, _few, _peers),
    Section("predicted", MACHINES, colab_mixes, _peers, factors="predicted"),
    Section("unknown", MACHINES, colab_mixes, _peers, factors="none"),
    Section("idle noise", MACHINES, colab_mixes, _peers, noise="idle"),
    Section("busy noise", MACHINES, colab_mixes, _peers, noise="busy"),
    Section("predicted, busy noise", MACHINES, colab_mixes, _peers, factors="predicted", noise="busy"),
    Section("ablations, colab", MACHINES, colab_mixes, _variants),
    Section("ablations, fresh", MACHINES, _fresh, _variants),
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
        governor=section.governor,
        energy=section.governor != "none",
        jobs=jobs,
    )
    late_ms = _late_ms(comparison)
    return [
        row_of(section.name, each, late_ms.get((each.machine, each.workload, each.policy)))
        for each in comparison.summary()
    ]


def own(section: Section) -> Section:
    """The same with the policy and the baseline only."""
    return replace(section, policies=_own)


def _late_ms(comparison: Comparison) -> dict[tuple[str, str, str], float]:
    """The 99th percentile of the wake-ups of sleepers, mean over the runs, by machine, workload and policy."""
    case = ["machine", "workload", "policy"]
    of_program = polars.col("program").str.starts_with(SLEEPERS) & polars.col("thread").is_null()
    found = comparison.latency_to_polars().filter(of_program)
    means = found.group_by(case).agg(polars.col("p99_ns").mean() / 1e6)
    return {(machine, workload, policy): ms for machine, workload, policy, ms in means.iter_rows()}
