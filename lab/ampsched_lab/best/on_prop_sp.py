"""Prop-SP's mixes: throughput (ASP) and unfairness of every policy, with the paper's protocol."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean

from ampsched import metrics
from ampsched.alone import run_alone
from ampsched.catalog import Catalog
from ampsched.execution import alone_on_big
from ampsched.markdown import ALL_BUT_FIRST, table
from ampsched.settings import AloneSettings
from ampsched_lab.best.aims import Judged, named
from ampsched_lab.best.choice import POLICY
from ampsched_lab.best.variants import ablations, with_fairness, with_lengths
from ampsched_lab.papers.prop_sp import runs
from ampsched_lab.papers.prop_sp.runs import PARTS, PROP_SP, Part
from ampsched_lab.papers.prop_sp.setup import MIXES, POLICIES, REPETITIONS, workload_of

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
    """Of slowdowns as the paper has them: against alone on the same machine, few of whose cores may be fast."""
    unfairness_on_big: float
    """Of slowdowns as the policy has them: against alone on as many cores, all fast."""


def by_fairness() -> dict[int, str]:
    """The policy by the value of `fairness`, with the default under its plain name."""
    return {value: with_fairness(value) for value in FAIRNESS}


def ours() -> tuple[str, ...]:
    """The policy with other values of `fairness`, with known lengths, and without each ingredient."""
    return (*by_fairness().values(), with_lengths(), *ablations().values())


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
    under = tuple(policies) or (*others(), *ours())
    found = Part(tuple((machine, mix) for mix, machine in mixes.items()), under).run(jobs, seeds)
    factors = {
        (mix, seed): _on_big(mix, machine, seed, jobs) for mix, machine in mixes.items() for seed in seeds
    }

    def on_big(row: runs.Row) -> float:
        pairs = zip(row.slowdowns, factors[row.mix, row.seed], strict=True)
        return metrics.unfairness([slowdown * factor for slowdown, factor in pairs])

    return tuple(
        Row(
            mix,
            policy,
            found.asp(mix, policy).mean,
            found.unfairness(mix, policy).mean,
            fmean(map(on_big, found.of(mix, policy))),
        )
        for mix in mixes
        for policy in under
    )


def _on_big(mix: str, machine: str, seed: int, jobs: int) -> list[float]:
    """The time of each program alone on the machine / alone on as many cores, all fast."""
    catalog = Catalog.shipped()
    where, what = catalog.machine(machine), catalog.workload(workload_of(mix))
    settings = AloneSettings(seed=seed, repetitions=REPETITIONS)
    references = run_alone(where, what, settings, processes=jobs)
    big_ns = alone_on_big(where, what, settings, jobs)
    return [each.fast_ns / ns for each, ns in zip(references, big_ns, strict=True)]


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

    def unfairness_on_big(self, policy: str) -> float:
        """The same against cores that are all fast."""
        return geometric_mean(self.row(mix, policy).unfairness_on_big for mix in self.mixes)

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
    dominated = [
        f"{mix} by {named(names)}" for mix in found.mixes if (names := found.dominating(mix, POLICY))
    ]
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
            f"none on {len(free)} of {count}; {', '.join(dominated) or 'no exception'}",
            len(free) == count,
        ),
    ]


def section(rows: Sequence[Row]) -> list[str]:
    """Blocks of the report."""
    found = Results(rows)
    own = by_fairness().values()
    shown = {f"`{name}`": name for name in (PROP_SP, *own, with_lengths())}
    shown |= {f"without {name}": policy for name, policy in ablations().items()}
    best = max(own, key=lambda name: (len(found.better(name, PROP_SP)), found.asp(name)))
    return [
        "## Prop-SP's mixes",
        f"By default it is fairer than Prop-SP on {_fairer(found)} of {len(found.mixes)} mixes, and has a higher ASP "
        f"on {_higher(found)}; `{best}` does both on most, {len(found.better(best, PROP_SP))}. "
        f"{_worst(found)} Most ASP is lost without {_dearest(found)}.",
        "**ASP / unfairness, the paper's policies, and who is better than ours in both**",
        table(
            ["mix", f"`{POLICY}`", *(f"`{name}`" for name in POLICIES), "better in both"],
            ([*cells, named(found.dominating(cells[0], POLICY))] for cells in _grid(found, POLICIES)),
            range(1, len(POLICIES) + 2),
        ),
        "**The same beside other policies**",
        table(["mix", f"`{POLICY}`", *(f"`{name}`" for name in BESIDE)], _grid(found, BESIDE), ALL_BUT_FIRST),
        "**Means over the mixes; unfairness by the paper's slowdowns and against alone on as many cores, all fast; "
        "on how many mixes a policy has a higher ASP than Prop-SP at no more unfairness, and none is better in both**",
        table(
            ["policy", "ASP", "unfairness", "all fast", "above Prop-SP", "undominated"],
            _means(found, shown),
            ALL_BUT_FIRST,
        ),
    ]


def _worst(found: Results) -> str:
    """Where most policies are better in both, and how fair policies are there by the policy's own measure."""
    mix = max(found.mixes, key=lambda mix: len(found.dominating(mix, POLICY)))
    own, other = (found.row(mix, policy) for policy in (POLICY, PROP_SP))
    if not found.dominating(mix, POLICY):
        return "Nowhere is any other policy better in both."
    return (
        f"On {mix}, where {len(found.dominating(mix, POLICY))} policies are better in both, its unfairness is "
        f"{own.unfairness:.2f} (Prop-SP {other.unfairness:.2f}) by the paper's slowdowns, which compare with the same "
        f"machine alone, but {own.unfairness_on_big:.2f} ({other.unfairness_on_big:.2f}) by its own, which compare "
        "with as many cores, all fast."
    )


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


def _means(found: Results, policies: Mapping[str, str]) -> Iterator[list[str]]:
    for label, policy in policies.items():
        values = (found.asp(policy), found.unfairness(policy), found.unfairness_on_big(policy))
        counts = (len(found.better(policy, PROP_SP)), len(found.undominated(policy)))
        yield [label, *(f"{value:.3f}" for value in values), *map(str, counts)]
