"""How threads slow each other down: what the comparison counts, and that its simulations are what they claim."""

from pathlib import Path

import pytest

from ampsched import Catalog, simulate
from ampsched_lab.truth.contention import bandwidth, smt
from ampsched_lab.truth.contention.bandwidth import COPY, LMBENCH, LOAD, PUBLISHED, TRIAD, Kernel
from ampsched_lab.truth.contention.simulated import Site, speeds

QUIET = {"l1d_mpki": 0.0, "l2_512k_mpki": 0.0, "l2_2m_mpki": 0.0}


@pytest.mark.parametrize(("kernel", "traffic"), [(LOAD, 1), (COPY, 1.5), (TRIAD, 1.25), (LMBENCH, 3)])
def test_written_lines_move_twice(kernel: Kernel, traffic: float) -> None:
    assert kernel.traffic == pytest.approx(traffic)
    # Four instructions for a line; at one per ns a line of 64 bytes in 4 ns.
    assert kernel.gb_s(1.0) == pytest.approx(16 * kernel.counted / (kernel.reads + kernel.writes))


def test_an_instruction_takes_a_cycle_if_nothing_is_missed(tmp_path: Path) -> None:
    assert speeds(tmp_path, Site(2), [QUIET] * 2) == pytest.approx([1.0, 1.0])


def test_a_miss_takes_what_the_site_states(tmp_path: Path) -> None:
    site = Site(1, l2_cycles=20, memory_ns=100)
    missing = {"l1d_mpki": 50.0, "l2_512k_mpki": 10.0, "l2_2m_mpki": 10.0}
    assert speeds(tmp_path, site, [missing]) == pytest.approx([1 / (1 + 0.05 * 20 + 0.01 * 100)], rel=1e-4)


def test_siblings_gain_what_is_stated(tmp_path: Path) -> None:
    assert smt._gain(tmp_path, 2, 0.6) == pytest.approx(1.2, rel=1e-3)


def test_low_one_thread_is_as_fast_as_published_and_all_are_within_the_memory(tmp_path: Path) -> None:
    series = PUBLISHED[0]
    ours = bandwidth.simulated(tmp_path, series)
    assert ours[1] == pytest.approx(series.gb_s[1], rel=1e-3)
    assert ours[1] < ours[2] < ours[4] < max(series.gb_s.values())


def _machine(tmp_path: Path, cluster: str = "", memory: str = "") -> Path:
    (tmp_path / "m.toml").write_text(
        '[[clusters]]\nname = "c"\ncore_type = "cortex-a53"\ncores = 2\nclass = 0\n'
        f"opps = [{{ mhz = 1000, volt = 1 }}]\n{cluster}\n[costs]\ncontext_switch_ns = 0\nmigrate_same_cluster_ns = 0\n"
        f"migrate_cross_cluster_ns = 0\nwakeup_latency_ns = 0\n{memory}",
        "utf-8",
    )
    return tmp_path / "m.toml"


def test_what_is_shared_is_described(tmp_path: Path) -> None:
    cluster = "l2_contention = true\nbandwidth_mb_s = 3000\nthreads_per_core = 2\nsmt_speed = 0.6"
    path = _machine(tmp_path, cluster, "[memory]\nbandwidth_mb_s = 5000\nchannels = 2")
    ((_, text),) = Catalog.shipped().describe(str(path))
    assert "shared by what runs there: its L2, a port of 3000 MB/s, two threads a core, each at 0.6" in text
    assert "memory: 5000 MB/s over 2 channels" in text


def test_two_siblings_pay_for_one_core(tmp_path: Path) -> None:
    """Two threads on one core share its power: they take longer than on two cores, and less energy."""
    power = "power = { dynamic_uw_per_mhz_v2 = 100 }"
    own, shared = (
        simulate(_machine(tmp_path, f"{threads}\n{power}"), "barrier-loop", "cfs", energy=True)
        for threads in ("", "threads_per_core = 2\nsmt_speed = 0.6")
    )
    assert shared.makespan_ns > own.makespan_ns
    assert 0 < shared.energy_j < own.energy_j
