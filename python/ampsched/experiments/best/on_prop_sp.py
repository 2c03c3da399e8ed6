"""Prop-SP's mixes: throughput (ASP) and unfairness of every policy, with the paper's protocol."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean

from ampsched.experiments.best.aims import Judged, named
from ampsched.experiments.best.choice import POLICY, candidate
from ampsched.experiments.best.variants import ablations, param
from ampsched.experiments.prop_sp.runs import PARTS, PROP_SP, Part
from ampsched.experiments.prop_sp.setup import MIXES, POLICIES
from ampsched.markdown import ALL_BUT_FIRST, table

FAIRNESS = (0, 2, 3, 5, 8)
"""Values of the parameter, the default among them."""
BESIDE = ("max-fair", "min-fair", "acfs", "similarity", "linux")
"""Whom tables show besides the paper's policies."""
SEEDS = range(1, 4)


@dataclass(frozen=True, slots=True)
class Row:
    """A policy on a mix: means over seeds."""

    mix: str
    policy: str
    asp: float
    unfairness: float


def by_fairness() -> dict[int, str]:
    """The policy by the value of `fairness`, with the default under its plain name."""
    default = param("fairness").default
    return {value: POLICY if value == default else candidate(value) for value in FAIRNESS}


def others() -> tuple[str, ...]:
    """All shipped policies, the older Linux and the static form of Prop-SP, but not ours."""
    names = dict.fromkeys((*PARTS["pareto"].policies, *POLICIES))
    return tuple(name for name in names if name != POLICY)


def measure(
    jobs: int,
    mixes: Mapping[str, str] = MIXES,
    policies: Sequence[str] = (),
    seeds: range = SEEDS,
) -> tuple[Row, ...]:
    """Runs mixes under policies.

    Args:
        jobs: Processors to use; 0: all. Results do not depend on it.
        mixes: Mixes, and the machine of each.
        policies: Policies; all, and the variants of ours, if there are none.
        seeds: Seeds.
    """
    under = tuple(policies) or (*others(), *by_fairness().values(), *ablations().values())
    found = Part(tuple((machine, mix) for mix, machine in mixes.items()), under).run(jobs, seeds)
    return tuple(
        Row(mix, policy, found.asp(mix, policy).mean, found.unfairness(mix, policy).mean)
        for mix in mixes
        for policy in under
    )


class Results:
    """Rows by mix and policy."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = {(row.mix, row.policy): row for row in rows}
        self.mixes = tuple(dict.fromkeys(row.mix for row in rows))
        self.policies = tuple(dict.fromkeys(row.policy for row in rows))

    def row(self, mix: str, policy: str) -> Row:
        """A policy on a mix."""
        return self._rows[mix, policy]

    def asp(self, policy: str) -> float:
        """Arithmetic mean over mixes, as in the experiment of the paper."""
        return fmean(self.row(mix, policy).asp for mix in self.mixes)

    def unfairness(self, policy: str) -> float:
        """Geometric mean over mixes."""
        return geometric_mean(self.row(mix, policy).unfairness for mix in self.mixes)

    def better(self, policy: str, than: str) -> list[str]:
        """The mixes on which a policy has a higher ASP than another at no more unfairness."""
        pairs = ((self.row(mix, policy), self.row(mix, than)) for mix in self.mixes)
        return [own.mix for own, other in pairs if own.asp > other.asp and own.unfairness <= other.unfairness]

    def dominating(self, mix: str, policy: str) -> list[str]:
        """The policies that are not ours and are better in both on a mix."""
        own = self.row(mix, policy)
        rows = (self.row(mix, name) for name in self.policies if name.partition(":")[0] != POLICY)
        return [row.policy for row in rows if row.asp > own.asp and row.unfairness < own.unfairness]

    def undominated(self, policy: str) -> list[str]:
        """The mixes on which none dominates a policy."""
        return [mix for mix in self.mixes if not self.dominating(mix, policy)]


def judged(rows: Sequence[Row]) -> list[Judged]:
    """Both aims, at the default."""
    found = Results(rows)
    count = len(found.mixes)
    better, free = found.better(POLICY, PROP_SP), found.undominated(POLICY)
    either = {mix for name in by_fairness().values() for mix in found.better(name, PROP_SP)}
    dominating = dict.fromkeys(name for mix in found.mixes for name in found.dominating(mix, POLICY))
    return [
        Judged(
            "Prop-SP's mixes: a higher ASP than Prop-SP at no more unfairness on all",
            f"on {len(better)} of {count}; means: ASP {found.asp(POLICY):.3f} against {found.asp(PROP_SP):.3f}, "
            f"unfairness {found.unfairness(POLICY):.3f} against {found.unfairness(PROP_SP):.3f}; with the value of "
            f"`fairness` that suits each mix, on {len(either)}",
            len(better) == count,
        ),
        Judged(
            "Prop-SP's mixes: no shipped policy dominates it on any",
            f"none on {len(free)} of {count}; on the others {named(dominating)}",
            len(free) == count,
        ),
    ]


def section(rows: Sequence[Row]) -> list[str]:
    """Blocks of the report."""
    found = Results(rows)
    own = by_fairness().values()
    best = max(own, key=lambda name: (len(found.better(name, PROP_SP)), -found.asp(name)))
    return [
        "## Prop-SP's mixes",
        f"By default it is fairer than Prop-SP on {_fairer(found)} of {len(found.mixes)} mixes, and has a higher ASP "
        f"on {_higher(found)}. `{best}` does both on most, {len(found.better(best, PROP_SP))}. "
        f"ASP costs most without {_dearest(found)}.",
        "**ASP / unfairness, the paper's policies, and who is better than ours in both**",
        table(
            ["mix", f"`{POLICY}`", *(f"`{name}`" for name in POLICIES), "better in both"],
            ([*cells, named(found.dominating(cells[0], POLICY))] for cells in _grid(found, POLICIES)),
            range(1, len(POLICIES) + 2),
        ),
        "**The same beside other policies**",
        table(["mix", f"`{POLICY}`", *(f"`{name}`" for name in BESIDE)], _grid(found, BESIDE), ALL_BUT_FIRST),
        "**Means over the mixes, and on how many a policy has a higher ASP than Prop-SP at no more unfairness, and "
        "none is better in both**",
        table(
            ["policy", "ASP", "unfairness", "above Prop-SP", "undominated"],
            _means(found, (PROP_SP, *own, *ablations().values())),
            ALL_BUT_FIRST,
        ),
        "`without` leaves out, in this order: " + ", ".join(ablations()) + ".",
    ]


def _fairer(found: Results) -> int:
    pairs = ((found.row(mix, POLICY), found.row(mix, PROP_SP)) for mix in found.mixes)
    return sum(own.unfairness <= other.unfairness for own, other in pairs)


def _higher(found: Results) -> int:
    pairs = ((found.row(mix, POLICY), found.row(mix, PROP_SP)) for mix in found.mixes)
    return sum(own.asp > other.asp for own, other in pairs)


def _dearest(found: Results) -> str:
    """The ingredient without which most ASP is lost."""
    name, policy = min(ablations().items(), key=lambda item: found.asp(item[1]))
    return f"*{name}*: {found.asp(policy):.3f} in the place of {found.asp(POLICY):.3f}"


def _grid(found: Results, policies: Sequence[str]) -> Iterator[list[str]]:
    for mix in found.mixes:
        cells = (found.row(mix, policy) for policy in (POLICY, *policies))
        yield [mix, *(f"{each.asp:.2f} / {each.unfairness:.2f}" for each in cells)]


def _means(found: Results, policies: Sequence[str]) -> Iterator[list[str]]:
    for policy in policies:
        counts = (len(found.better(policy, PROP_SP)), len(found.undominated(policy)))
        yield [
            f"`{policy}`",
            f"{found.asp(policy):.3f}",
            f"{found.unfairness(policy):.3f}",
            *map(str, counts),
        ]
