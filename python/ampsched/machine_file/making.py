"""From a source to a machine file."""

from dataclasses import dataclass
from pathlib import Path

from ampsched.catalog import THIS, Catalog
from ampsched.machine_file.core_types import choose, modelled
from ampsched.machine_file.facts import ALL, Fact, Lack, MachineFacts
from ampsched.machine_file.reading import read_facts
from ampsched.machine_file.tree import Source
from ampsched.machine_file.writing import machine_text

CAPACITY_OFF = 0.1
"""Beyond this part of it, a modelled capacity that differs from the stated one is told (our choice)."""


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
    """Chooses core types, and tells where the core model contradicts what is stated."""
    choose(facts.clusters, facts.by)
    clusters = facts.clusters
    unnamed: dict[str, list[str]] = {}
    for cluster in clusters:
        if not cluster.core_type.origin.startswith("estimate"):
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
    _differences(facts)
    facts.lacks.append(
        Lack("costs of switching, migration and waking", "estimates", "programs that often switch or wake")
    )


def _differences(facts: MachineFacts) -> None:
    clusters = facts.clusters
    capacities = modelled([(cluster.core_type.value, cluster.mhz[-1]) for cluster in clusters])
    has_tables = all(cluster.power and cluster.capacity for cluster in clusters)
    for cluster, capacity in zip(clusters, capacities, strict=True):
        if cluster.capacity and abs(capacity / cluster.capacity - 1) > CAPACITY_OFF:
            what = f"capacity {cluster.capacity:.0f} of {cluster.name}"
            who = "" if has_tables else "; linux and eas believe the model"
            facts.lacks.append(Lack(what, f"the core model says {capacity:.0f}", f"{ALL}{who}"))
    if has_tables:
        return
    pairs = [(cluster.class_.value, capacity) for cluster, capacity in zip(clusters, capacities, strict=True)]
    if any(low < high and slow > fast for low, slow in pairs for high, fast in pairs):
        _rank_by_model(facts, capacities)


def _rank_by_model(facts: MachineFacts, capacities: list[float]) -> None:
    """The classes that the core model can agree to: files in which it contradicts them are refused."""
    ranks = sorted(set(capacities))[-4:]
    for cluster, capacity in zip(facts.clusters, capacities, strict=True):
        rank = ranks.index(max(capacity, ranks[0]))
        cluster.class_ = Fact(rank, "estimate: by the core model, which contradicts the stated order")
    facts.lacks.append(
        Lack("core types that agree with the order of speeds", "classes are the core model's", ALL)
    )
