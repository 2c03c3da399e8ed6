"""Machines and programs whose every number is stated, and how fast threads go there together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ampsched import simulate

UNTIL_MS = 20
CORE = """pipeline = "in-order"
width = 1
window = 1
mispredict_cycles = 1
load_cycles = 3
fp_single_cycles = 1
fp_double_cycles = 1
fp_single_latency_cycles = 4
fp_double_latency_cycles = 4
simd_cycles = 1
simd_latency_cycles = 4
l1i_kib = 32
l1d_kib = 32
l2_kib = {l2_kib}
l2_cycles = {l2_cycles}
memory_ns = {memory_ns}
mlp_max = {mlp_max}
prefetch_share = 1
"""
MACHINE = """[[clusters]]
name = "cluster"
core_type = "core.toml"
cores = {cores}
class = 0
opps = [{{ mhz = 1000, volt = 1 }}]
{cluster}
[costs]
context_switch_ns = 0
migrate_same_cluster_ns = 0
migrate_cross_cluster_ns = 0
wakeup_latency_ns = 0
{memory}
"""
PROGRAM = """name = "{name}"
description = "one thread that goes on"
source = "truth/contention"
[profiles.own]
{profile}
[[threads]]
name = "thread"
body = [{{ compute = 1e15, profile = "own" }}]
"""
PROFILE = {
    "uops_per_instruction": 1.0,
    "cpi_core_big": 1.0,
    "cpi_core_little": 0.5,  # two at a time on that core: a cycle each on ours, which is half as wide
    "load": 0.5,
    "store": 0.2,
    **dict.fromkeys(("branch", "fp_simd", "fp_single", "fp_double", "fp_div", "int_mul_div"), 0.0),
    **dict.fromkeys(("branch_mpki", "l1i_mpki", "l1d_write_mpki"), 0.0),
    **dict.fromkeys(("l2_512k_write_mpki", "l2_2m_write_mpki", "prefetchable"), 0.0),
    "ilp_40": 1.0,
    "ilp_128": 1.0,
    "load_use_1": 0.0,
    "load_use_3": 1.0,
}


@dataclass(frozen=True)
class Site:
    """Where threads run: cores of 1 GHz that execute an instruction per cycle, in order.

    Attributes:
        cores: How many.
        l2_kib: Their L2.
        l2_cycles: Its latency.
        memory_ns: Latency of the memory.
        mlp_max: Lines that a core has under way at most.
        cluster: What the cluster states beside that.
        memory: The table ``[memory]``, if there is one.
    """

    cores: int
    l2_kib: int = 1024
    l2_cycles: float = 20
    memory_ns: float = 100
    mlp_max: float = 32
    cluster: Mapping[str, str] = field(default_factory=dict)
    memory: Mapping[str, float] = field(default_factory=dict)


def speeds(folder: Path, site: Site, profiles: Sequence[Mapping[str, float]]) -> list[float]:
    """Instructions per ns of threads that run together, one for each profile, each on a core of its own.

    Args:
        folder: For files.
        site: Where.
        profiles: What differs from ``PROFILE``, thread by thread.
    """
    core = CORE.format(**{key: getattr(site, key) for key in ("l2_kib", "l2_cycles", "memory_ns", "mlp_max")})
    (folder / "core.toml").write_text(core, "utf-8")
    cluster = "\n".join(f"{key} = {value}" for key, value in site.cluster.items())
    memory = "".join(f"{key} = {value}\n" for key, value in site.memory.items())
    machine = MACHINE.format(cores=site.cores, cluster=cluster, memory=memory and f"[memory]\n{memory}")
    (folder / "machine.toml").write_text(machine, "utf-8")
    for number, profile in enumerate(profiles):
        stated = "\n".join(f"{key} = {value}" for key, value in {**PROFILE, **profile}.items())
        text = PROGRAM.format(name=f"p{number}", profile=stated)
        (folder / f"p{number}.toml").write_text(text, "utf-8")
    apps = ", ".join(f'{{ program = "p{number}.toml" }}' for number in range(len(profiles)))
    workload = f'[workloads.together]\ndescription = "threads"\napps = [{apps}]\n'
    (folder / "together.toml").write_text(workload, "utf-8")
    outcome = simulate(folder / "machine.toml", folder / "together.toml", "cfs", until_ms=UNTIL_MS)
    return [thread.instructions / (UNTIL_MS * 1e6) for thread in outcome.threads]
