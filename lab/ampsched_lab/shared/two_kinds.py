"""Exact virtual machines of two kinds of cores, half of the cores each."""

from pathlib import Path
from typing import Any

from ampsched import Catalog
from ampsched.vm.exact import Exact
from ampsched.vm.exact.costs import SHARES, ClassCosts

MACHINE = """name = "{name}"
description = "{cores} cores, half of them of another kind"
[[clusters]]
name = "first"
core_type = "generic"
cores = {half}
class = 1
opps = [{{ mhz = {first}, volt = 1.0 }}]
[[clusters]]
name = "second"
core_type = "generic"
cores = {half}
class = 0
opps = [{{ mhz = {second}, volt = 1.0 }}]
[costs]
context_switch_ns = 0
migrate_same_cluster_ns = 0
migrate_cross_cluster_ns = 0
wakeup_latency_ns = 0
"""


def two_kinds(folder: Path, name: str, cores: int, mips: tuple[int, int], **settings: Any) -> Exact:
    """A machine, whose file is put into a folder.

    Args:
        folder: For its file.
        name: Of the machine and its file.
        cores: An even number; half of them of each kind.
        mips: Million instructions per second of a core of each kind.
        settings: Others of ``Exact``.
    """
    first, second = mips
    path = folder / f"{name}.toml"
    text = MACHINE.format(name=name, cores=cores, half=cores // 2, first=first, second=second)
    path.write_text(text, "utf-8")
    speeds = [ClassCosts(each * 1000, (SHARES,) * 5) for each in mips]
    return Exact(Catalog.shipped().machine(path), speeds=speeds, **settings)
