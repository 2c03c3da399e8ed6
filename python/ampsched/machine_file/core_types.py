"""Which shipped core type a core is, or is nearest to: the rule.

1. A core that has a shipped type has that one: by Arm's part number (crates/computer), the PMUs of Intel's hybrids, or
   the name that a source gives it.
2. Of another Arm core that is slower than the fastest one, if capacities are known: the type whose modelled capacity
   at the core's frequency, relative to the fastest core, is nearest to the stated one (on a logarithmic scale); of
   those that are in order if the core is known to be, else out of order.
3. The type next to it in Arm's or Intel's line (`LIKE`).
4. ``generic``.
"""

import math
import re
from collections.abc import Sequence

from ampsched.catalog import Catalog
from ampsched.machine_file.facts import ClusterFacts, Fact

PARTS = {
    0x41: {
        0xC05: "cortex-a5", 0xC09: "cortex-a9", 0xC0D: "cortex-a12", 0xC0E: "cortex-a17", 0xD01: "cortex-a32",
        0xD02: "cortex-a34", 0xD04: "cortex-a35", 0xD06: "cortex-a65", 0xD08: "cortex-a72", 0xD0A: "cortex-a75",
        0xD0C: "neoverse-n1", 0xD0D: "cortex-a77", 0xD0E: "cortex-a76ae", 0xD40: "neoverse-v1",
        0xD41: "cortex-a78", 0xD42: "cortex-a78ae", 0xD46: "cortex-a510", 0xD47: "cortex-a710",
        0xD48: "cortex-x2", 0xD49: "neoverse-n2", 0xD4A: "neoverse-e1", 0xD4B: "cortex-a78c",
        0xD4C: "cortex-x1c", 0xD4D: "cortex-a715", 0xD4E: "cortex-x3", 0xD4F: "neoverse-v2",
        0xD80: "cortex-a520", 0xD81: "cortex-a720", 0xD82: "cortex-x4", 0xD84: "neoverse-v3",
        0xD85: "cortex-x925", 0xD87: "cortex-a725", 0xD8E: "neoverse-n3",
    },
    0x51: {
        0x001: "oryon", 0x201: "kryo", 0x205: "kryo", 0x211: "kryo", 0x800: "kryo2xx-gold",
        0x801: "kryo2xx-silver", 0x802: "kryo3xx-gold", 0x803: "kryo3xx-silver", 0x804: "kryo4xx-gold",
        0x805: "kryo4xx-silver",
    },
    0x61: {0x022: "icestorm", 0x023: "firestorm", 0x032: "blizzard", 0x033: "avalanche"},
}  # fmt: skip
"""Names of cores that crates/computer has no type for, by implementer and part (Linux, arm64's asm/cputype.h)."""

LIKE = {
    "cortex-a5": "cortex-a7", "cortex-a8": "cortex-a7", "cortex-a9": "cortex-a15", "cortex-a12": "cortex-a15",
    "cortex-a17": "cortex-a15", "cortex-a32": "cortex-a53", "cortex-a34": "cortex-a53",
    "cortex-a35": "cortex-a53", "cortex-a65": "cortex-a55", "neoverse-e1": "cortex-a55",
    "cortex-a76ae": "cortex-a76", "cortex-a78ae": "cortex-a78", "cortex-a78c": "cortex-a78",
    "neoverse-n1": "cortex-a76", "neoverse-n2": "cortex-a710", "neoverse-n3": "cortex-a725",
    "cortex-x1c": "cortex-x1", "cortex-x925": "cortex-x4", "neoverse-v1": "cortex-x1",
    "neoverse-v2": "cortex-x3", "neoverse-v3": "cortex-x4", "kryo2xx-gold": "cortex-a73",
    "kryo2xx-silver": "cortex-a53", "kryo3xx-gold": "cortex-a75", "kryo3xx-silver": "cortex-a55",
    "kryo260": "cortex-a73", "kryo280": "cortex-a73", "kryo385": "cortex-a75", "kryo485": "cortex-a76",
    "kryo4xx-gold": "cortex-a76", "kryo4xx-silver": "cortex-a55",
    "lion-cove": "redwood-cove", "skymont": "crestmont", "avalanche": "firestorm", "blizzard": "icestorm",
}  # fmt: skip
"""The next in line: predecessors and successors of shipped types (Arm's and Intel's own announcements)."""

SAME = {"raptor-cove": "golden-cove"}
"""Cores that a shipped type of another name describes, too."""

IN_ORDER = ("cortex-a53", "cortex-a55", "cortex-a510", "cortex-a520")
OUT_OF_ORDER = (
    "cortex-a57", "cortex-a72", "cortex-a73", "cortex-a75", "cortex-a76", "cortex-a77", "cortex-a78",
    "cortex-a710", "cortex-a715", "cortex-a720", "cortex-a725", "cortex-x1", "cortex-x2", "cortex-x3", "cortex-x4",
)  # fmt: skip
"""Shipped types of Arm's 64-bit cores from which the second rule takes one."""

INTEL = {
    0x8F: "golden-cove", 0xCF: "raptor-cove", 0xBE: "gracemont", 0xAF: "crestmont", 0xB6: "crestmont",
}  # fmt: skip
"""Cores of Intel's processors of family 6 that have one kind, by model (Linux, arch/x86/include/asm/intel-family.h)."""
HYBRIDS = {
    0x97: ("golden-cove", "gracemont"), 0x9A: ("golden-cove", "gracemont"), 0xB7: ("raptor-cove", "gracemont"),
    0xBA: ("raptor-cove", "gracemont"), 0xBF: ("raptor-cove", "gracemont"),
    0xAA: ("redwood-cove", "crestmont"), 0xAC: ("redwood-cove", "crestmont"), 0xC5: ("lion-cove", "skymont"),
    0xC6: ("lion-cove", "skymont"), 0xBD: ("lion-cove", "skymont"),
}  # fmt: skip
"""P- and E-cores of Intel's hybrid processors of family 6, by model (the same)."""


def part_name(midr: int) -> str:
    """The name of an Arm core by its MIDR_EL1; empty if it is in no table here."""
    return PARTS.get(midr >> 24 & 0xFF, {}).get(midr >> 4 & 0xFFF, "")


def choose(clusters: Sequence[ClusterFacts], by: str) -> None:
    """Chooses the core types of clusters by the rule above; those that have one by evidence keep it."""
    shipped = {entry.name for entry in Catalog.shipped().entries("core_type")}
    open_: list[ClusterFacts] = []
    for cluster in clusters:
        if cluster.core_type.value != "generic":
            continue
        if cluster.core in shipped - {"generic"}:
            cluster.core_type = Fact(cluster.core, f"stated by {by}")
        elif cluster.core in SAME:
            cluster.core_type = Fact(
                SAME[cluster.core], f"stated by {by}: {cluster.core}, as this type has it"
            )
        else:
            open_.append(cluster)
    top = max((cluster.capacity or 0 for cluster in clusters), default=0)
    fastest = next((cluster for cluster in clusters if cluster.capacity == top and top > 0), None)
    if fastest in open_:
        open_.remove(fastest)
        _by_line(fastest)
    for cluster in open_:
        if not (fastest and cluster.capacity and cluster.capacity < top and _is_arm(cluster, fastest)):
            _by_line(cluster)
        else:
            _by_capacity(cluster, fastest)


def _is_arm(cluster: ClusterFacts, fastest: ClusterFacts) -> bool:
    others = ("cortex-a7", "cortex-a15", "golden-cove", "gracemont")
    return fastest.core_type.value in (*OUT_OF_ORDER, "generic") and LIKE.get(cluster.core) not in others


def _by_line(cluster: ClusterFacts) -> None:
    like = LIKE.get(cluster.core)
    if like:
        origin = f"estimate: the core is a {cluster.core}, this is the next shipped one in its line"
        cluster.core_type = Fact(like, origin)
    elif cluster.core:
        cluster.core_type = Fact(
            "generic", f"estimate: the core is a {cluster.core}, no shipped one is near it"
        )


def _by_capacity(cluster: ClusterFacts, fastest: ClusterFacts) -> None:
    like = LIKE.get(cluster.core)
    # Device trees call big and little Kryo cores of one chip alike.
    is_known = like is not None and not re.fullmatch(r"kryo\d+", cluster.core)
    candidates = IN_ORDER if like in IN_ORDER else OUT_OF_ORDER if is_known else (*IN_ORDER, *OUT_OF_ORDER)
    asked = [(fastest.core_type.value, fastest.mhz[-1])] + [(name, cluster.mhz[-1]) for name in candidates]
    top, *speeds = modelled(asked)
    wanted = (cluster.capacity or 1) / (fastest.capacity or 1)
    ratio, name = min(
        ((speed / top, name) for speed, name in zip(speeds, candidates, strict=True)),
        key=lambda pair: abs(math.log(pair[0] / wanted)),
    )
    core = f"a {cluster.core}" if cluster.core else "not known"
    origin = f"estimate: the core is {core}; of the shipped ones its capacity is nearest"
    cluster.core_type = Fact(
        name, f"{origin} ({ratio * 1024:.0f} by the core model, {wanted * 1024:.0f} stated)"
    )


def modelled(cores: Sequence[tuple[str, int]]) -> list[float]:
    """Capacities of core types at frequencies in MHz by the core model, 1024 for the fastest of them."""
    lines = []
    for place, (core_type, mhz) in enumerate(cores):
        lines += [
            f'[[clusters]]\nname = "c{place}"\ncore_type = "{core_type}"\ncores = 1\nclass = 0',
            f"opps = [{{ mhz = {mhz}, volt = 1.0 }}]",
        ]
    lines += ["[costs]", "context_switch_ns = 0\nmigrate_same_cluster_ns = 0"]
    lines += ["migrate_cross_cluster_ns = 0\nwakeup_latency_ns = 0"]
    core = Catalog.shipped().core.copy()
    core.add("machine", "candidates", "candidates", "\n".join(lines))
    machine = core.machine("candidates")
    return [machine.energy_model(place)[-1][1] for place in range(len(cores))]
