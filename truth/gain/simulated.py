"""The same mixes in the simulator, with what was measured of the virtual machine's cores and nothing else."""

from pathlib import Path

import ampsched
from truth.gain.measure import DILATION, SHAPE, Boot
from truth.gain.mixes import Mix
from truth.scenarios import Scenario

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
POLICIES = {"default": ("eevdf", 1), "colab": ("colab", DILATION)}
"""What stands for what in the simulator, and how much slower the policy's time passes."""
BIG_MHZ = 3000
FITS = 3
"""Steps by which the little cores' clock is found."""
MACHINE = """name = "{name}"
description = "The virtual machine: {big} big and {little} little cores"
{clusters}
[costs]
context_switch_ns = {switch_ns}
migrate_same_cluster_ns = {near_ns}
migrate_cross_cluster_ns = {far_ns}
wakeup_latency_ns = {wakeup_ns}
"""
CLUSTER = """
[[clusters]]
name = "{name}"
core_type = "generic"
cores = {cores}
class = {rank}
opps = [{{ mhz = {mhz}, volt = 1.0 }}]
"""
HOG = """
[[threads]]
name = "hog"
cores = [{core}]
body = [{{ run_us = 1e6, profile = "blackscholes" }}]
"""
# As the shipped machine sym-2 has them; nothing beside the steps of these programs.
SWITCH_NS, MIGRATE_NS, WAKEUP_NS = 1_500, 5_000, 2_000
_PAUSE = 1 - SHAPE.little.percent / 100
PAUSED_MIGRATE_NS = round(_PAUSE**2 * SHAPE.period_us * 1000 / 2)
"""How long a thread that is to leave a running little core waits on average until that core, which quotas make pause,
runs again."""


class Simulator:
    """Simulates mixes on a machine with cores as fast as the virtual ones were in one round; its files are in `folder`.

    A thread that goes to the other cluster is late by `migrate_ns`.
    """

    def __init__(self, folder: Path, boot: Boot, migrate_ns: int = MIGRATE_NS) -> None:
        self.folder = folder
        self.migrate_ns = migrate_ns
        self.ns_per_iteration = boot.big_ns_per_iteration
        self.ratio = boot.ratio
        # Memory does not become slower with the clock, so a core of a 2.5th of the clock is not quite 2.5 times as
        # slow.
        self.little_mhz = BIG_MHZ / self.ratio
        for _ in range(FITS):
            self.little_mhz *= self.simulated_ratio() / self.ratio

    def turnarounds_s(self, mix: Mix, policy: str) -> list[float]:
        """Turnaround of each program of the mix."""
        name, dilation = POLICIES[policy]
        return self._simulate(list(mix.programs.values()), name, dilation, SHAPE.little.count)

    def alone_s(self, mix: Mix) -> list[float]:
        """Turnaround of each program alone on the big cores under the kernel's own scheduler."""
        name, dilation = POLICIES["default"]
        return [self._simulate([scenario], name, dilation, 0)[0] for scenario in mix.programs.values()]

    def simulated_ratio(self) -> float:
        """Speed of a big core over that of a little one, for these programs on this machine."""
        machine = self._machine(big=1, little=1, dilation=1)
        big_ns, little_ns = (self._turnaround_ns(machine, core) for core in (0, 1))
        return little_ns / big_ns

    def _turnaround_ns(self, machine: Path, core: int) -> int:
        """How long one of these programs' steps takes on a core."""
        program = self.folder / "hog.toml"
        program.write_text(HOG.format(core=core), encoding="utf-8")
        return ampsched.simulate(machine, program, "eevdf").apps[0].turnaround_ns

    def _simulate(
        self,
        scenarios: list[Scenario],
        policy: str,
        dilation: int,
        little: int,
        big: int = SHAPE.big.count,
    ) -> list[float]:
        apps = "\n".join(
            f'  {{ name = "{number}", program = "{PROGRAMS / f"{scenario.name}.toml"}", '
            f"params = {{ {self._params(scenario, dilation)} }} }},"
            for number, scenario in enumerate(scenarios)
        )
        workload = self.folder / "mix.workload.toml"
        workload.write_text(
            f'[workloads.mix]\ndescription = "A mix"\napps = [\n{apps}\n]\n', encoding="utf-8"
        )
        machine = self._machine(big, little, dilation)
        outcome = ampsched.simulate(machine, workload, policy, limit_s=36_000)
        return [app.turnaround_ns * dilation / 1e9 for app in outcome.apps]

    def _params(self, scenario: Scenario, dilation: int) -> str:
        params = scenario.params(self.ns_per_iteration / dilation)
        return ", ".join(f"{name} = {value!r}" for name, value in params.items())

    def _machine(self, big: int, little: int, dilation: int) -> Path:
        kinds = [("big", big, BIG_MHZ), ("little", little, round(self.little_mhz))]
        present = [kind for kind in kinds if kind[1]]
        # Classes count from the slowest, which is 0.
        clusters = [
            CLUSTER.format(name=name, cores=cores, rank=len(present) - 1 - place, mhz=mhz)
            for place, (name, cores, mhz) in enumerate(present)
        ]
        path = self.folder / "machine.toml"
        text = MACHINE.format(
            name=path.stem,
            big=big,
            little=little,
            clusters="".join(clusters),
            switch_ns=round(SWITCH_NS / dilation),
            near_ns=round(MIGRATE_NS / dilation),
            far_ns=round(self.migrate_ns / dilation),
            wakeup_ns=round(WAKEUP_NS / dilation),
        )
        path.write_text(text, encoding="utf-8")
        return path
