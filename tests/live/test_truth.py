"""Simulator and kernel agree where nothing is decided by chance: one boot of the truth check, on its own machine."""

import json
import subprocess
from pathlib import Path

import pytest
from machines import ROOT

from ampsched_lab.campaign.boot import Guest, boot, ours
from ampsched_lab.campaign.plan import Run
from ampsched_lab.truth.pairs import run
from ampsched_lab.truth.pairs.machine import Costs
from ampsched_lab.truth.pairs.simulated import Simulator
from ampsched_lab.truth.pairs.workloads import WORKLOADS

SOURCES = {"director": ROOT / "lab/ampsched_lab/campaign/director.c"}
TOLERANCE = {"cfs": 0.02, "wash": 0.05}
"""WASH looks every 10 ms, and at other phases than in the simulation."""
NAMES = {"cfs": ("hogs-3", "lock-hot"), "wash": ("hogs-3",)}
"""Under WASH, two hogs fit onto the big cores when the third has ended, unless the session itself is counted."""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """The folder of the compiled programs."""
    folder = tmp_path / "programs"
    folder.mkdir()
    shared = ROOT / "lab/ampsched_lab/programs/truth.c"
    for name in ("director", "hogs", "convoy"):
        own = [SOURCES[name]] if name in SOURCES else [ROOT / f"lab/ampsched_lab/programs/{name}.c", shared]
        subprocess.run(
            ["cc", "-O2", "-std=gnu11", "-pthread", "-static", "-o", folder / name, *own], check=True
        )
    return folder


@pytest.mark.parametrize("policy", NAMES)
def test_a_kernel_does_what_is_simulated(policy: str, loader: Path, programs: Path, tmp_path: Path) -> None:
    workloads = [workload for workload in WORKLOADS if workload.name in NAMES[policy]]
    runs = [Run(workload.mix(), 1) for workload in workloads]
    rows = boot(Guest(run.MACHINE, run.exact_machine(), programs), ours(policy, loader), runs)
    costs = Costs.load(ROOT / "lab/data/truth/costs-back-end.json")
    machine = ROOT / "lab/ampsched_lab/truth/machines/exact-2B2S-back-end.toml"
    simulator = Simulator(tmp_path, machine, costs.ns_per_iteration, costs.ratio, costs.start_us)
    for workload, row in zip(workloads, rows, strict=True):
        simulated = simulator.run(workload, workload.mix().starts_us(1), policy)
        for ended, program in zip(simulated, row["programs"], strict=True):
            print(json.dumps(program), ended)
            real_ns = program["report"]["turnaround_ns"]
            assert ended.turnaround_ns == pytest.approx(real_ns, rel=TOLERANCE[policy])
