"""From a source to a machine file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ampsched.catalog import THIS, Catalog
from ampsched.machine_file.core_types import choose, modelled
from ampsched.machine_file.facts import ALL, ESTIMATE, KNOWN, ClusterFacts, Fact, Lack, MachineFacts
from ampsched.machine_file.reading import read_facts
from ampsched.machine_file.tree import Source
from ampsched.machine_file.writing import machine_text

CAPACITY_OFF = 0.1
"""By how much a type that stands for an unknown core may differ from its capacity before it follows (our choice)."""
SLOWEST, FASTEST = 0.05, 20
"""Limits of `relative_speed` in machine files."""


@dataclass(frozen=True)
class Made:
    """A machine file and what it is made of."""

    text: str
    facts: MachineFacts


def this_computer() -> Source:
    """This computer as a source."""
    return Source("this computer", "the kernel", Path("/"))


def make(source: Source, name: str) -> Made:
    """Makes a machine file of a source.

    Raises:
        InputError: It does not say which CPUs there are, or contradicts itself.
    """
    facts = read_facts(source)
    complete(facts)
    description = describe(facts, with_lacks=name == THIS)
    text = machine_text(name, description, facts)
    check(name, text)
    return Made(text, facts)


def check(name: str, text: str) -> None:
    """Loads a machine file that was made.

    Raises:
        InputError: It cannot be loaded.
    """
    core = Catalog.shipped().core.copy()
    core.add("machine", name, name, text)
    core.machine(name)


def describe(facts: MachineFacts, *, with_lacks: bool) -> str:
    """One line for listings; with what is not known where nobody sees the file's comments."""
    parts = [f"{len(cluster.cpus)} x {cluster.core or cluster.core_type.value}" for cluster in facts.clusters]
    known = f"{', '.join(parts)}; by ampsched machine from {facts.source}"
    lacks = (
        f"; not known: {', '.join(lack.what for lack in facts.lacks)}" if with_lacks and facts.lacks else ""
    )
    return (known + lacks)[:400]


def complete(facts: MachineFacts) -> None:
    """Chooses core types, and makes them as fast as is stated."""
    choose(facts.clusters, facts.by)
    clusters = facts.clusters
    unnamed: dict[str, list[str]] = {}
    for cluster in clusters:
        if not cluster.core_type.origin.startswith(ESTIMATE):
            continue
        stands = cluster.core_type.value
        if cluster.core:
            lack = Lack(f"a core type for {cluster.core}", f"{stands} stands for it", "speed-ups of programs")
            facts.lacks.append(lack)
        else:
            unnamed.setdefault(stands, []).append(cluster.name)
    for stands, names in unnamed.items():
        some = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        what = f"the core type of {some}"
        facts.lacks.append(Lack(what, f"{stands} stands for it", "speed-ups of programs"))
    facts.lacks = list(dict.fromkeys(facts.lacks))
    _speeds(facts)
    facts.lacks.append(
        Lack("costs of switching, migration and waking", "estimates", "programs that often switch or wake")
    )


def _speeds(facts: MachineFacts) -> None:
    """Makes core types that stand for unknown cores as fast as the stated capacities say.

    First where they contradict them by much; where the order of speeds is contradicted then, too, all of these follow.
    Known core types keep their speeds, which are nearer to what is measured on chips than capacities are: those are
    Dhrystone's.
    """
    clusters = facts.clusters
    own = modelled([(cluster.core_type.value, cluster.mhz[-1]) for cluster in clusters])
    factors = _factors(clusters, own)
    told = _told(facts, own, factors, CAPACITY_OFF)
    if _contradicts(facts, told):
        told = _told(facts, own, factors, 0)
    for cluster, capacity in zip(clusters, told, strict=True):
        cluster.simulated_capacity = capacity
    if _contradicts(facts, told) and not all(cluster.capacity for cluster in clusters):
        _rank_by_model(facts, told)


def _factors(clusters: Sequence[ClusterFacts], own: Sequence[float]) -> list[float]:
    """By how much each is faster than its core type, beside one whose type is known, or else the fastest one."""
    stated = [(cluster, speed) for cluster, speed in zip(clusters, own, strict=True) if cluster.capacity]
    if not stated:
        return [1.0] * len(clusters)
    known = [pair for pair in stated if not pair[0].core_type.origin.startswith(ESTIMATE)]
    beside, speed = max(known or stated, key=lambda pair: pair[0].capacity or 0)
    per_capacity = speed / (beside.capacity or 1)
    return [
        (cluster.capacity or 0) * per_capacity / each if cluster.capacity else 1.0
        for cluster, each in zip(clusters, own, strict=True)
    ]


def _told(facts: MachineFacts, own: Sequence[float], factors: Sequence[float], off: float) -> list[float]:
    """States relative speeds where they are off by more; the capacities that are then simulated."""
    speeds = []
    for cluster, speed, factor in zip(facts.clusters, own, factors, strict=True):
        cluster.relative_speed = None
        is_known = not cluster.core_type.origin.startswith(ESTIMATE)
        if not is_known and abs(factor - 1) > off and SLOWEST <= factor <= FASTEST:
            capacity = f"capacity {cluster.capacity:.0f} of 1024"
            origin = f"{KNOWN} {facts.by}: {capacity}; {cluster.core_type.value} itself would have "
            origin += f"{(cluster.capacity or 0) / factor:.0f}"
            cluster.relative_speed = Fact(float(f"{factor:.6g}"), origin)
        speeds.append(speed * (cluster.relative_speed.value if cluster.relative_speed else 1))
    return [1024 * speed / max(speeds) for speed in speeds]


def _contradicts(facts: MachineFacts, capacities: Sequence[float]) -> bool:
    pairs = [(cluster.class_.value, speed) for cluster, speed in zip(facts.clusters, capacities, strict=True)]
    return any(low < high and slow > fast for low, slow in pairs for high, fast in pairs)


def _rank_by_model(facts: MachineFacts, capacities: Sequence[float]) -> None:
    """The classes that the core model can agree to: files in which it contradicts them are refused."""
    ranks = sorted(set(capacities))[-4:]
    for cluster, capacity in zip(facts.clusters, capacities, strict=True):
        rank = ranks.index(max(capacity, ranks[0]))
        cluster.class_ = Fact(rank, "estimate: by the core model, which contradicts the stated order")
    facts.lacks.append(
        Lack("core types that agree with the order of speeds", "classes are the core model's", ALL)
    )
