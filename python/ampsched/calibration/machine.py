"""Classes from what was measured, and facts of this computer with them."""

from collections.abc import Sequence
from dataclasses import replace

from ampsched._core import CoreKind, InputError
from ampsched.machine_file.core_types import choose
from ampsched.machine_file.facts import ALL, ASSUMED_MHZ, ClusterFacts, Fact, Lack, MachineFacts
from ampsched.machine_file.making import this_computer
from ampsched.machine_file.reading import read_facts

# Kinds whose mean speeds differ by less are of one class: noise on an idle computer is about that large (our choice).
SAME_SPEED = 0.03


def classes(speeds: dict[str, float]) -> dict[str, int]:
    """Classes from 0, the slowest; kinds of about the same speed share one."""
    ordered = sorted(speeds, key=lambda kind: speeds[kind])
    found: dict[str, int] = {}
    for place, kind in enumerate(ordered):
        slower = ordered[place - 1] if place else kind
        step = place > 0 and speeds[kind] > speeds[slower] * (1 + SAME_SPEED)
        found[kind] = found.get(slower, 0) + step
    return found


def measured_facts(
    facts: MachineFacts, kinds: Sequence[CoreKind], of_class: dict[str, int], speeds: dict[str, float]
) -> MachineFacts:
    """What is known of this computer with what was measured: the clusters are those of the measured kinds."""
    clusters = []
    for kind in kinds:
        own = [part for cluster in facts.clusters if (part := _part(cluster, set(kind.cpus)))] or [
            _plain(kind)
        ]
        for place, cluster in enumerate(own):
            cluster.name = kind.name if len(own) == 1 else f"{kind.name}-{place}"
            origin = f"measured: speed {speeds[kind.name]:.3f} of the first kind's, mean over kernels"
            cluster.class_ = Fact(of_class[kind.name], origin)
        clusters += own
    return replace(facts, clusters=clusters)


def _part(cluster: ClusterFacts, cpus: set[int]) -> ClusterFacts | None:
    """The cluster with these CPUs only; None if it has none of them."""
    own = [cpu for cpu in cluster.cpus if cpu in cpus]
    is_whole = len(own) == len(cluster.cpus)
    return (
        replace(cluster, cpus=own, threads_per_core=cluster.threads_per_core if is_whole else 1)
        if own
        else None
    )


def _plain(kind: CoreKind) -> ClusterFacts:
    """A kind of which no more is known."""
    mhz, origin = (kind.mhz, "stated by the kernel") if kind.mhz else (ASSUMED_MHZ, "estimate: not known")
    cluster = ClusterFacts("", list(kind.cpus), Fact(0, ""), [mhz], origin)
    if kind.is_known:
        cluster.core_type = Fact(kind.core_type, "stated by the kernel: part number or PMU")
    return cluster


def known_facts(kinds: Sequence[CoreKind]) -> MachineFacts:
    """What the kernel says of this computer; only of its kinds, if its files contradict each other."""
    source = this_computer()
    try:
        facts = read_facts(source)
    except InputError as error:
        unknown = Fact("nothing", "estimate: not known")
        shared = Fact("machine", "estimate: not known")
        lacks = [Lack(str(error), "left out", ALL)]
        facts = MachineFacts(
            source.title, source.by, [_plain(kind) for kind in kinds], unknown, shared, {}, [], lacks
        )
    choose(facts.clusters, facts.by)
    return facts
