"""CoreMark and 7-zip as programs of ours, and how fast they go on machines."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ampsched import simulate
from ampsched_lab.silicon.data import kept

UNTIL_MS = 5
BENCHMARK_MS = 40_000
"""The first run of 7-zip on all cores took so long (sbc-bench, report 4E5J), and power limits let a burst last less."""
MISSES = (
    "l1i_mpki",
    "l1d_mpki",
    "l1d_write_mpki",
    "l2_512k_mpki",
    "l2_512k_write_mpki",
    "l2_2m_mpki",
    "l2_2m_write_mpki",
)
COMMON = {
    "uops_per_instruction": 1.0,
    "cpi_core_big": 0.5,
    "cpi_core_little": 0.9,
    **dict.fromkeys(("fp_simd", "fp_single", "fp_double", "fp_div", "int_mul_div"), 0.0),
    "ilp_40": 4.0,
    "ilp_128": 6.0,
    # Of bzip2, the shipped profile that is nearest.
    "load_use_1": 0.5,
    "load_use_3": 0.7,
    "prefetchable": 0.1,
}
PROFILES: Mapping[str, Mapping[str, float]] = {
    # Its data fits every first level; shares of instructions are estimates.
    "coremark": {
        **COMMON,
        **dict.fromkeys(MISSES, 0.0),
        "load": 0.2,
        "store": 0.06,
        "branch": 0.2,
        "int_mul_div": 0.02,
        "branch_mpki": 3.0,
    },
    # Counted by cachegrind, see lab/data/silicon/LOT.md: 35.25e9 and 1.708e9 instructions.
    "compress": {
        **COMMON,
        "load": 0.25193,
        "store": 0.06786,
        "branch": 0.12101,
        "branch_mpki": 13.174,
        "l1i_mpki": 0.0064,
        "l1d_mpki": 6.8375,
        "l1d_write_mpki": 0.6161,
        "l2_512k_mpki": 2.5892,
        "l2_512k_write_mpki": 0.1547,
        "l2_2m_mpki": 1.7709,
        "l2_2m_write_mpki": 0.1294,
    },
    "decompress": {
        **COMMON,
        "load": 0.11729,
        "store": 0.05305,
        "branch": 0.11065,
        "branch_mpki": 20.168,
        "l1i_mpki": 0.005,
        "l1d_mpki": 0.9625,
        "l1d_write_mpki": 0.224,
        "l2_512k_mpki": 0.6888,
        "l2_512k_write_mpki": 0.2225,
        "l2_2m_mpki": 0.3937,
        "l2_2m_write_mpki": 0.2223,
    },
}  # fmt: skip
POINT = """[[clusters]]
name = "c{number}"
core_type = "{core}"
cores = 1
class = 0
l2_kib = {l2}
opps = [{{ mhz = {mhz}, volt = 1 }}]
"""
NO_COSTS = "[costs]\n" + "".join(
    f"{name}_ns = 0\n"
    for name in ("context_switch", "migrate_same_cluster", "migrate_cross_cluster", "wakeup_latency")
)


def profile(program: str) -> Mapping[str, float]:
    """A program's profile with what was fitted."""
    return {**PROFILES[program], **kept("fitted").get("profiles", {}).get(program, {})}


def score(program: str) -> float:
    """CoreMark, or MIPS of 7-zip, of a million instructions per second."""
    return float(kept("fitted")["scores"][program])


def speeds(
    machine: str | Path, own: Mapping[str, float], cores: Sequence[int], until_ms: int = UNTIL_MS
) -> list[float]:
    """Million instructions per second of threads of one profile that run together, each on a core of its own.

    Args:
        machine: Name, part of a machine, or file.
        own: The profile.
        cores: Of the threads.
        until_ms: How long they run.
    """
    stated = "\n".join(f"{key} = {value}" for key, value in own.items())
    threads = "".join(
        f'[[threads]]\nname = "t{core}"\ncores = [{core}]\nbody = [{{ compute = 1e15, profile = "own" }}]\n'
        for core in cores
    )
    head = 'name = "threads"\ndescription = "threads that go on"\nsource = "silicon"\n'
    with tempfile.TemporaryDirectory(prefix="ampsched-silicon-") as folder:
        path = Path(folder) / "threads.toml"
        path.write_text(f"{head}[profiles.own]\n{stated}\n{threads}", "utf-8")
        outcome = simulate(machine, path, "cfs", until_ms=until_ms)
    return [1000 * thread.instructions / (until_ms * 1e6) for thread in outcome.threads]


def alone(points: Sequence[tuple[str, int, int]], own: Mapping[str, float]) -> list[float]:
    """Million instructions per second on cores that share nothing.

    Args:
        points: Core type, KiB of L2 and MHz of each.
        own: The profile.
    """
    text = "".join(
        POINT.format(number=number, core=core, l2=l2, mhz=mhz)
        for number, (core, l2, mhz) in enumerate(points)
    )
    with tempfile.TemporaryDirectory(prefix="ampsched-silicon-") as folder:
        path = Path(folder) / "points.toml"
        path.write_text(text + NO_COSTS, "utf-8")
        return speeds(path, own, range(len(points)))
