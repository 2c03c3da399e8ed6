"""Linux on cores with two threads: what the comparison counts. Nothing here boots a machine."""

from pathlib import Path

import pytest
from conftest import ROOT

from ampsched_lab.campaign.boot import KERNEL
from ampsched_lab.campaign.store import Store
from ampsched_lab.truth import siblings
from ampsched_lab.truth.pairs.machine import Costs
from ampsched_lab.truth.siblings import beside_idle

PAIRS = [(0, 1, 0.6), (2, 3, 0.6)]
DATA = ROOT / "lab/data/truth"


def test_a_shared_core_counts_while_another_is_wholly_idle() -> None:
    shared = [(0, 0, 100), (1, 20, 60)]
    assert beside_idle(shared, PAIRS) == pytest.approx(0.4)
    assert beside_idle([*shared, (3, 10, 30)], PAIRS) == pytest.approx(0.3)
    assert beside_idle([(0, 0, 50), (0, 50, 100), (2, 0, 100), (4, 0, 90)], PAIRS) == 0


def test_stays_are_those_of_hogs_in_the_trace() -> None:
    def switch(us: int, core: int, old: str, new: str) -> str:
        return (
            f"  {old}-7 [00{core}] d..2. 1.{us:06}: sched_switch: prev_comm={old} prev_pid=7 prev_prio=120 "
            f"prev_state=R ==> next_comm={new} next_pid=8 next_prio=120"
        )

    lines = [
        switch(10, 0, "sh", "hogs"), switch(12, 1, "swapper", "kworker/1"), switch(30, 0, "hogs", "hogs"),
        switch(45, 0, "hogs", "swapper"), switch(50, 1, "kworker/1", "hogs"), switch(90, 1, "hogs", "sh"),
    ]  # fmt: skip
    stays = [(core, begin - 10**9, end - 10**9) for core, begin, end in siblings.kernel_stays(lines)]
    assert stays == [(0, 10_000, 30_000), (0, 30_000, 45_000), (1, 50_000, 90_000)]


def test_a_row_compares_means_over_offsets() -> None:
    row = siblings.cells("2", "none", [(2e8, 3e8, 0), (4e8, 5e8, 0.5)], [(3.3e8, 3.8e8, 0)])
    assert row == ["2", "none", "300", "330", "400", "380", "+10.0%, -5.0%", "25.0%", "0.0%"]


@pytest.mark.parametrize("sees", siblings.SEES)
def test_neither_side_is_faster_than_its_cores(tmp_path: Path, sees: str) -> None:
    guest = siblings.guest_of(sees, tmp_path)
    simulated = siblings.simulator(sees, tmp_path, Costs.load(DATA / "costs-eevdf-x86_64-6.18.json"))
    workload = siblings.WORKLOADS[-1]
    found = simulated.timeline(workload, workload.mix().starts_us(1), "linux")
    assert list(found.machine.siblings) == list(guest.exact.siblings())
    # Of 20 seconds of work, siblings do 1.2 at a time and eight E-cores 0.72 each.
    least_ns = 1e9 * 20 / (4 * 1.2 + 8 * 0.72)
    kept = Store(DATA).read(guest.name, guest.system, KERNEL)[workload.name, 1]
    for _, last_ns, share in (siblings.simulated_ends(found), siblings.kernel_ends(kept)):
        assert least_ns < last_ns < 1.3 * least_ns
        assert share < 0.1
