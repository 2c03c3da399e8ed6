"""A profile on cores, by the core model: what generators of programs ask."""

import tempfile
from pathlib import Path

import ampsched

INSTRUCTIONS = 10**9


def probe_ns(machine, profile: str, change: str) -> int:
    """Time of 10^9 instructions of a profile with a change, such as ``misses = 1.5``, on a machine."""
    text = (
        f'[profiles.p]\nlike = "{profile}"\n{change}\n'
        f'[[threads]]\nname = "t"\nbody = [{{ compute = {INSTRUCTIONS}, profile = "p" }}]\n'
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "probe.toml"
        file.write_text(text)
        workload = ampsched.Catalog.shipped().workload(file)
    return ampsched.simulate(machine, workload).makespan_ns
