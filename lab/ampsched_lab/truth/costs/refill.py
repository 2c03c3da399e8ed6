"""Refilling of caches after a migration: exact virtual machines with caches, and the same thread simulated."""

import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import ampsched
from ampsched import Catalog
from ampsched.vm.exact import Exact, Work, run
from ampsched_lab.truth.costs.check import Row, rows_table, section

KEPT = Path("docs/reports/truth/costs/refill.json")
DATA = Path(ampsched.__file__).parent / "data"
MACHINE = "2B2S"
CORE_TYPES = ("cortex-a57", "cortex-a53")
LARGE_KIB = {True: 256, False: 4096}
"""What fills the caches before, if both cores are of one cluster, and else."""


@dataclass(frozen=True)
class Case:
    """A thread that migrates.

    Attributes:
        cpus: From where to where; 0 and 1 are big, 2 and 3 little.
        kib: Its working set, a power of two.
    """

    cpus: tuple[int, int]
    kib: int

    @property
    def is_within(self) -> bool:
        """Both cores are of one cluster."""
        return self.cpus[0] // 2 == self.cpus[1] // 2

    def __str__(self) -> str:
        """For the table."""
        first, second = (("big", "little")[cpu // 2] for cpu in self.cpus)
        return f"{first} to {'another ' if self.is_within else ''}{second}, {self.kib} KiB"


CASES = tuple(
    [Case((2, 3), kib) for kib in (8, 16, 32, 64)]
    + [Case((0, 2), kib) for kib in (16, 64, 256)]
    + [Case((2, 0), kib) for kib in (16, 64, 512)]
)


def machine_file(folder: Path, refills: bool = False) -> Path:
    """The machine without prefetchers, which the loads of the check do not give a chance."""
    text = (DATA / "machines" / f"{MACHINE}.toml").read_text("utf-8")
    for name in CORE_TYPES:
        core = (DATA / "core_types" / f"{name}.toml").read_text("utf-8")
        core = re.sub(r"^prefetch_share = .*$", "prefetch_share = 0.0", core, flags=re.MULTILINE)
        (folder / f"{name}-plain.toml").write_text(core, "utf-8")
        text = text.replace(f'"{name}"', f'"{name}-plain.toml"')
    if refills:
        text = re.sub(r"^\[costs\].*$", "[costs]\nmigrate_refill = true", text, flags=re.MULTILINE)
    path = folder / ("refills.toml" if refills else "plain.toml")
    path.write_text(text, "utf-8")
    return path


def measure(program: Path) -> list[float]:
    """How much longer loads take after a migration, in ns, in exact machines as fast as the machine's file says."""
    with tempfile.TemporaryDirectory(prefix="ampsched-costs-") as name:
        catalog = Catalog.shipped()
        machine = catalog.machine(machine_file(Path(name)))
        cycles = machine.kind_cycles(catalog.core)
        mips = max(mhz / each[0] for (_, _, _, mhz, _), each in zip(machine.clusters, cycles, strict=True))
        exact = Exact(machine, mips=mips, caches=True)
        found = []
        for case in CASES:
            cpus = ",".join(str(cpu) for cpu in case.cpus)
            words = [str(program), "--cpus", cpus, str(case.kib), str(LARGE_KIB[case.is_within])]
            found.append(json.loads(run(exact, Work(words)).output)["more_ns"])
        return found


def simulated_ns(case: Case) -> float:
    """What a migration takes: mean of all shipped profiles, which is what misses cost in exact machines."""
    with tempfile.TemporaryDirectory(prefix="ampsched-costs-") as name:
        folder = Path(name)
        machines = [machine_file(folder, refills) for refills in (False, True)]
        profiles = [
            found.group(1)
            for file in sorted((DATA / "profiles").glob("*.toml"))
            for found in re.finditer(
                r"^\[profiles\.\"?([^\]\"]+)\"?\]", file.read_text("utf-8"), re.MULTILINE
            )
        ]
        fixed_ns = 5000 if case.is_within else 20000
        return mean(_more_ns(folder, machines, case, profile) + fixed_ns for profile in profiles)


def _more_ns(folder: Path, machines: Sequence[Path], case: Case, profile: str) -> int:
    path = folder / "program.toml"
    path.write_text(
        f"""name = "p"
description = "d"
[profiles.own]
like = "{profile}"
working_set_kib = {case.kib}
[[threads]]
name = "t"
cores = [{case.cpus[0]}]
body = [{{ occupy_us = 100, profile = "own" }}, {{ set_cores = [{case.cpus[1]}] }}, {{ occupy_us = 100, profile = "own" }}]
""",
        "utf-8",
    )
    plain, refilled = (ampsched.simulate(machine, path, "cfs").makespan_ns for machine in machines)
    return refilled - plain


def keep(program: Path) -> None:
    """Measures anew."""
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    KEPT.write_text(json.dumps(measure(program)) + "\n", "utf-8")


def rows() -> list[Row]:
    """All cases."""
    found = json.loads(KEPT.read_text("utf-8"))
    return [Row(str(case), real, simulated_ns(case)) for case, real in zip(CASES, found, strict=True)]


def text() -> str:
    """What the page says of refills."""
    return section(
        "Refilling caches after a migration",
        [
            "With `migrate_refill`, resuming on another core takes as long as the lines of the working set that were "
            "lost take to miss once: those of the L1 from the L2, and after a change of cluster those of the L2 from "
            "memory. A thread (`lab/ampsched_lab/programs/migrate.c`) loads lines of its working set at random, on a core to which "
            "it has just come and again on the same core, in exact virtual machines of 2B2S with caches; prefetchers "
            "are left out on both sides. How much longer the first takes, in ns, beside the mean over all shipped "
            "profiles, since that is what a miss costs in an exact machine:",
            rows_table("case", rows()),
            "Within a cluster the check is too coarse: what is to be seen is 1 to 5 us of passes of 12 to 100 us. The "
            "same program under another name, or with a pause in each round, gave 2.5 us for 16 KiB and 0.8 us for "
            "8 KiB. So three rows are more than 10 % off, and would be others with another layout; across clusters "
            "all figures stayed within 2.1 %.",
            "Both sides have the same costs of a miss, so this checks how many lines are counted, not what one costs: "
            "that is the [core model's](../../explanation/core-model.md). Moves between big cores are left out: out-of-order cores hide "
            "most of the L2's latency, and what is left (300 ns for 16 KiB) is less than what a tick adds.",
        ],
    )
