"""Facts of a computer from a tree of files as Linux shows them.

Classes, kinds, clocks and energy models are read by crates/computer; here is what only a machine file needs: hardware
threads, caches, part numbers without a core type, latencies, limits.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from ampsched._core import (
    CoreKind,
    InputError,
    core_domains,
    core_kinds,
    format_cpus,
    parse_cpus,
)
from ampsched.machine_file.core_types import INTEL, part_name
from ampsched.machine_file.facts import (
    ALL,
    ASSUMED_MHZ,
    UNREADABLE,
    ClusterFacts,
    Fact,
    Lack,
    MachineFacts,
    unique,
)
from ampsched.machine_file.limits import cluster_remarks, remarks
from ampsched.machine_file.tree import CPU, CPUINFO_BYTES_MAX, Source, names, number, text

SMT_MOST = 2
CLOCKS_ALIKE = 1.1
"""Favoured cores of one kind are clocked less than this higher than others (crates/computer, classes.rs)."""
CLASS_NAMES = {1: ["cores"], 2: ["little", "big"], 3: ["little", "middle", "big"]}
SWITCH_NS_MAX = 1_000_000_000


def read_facts(source: Source) -> MachineFacts:
    """What a source says of its computer, core types not chosen yet.

    Raises:
        InputError: It does not say which CPUs there are, or contradicts itself.
    """
    root = source.root
    try:
        domains, evidence = core_domains(root)
        cpus = sorted(cpu for domain in domains for cpu in domain[0])
        kinds = core_kinds(set(cpus), root)
    except InputError as error:
        raise InputError(str(error).replace(f"{root}/", f"{source.title}: /").replace("//", "/")) from None
    left_out = list(source.left_out)
    shares = _Shares(source, cpus, left_out)
    cores = _core_names(source, cpus, kinds)
    kind_of = {cpu: kind for kind in kinds for cpu in kind.cpus}
    is_arm = _is_arm(source)
    clusters = [
        _cluster(source, group, domain, evidence, kind_of, cores, shares)
        for domain in domains
        for group in shares.split(domain[0], _marks(domain[0], kind_of, cores))
    ]
    _name(clusters)
    facts = MachineFacts(
        source.title,
        source.by,
        clusters,
        _sees(source, evidence, is_arm, len({cluster.class_.value for cluster in clusters})),
        shares.last_level([set(cluster.cpus) for cluster in clusters]),
        _costs(source, clusters),
        remarks(source) + source.remarks,
    )
    facts.lacks += _lacks(source, facts, is_arm) + shares.lacks(is_arm)
    facts.lacks = list(dict.fromkeys([*facts.lacks, *left_out]))
    return facts


def _marks(cpus: Sequence[int], kind_of: dict[int, CoreKind], cores: dict[int, str]) -> list[object]:
    """What tells the cores of a domain apart, for each of them: type, name, and clocks that differ by much."""
    tops = sorted({kind_of[cpu].mhz or 0 for cpu in cpus})
    steps = [high for low, high in pairwise(tops) if high > low * CLOCKS_ALIKE]
    return [
        (kind_of[cpu].core_type, cores[cpu], sum((kind_of[cpu].mhz or 0) >= step for step in steps))
        for cpu in cpus
    ]


class _Shares:
    """Which CPUs share a core and caches."""

    def __init__(self, source: Source, cpus: Sequence[int], left_out: list[Lack]) -> None:
        self._root = source.root
        self._cpus = set(cpus)
        self._left_out = left_out
        self._by = source.by
        self.siblings = {cpu: self._siblings(cpu) for cpu in cpus}
        self._caches = {cpu: self._levels(cpu) for cpu in cpus}
        self._is_told = any(len(one) > 1 for one in self.siblings.values()) or any(
            text(self._root, f"{CPU}/cpu{cpu}/topology/{name}") for cpu in cpus[:1] for name in _SIBLINGS
        )

    def _list(self, name: str) -> set[int] | None:
        found = text(self._root, name)
        if found is None:
            return None
        try:
            return set(parse_cpus(name, found)) & self._cpus
        except InputError:
            self._left_out.append(Lack(f"/{name}", UNREADABLE, "what is shared"))
            return None

    def _siblings(self, cpu: int) -> tuple[int, ...]:
        for name in _SIBLINGS:
            found = self._list(f"{CPU}/cpu{cpu}/topology/{name}")
            if found and cpu in found:
                return tuple(sorted(found))
        return (cpu,)

    def _levels(self, cpu: int) -> dict[int, tuple[int | None, frozenset[int]]]:
        """KiB and CPUs of the caches for data, by level."""
        found = {}
        for index in names(self._root, f"{CPU}/cpu{cpu}/cache", r"index\d+"):
            folder = f"{CPU}/cpu{cpu}/cache/{index}"
            level, kind = number(self._root, f"{folder}/level"), text(self._root, f"{folder}/type")
            shared = self._list(f"{folder}/shared_cpu_list")
            if level and kind in ("Data", "Unified") and shared and cpu in shared:
                size = re.fullmatch(r"(\d{1,9})([KM]?)", text(self._root, f"{folder}/size") or "")
                kib = int(size[1]) * {"K": 1, "M": 1024, "": 0}[size[2]] if size else 0
                found[level] = (kib or None, frozenset(shared))
        return found

    def l2(self, cpu: int) -> tuple[int | None, frozenset[int]]:
        """KiB and CPUs of a CPU's second-level cache."""
        return self._caches[cpu].get(2, (None, frozenset()))

    def l3_kib(self, cpu: int) -> int | None:
        """KiB of its third-level cache."""
        return self._caches[cpu].get(3, (None, frozenset()))[0]

    def _last(self, cpu: int) -> frozenset[int]:
        levels = self._caches[cpu]
        return levels[max(levels)][1] if levels else frozenset()

    def split(self, cpus: Sequence[int], kinds: Sequence[object]) -> list[list[int]]:
        """Groups of equal cores that share what caches any of them share; siblings are neighbours."""
        groups: dict[tuple[object, ...], list[int]] = {}
        for cpu, kind in zip(cpus, kinds, strict=True):
            shared = self.l2(cpu)[1]
            l2 = shared if len(shared) > len(self.siblings[cpu]) else None
            last = self._last(cpu)
            is_several = len(last) > len(self.siblings[cpu])
            key = (kind, len(self.siblings[cpu]), l2, last if is_several else None)
            groups.setdefault(key, []).append(cpu)
        return [self._paired(group) for group in groups.values()]

    def _paired(self, cpus: list[int]) -> list[int]:
        own = set(cpus)
        return [mine for cpu in cpus if (pair := self.siblings[cpu])[0] == cpu or pair[0] not in own
                for mine in pair if mine in own]  # fmt: skip

    def last_level(self, clusters: list[set[int]]) -> Fact:
        """Which cores share the last-level cache."""
        levels = {cpu: max(each) for cpu, each in self._caches.items() if each}
        most = max(levels.values(), default=0)
        if most < SMT_MOST:  # no level above the first
            return Fact("machine", "estimate: no source says which cores share caches")
        groups = {self._last(cpu) for cpu, level in levels.items() if level == most}
        if len(groups) == 1:
            some = "" if next(iter(groups)) == self._cpus else "; the other cores have none at that level"
            return Fact(
                "machine", f"stated by {self._by}: one L{most} for CPUs {format_cpus(sorted(*groups))}{some}"
            )
        whole = all(any(cluster <= group for group in groups) for cluster in clusters)
        word = "each cluster has its own" if whole else "several of them"
        return Fact("cluster", f"stated by {self._by}: {len(groups)} caches of L{most}, {word}")

    def lacks(self, is_arm: bool) -> list[Lack]:
        """What is not known of it."""
        found = []
        if not self._is_told and not is_arm:
            found.append(
                Lack("hardware threads", "every CPU counts as a core of its own", "all times, if SMT is on")
            )
        if any(len(one) > SMT_MOST for one in self.siblings.values()):
            found.append(
                Lack("cores of more than two hardware threads", "pairs of them count as cores", "all times")
            )
        if not any(self._caches.values()):
            found.append(Lack("caches", "sizes are those of the core types", "programs that miss caches"))
        return found


_SIBLINGS = ("core_cpus_list", "thread_siblings_list")


def _cluster(
    source: Source,
    cpus: list[int],
    domain: tuple[list[int], int, list[int], float | None, list[tuple[int, float]]],
    evidence: str,
    kind_of: dict[int, CoreKind],
    cores: dict[int, str],
    shares: _Shares,
) -> ClusterFacts:
    _, class_, freqs_mhz, relative, power = domain
    first, kind = cpus[0], kind_of[cpus[0]]
    by_mhz = dict(power)
    top_mhz = max((kind_of[cpu].mhz or 0 for cpu in cpus), default=0)
    mhz, origin = _mhz(source, first, kind, by_mhz, freqs_mhz, top_mhz)
    l2_kib, sharing = shares.l2(first)
    volts = source.volts.get(first, {})
    is_speed = evidence == "cpu_capacity" and relative is not None
    cluster = ClusterFacts(
        name="",
        cpus=cpus,
        class_=Fact(class_, f"evidence: {evidence}"),
        mhz=mhz,
        mhz_origin=origin,
        core=cores[first],
        capacity=relative * 1024 if is_speed and relative else None,
        power=by_mhz,
        power_origin=f"stated by {source.by} (energy model)",
        volts={each: volts[each] for each in mhz} if all(each in volts for each in mhz) else {},
        coefficient=source.coefficients.get(first),
        threads_per_core=min(SMT_MOST, _in_pairs(cpus, shares)),
        l2_kib=l2_kib if l2_kib and 16 <= l2_kib <= 1 << 20 else None,
        shares_l2=len(sharing) > len(shares.siblings[first]),
        remarks=cluster_remarks(source, cpus, shares.l3_kib(first)),
    )
    if kind.is_known:
        told = "part number" if kind.pmu is None or "cortex" in kind.core_type else "kind of PMU"
        cluster.core_type = Fact(kind.core_type, f"stated by {source.by}: {told}")
    return cluster


def _in_pairs(cpus: list[int], shares: _Shares) -> int:
    """2 if the CPUs are pairs of hardware threads."""
    own = set(cpus)
    pairs = [sum(mine in own for mine in shares.siblings[cpu]) for cpu in cpus]
    return 2 if len(cpus) % 2 == 0 and min(pairs) > 1 else 1


def _mhz(
    source: Source, cpu: int, kind: CoreKind, power: dict[int, float], listed: list[int], top_mhz: int | None
) -> tuple[list[int], str]:
    """Frequencies and where they come from."""
    folder = f"{CPU}/cpu{cpu}/cpufreq"
    if power:
        return sorted(power), f"stated by {source.by}: those of the energy model"
    # Cores without a clock in common are one domain for policies; each has its own highest frequency.
    usable = [mhz for mhz in listed if 1 <= mhz <= min(10_000, top_mhz or 10_000)]
    if usable and (
        text(source.root, f"{folder}/scaling_available_frequencies")
        or source.by != "the kernel"
        or len(usable) == 1
    ):
        return usable, f"stated by {source.by}"
    if usable:
        return usable, f"lowest and highest stated by {source.by} (cpufreq), steps of 100 MHz are assumed"
    if kind.mhz and 1 <= kind.mhz <= 10_000:
        if number(source.root, f"{folder}/cpuinfo_max_freq"):
            return [kind.mhz], f"stated by {source.by}: cpuinfo_max_freq"
        # The present clock wavers; tens of MHz would make each reading another machine.
        return [max(50, round(kind.mhz / 50) * 50)], f"estimate: the clock that {source.by} showed, to 50 MHz"
    return [ASSUMED_MHZ], "estimate: no source says a frequency"


def _core_names(source: Source, cpus: Sequence[int], kinds: Sequence[CoreKind]) -> dict[int, str]:
    """What each CPU's core is called: by the source, by Arm's part number, or by Intel's model."""
    x86 = _x86(source)
    classes = sorted({kind.core_type for kind in kinds})
    found = {}
    for cpu in cpus:
        midr = text(source.root, f"{CPU}/cpu{cpu}/regs/identification/midr_el1") or ""
        name = source.cores.get(cpu, "")
        if not name and re.fullmatch(r"0x[0-9a-fA-F]{1,16}", midr):
            name = part_name(int(midr, 16))
        if not name and x86 is not None and classes == ["generic"]:
            name = INTEL.get(x86, "")
        found[cpu] = name
    return found


def _x86(source: Source) -> int | None:
    """Model of an Intel processor of family 6 by /proc/cpuinfo."""
    told = text(source.root, "proc/cpuinfo", CPUINFO_BYTES_MAX) or ""
    block = {
        key.strip(): value.strip()
        for key, found, value in (line.partition(":") for line in told.split("\n\n")[0].split("\n"))
        if found
    }
    is_intel = block.get("vendor_id") == "GenuineIntel" and block.get("cpu family") == "6"
    model = block.get("model", "")
    return int(model) if is_intel and re.fullmatch(r"\d{1,3}", model) else None


def _is_arm(source: Source) -> bool:
    if source.is_arm is not None:
        return source.is_arm
    told = text(source.root, "proc/cpuinfo") or ""
    return "vendor_id" not in told and (
        "CPU implementer" in told or bool(names(source.root, f"{CPU}/cpu0/regs", "identification"))
    )


def _name(clusters: list[ClusterFacts]) -> None:
    """Names clusters by class and, of several of one class, number."""
    count = max(cluster.class_.value for cluster in clusters) + 1
    words = CLASS_NAMES.get(count, [f"class{place}-" for place in range(count)])
    for place, word in enumerate(words):
        own = [cluster for cluster in clusters if cluster.class_.value == place]
        for order, cluster in enumerate(own):
            cluster.name = word if len(own) == 1 else f"{word}{order}"


def _sees(source: Source, evidence: str, is_arm: bool, classes: int) -> Fact:
    if evidence == "cpu_capacity":
        return Fact("capacities", f"{source.by} states cpu_capacity")
    if is_arm and classes == 1:
        return Fact("nothing", f"evidence: {evidence}")
    if is_arm:
        return Fact("capacities", "estimate: kernels of Arm cores read capacities from the device tree")
    itmt = text(source.root, "proc/sys/kernel/sched_itmt_enabled")
    if "PMU" in evidence:
        told = "ITMT is on" if itmt == "1" else "estimate: Intel's hybrids have ITMT"
        return Fact("priorities", told)
    preferred = text(source.root, "sys/devices/system/cpu/amd_pstate/prefcore")
    if (itmt == "1" or preferred == "enabled") and classes > 1:
        return Fact("priorities", f"{source.by} states that it prefers cores")
    return Fact("nothing", "estimate: kernels of x86-64 without hybrid cores are told nothing")


def _costs(source: Source, clusters: Sequence[ClusterFacts]) -> dict[str, Fact]:
    """The latency of changes of frequency, if it is stated and can be."""
    told = [
        number(source.root, f"{CPU}/cpu{cpu}/cpufreq/cpuinfo_transition_latency")
        for cluster in clusters
        for cpu in cluster.cpus[:1]
    ]
    latencies = [each for each in told if each and each <= SWITCH_NS_MAX]
    if not latencies:
        return {}
    return {"frequency_switch_ns": Fact(max(latencies), f"stated by {source.by}: cpuinfo_transition_latency")}


def _lacks(source: Source, facts: MachineFacts, is_arm: bool) -> list[Lack]:
    found = []
    clusters = facts.clusters
    if text(source.root, f"{CPU}/offline"):
        offline = text(source.root, f"{CPU}/offline")
        found.append(Lack(f"CPUs {offline}", "left out, they are off-line", "all that would run there"))
    assumed = [cluster.name for cluster in clusters if cluster.mhz_origin.startswith("estimate")]
    if assumed:
        stands = (
            f"{'/'.join(unique([str(c.mhz[-1]) for c in clusters if c.name in assumed]))} MHz, an estimate"
        )
        found.append(Lack(f"highest frequency of {', '.join(assumed)}", stands, "all times"))
    if len({cluster.class_.value for cluster in clusters}) > 1 and any(c.capacity is None for c in clusters):
        found.append(
            Lack(
                "how much faster a kind of core is",
                "the core types' model",
                f"{ALL}; ampsched calibrate measures it",
            )
        )
    for cluster in clusters:
        tops = {number(source.root, f"{CPU}/cpu{cpu}/cpufreq/cpuinfo_max_freq") or 0 for cpu in cluster.cpus}
        if len(tops) > 1:
            what = f"clocks of {cluster.name}, up to {min(tops) // 1000} MHz on some cores"
            found.append(Lack(what, f"{cluster.mhz[-1]} MHz stand for all", "all times"))
    if not is_arm and any(len(cluster.mhz) > 1 for cluster in clusters):
        stands = "every core reaches its highest clock at any time"
        found.append(Lack("clocks while many cores are busy or hot", stands, "parallel programs"))
    if any(not cluster.power and not (cluster.coefficient and cluster.volts) for cluster in clusters):
        hint = (
            " (root may read the kernel's energy model in debugfs)"
            if is_arm and source.by == "the kernel"
            else ""
        )
        found.append(Lack("power", f"left out{hint}", "energy, which is refused, and eas"))
    return found
