"""Conditions under which claims are judged again: one thing is changed at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ampsched._core import SPINNABLE, Machine, Workload
from ampsched.policy import PolicyLike
from ampsched_lab.shared.workloads import FOUR_BIG, equally_long

PART = "conditions"
"""What the part of an experiment is called that runs all of them."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What is changed."""

    name: str
    noise: str = "none"
    factors: str = "oracle"
    lines: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Of the machines' files: what stands there, and what stands there instead."""
    policies: Mapping[str, PolicyLike] = field(default_factory=dict, hash=False)
    """By the name in claims, what is run instead."""
    spin_us: Mapping[str, float] = field(default_factory=dict, hash=False)
    """CPU time for which threads spin before they block, by kind of object."""

    length_ms: float | None = None
    """How long each program takes alone on big cores, if not as long as it was recorded."""
    params: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Of programs that have parameters of these names."""
    net_ratio: float = 1.0
    """By how much what exceeds 1 of a ratio of speeds that a program states is multiplied."""
    mhz: Mapping[str, int] = field(default_factory=dict, hash=False)
    """By cluster, its highest frequency."""
    task_policies: Mapping[str, str] = field(default_factory=dict, hash=False)
    """By the version of a program, what feeds its workers instead."""

    @property
    def changes_policies_only(self) -> bool:
        """Whether all policies that it does not name do what they do as judged."""
        return replace(self, name=AS_JUDGED.name, policies=AS_JUDGED.policies) == AS_JUDGED

    def of(self, workload: Workload, alone_on: str | Machine = FOUR_BIG) -> Workload:
        """A workload as it is under the condition; programs get their lengths alone on that machine."""
        if self.length_ms is not None:
            workload = equally_long(workload, self.length_ms, alone_on)
        if self.net_ratio != 1.0:
            workload = workload.with_net_ratios(self.net_ratio)
        return workload.spinning(self.spin_us) if self.spin_us else workload


AS_JUDGED = Condition("as judged")
IDLE = Condition("noise: idle system", noise="idle")
BUSY = Condition("noise: busy system", noise="busy")
PREDICTED = Condition("predicted speed-ups", factors="predicted")
SPIN = Condition(
    "threads spin for 0.1 ms at barriers and between tasks", spin_us={"barrier": 100.0, "region": 100.0}
)
"""The bound of PARSEC's own barriers (`parsec_barrier`: spin, then block)."""
HANDOVER = Condition(
    "locks and queues take 35 ns to another core, 50 ns to another cluster",
    lines={"[costs]": "[costs]\nhandover_same_cluster_ns = 35\nhandover_cross_cluster_ns = 50"},
)
"""A Core i9-12900K among its P-cores and to its E-cores (nviennot, core-to-core-latency)."""
WIRES_SHARE = 0.7
"""Of the rate of its wires that a memory yields: LPDDR4 and DDR4 under STREAM, 67 to 79 % (TI, SPRACV1B, 2024)."""


def sharing(wires_mb_s: float, channels: int, clusters: Sequence[str]) -> Condition:
    """All cores share the bandwidth of the memory, and those of a cluster its L2.

    Args:
        wires_mb_s: Rate of the memory's wires by its data sheet.
        channels: Of the memory.
        clusters: A line of each cluster in the machines' files, behind which it is said.
    """
    memory = f"[memory]\nbandwidth_mb_s = {wires_mb_s * WIRES_SHARE:.0f}\nchannels = {channels}\n\n[costs]"
    shared = {line: f"{line}\nl2_contention = true" for line in clusters}
    return Condition("threads share L2s and the memory", lines={"[costs]": memory, **shared})


XU3_SHARING = sharing(2 * 7464, 2, ("class = 0", "class = 1"))
"""On an Odroid XU3: LPDDR3 at 933 MHz, two channels of 32 bit (Hardkernel)."""
TOGETHER = replace(
    XU3_SHARING, name="threads spin for 0.1 ms, and share L2s and the memory", spin_us=SPIN.spin_us
)
LENGTH_300 = Condition("each program takes 0.3 s alone", length_ms=300)
LENGTH_1000 = Condition("each program takes 1 s alone", length_ms=1000)
ACTIVE = Condition("threads that wait never sleep", spin_us=dict.fromkeys(SPINNABLE, 1e9))
"""As under OpenMP's `OMP_WAIT_POLICY=active` and in runtimes whose workers poll."""
