"""What instructions cost on the cores of an exact virtual machine."""

import re
from pathlib import Path

import pytest

from ampsched.catalog import Catalog
from ampsched.vm.error import VmError
from ampsched.vm.exact import Exact
from ampsched.vm.exact.costs import SHARES, ClassCosts, costs

CLOCK = Path(__file__).resolve().parents[2] / "crates/live/exact"
INTEGER, MEMORY, _BRANCH, FLOAT, SIMD = range(5)


def of(machine: str, mips: float = 1000.0) -> list[ClassCosts]:
    return costs(Catalog.shipped().machine(machine), mips)


def gain(machine: str, kind: int) -> float:
    """How much faster code of a kind is on the fastest cluster of a machine than on the slowest."""
    speeds = [each.rate_kips / each.shares[kind] for each in of(machine)]
    return max(speeds) / min(speeds)


def test_shares_are_those_of_the_clock() -> None:
    stated = re.search(r"SHARES = (\d+)", (CLOCK / "machine.h").read_text())
    assert stated
    assert int(stated[1]) == SHARES


def test_the_fastest_cluster_has_the_rate_asked_for() -> None:
    for name in ("2B2S", "hikey960", "tensor", "hybrid-8P16E", "sym-4"):
        for mips in (400.0, 1000.0):
            assert max(each.rate_kips for each in of(name, mips)) == mips * 1000


def test_integers_cost_one_everywhere_and_nothing_is_free() -> None:
    for entry in Catalog.shipped().entries("machine"):
        for each in of(entry.name):
            assert each.shares[INTEGER] == SHARES
            assert min(each.shares) > 0


def test_equal_clusters_cost_the_same() -> None:
    p, *e = of("hybrid-8P16E")
    assert len(e) == 4
    assert len({*e}) == 1
    assert p != e[0]


def test_clusters_of_one_core_type_differ_by_their_clocks() -> None:
    clusters = Catalog.shipped().machine("pixel").clusters
    assert len({core_type for _, core_type, *_ in clusters}) == 1
    slow, fast = of("pixel")
    assert slow.rate_kips / fast.rate_kips == pytest.approx(clusters[0][3] / clusters[1][3], rel=1e-5)
    assert slow.shares == fast.shares


def test_programs_gain_differently() -> None:
    """An in-order core waits for results, most for those of floating point; an out-of-order one looks ahead."""
    gains = [gain("2B2S", kind) for kind in (INTEGER, MEMORY, FLOAT)]
    assert gains == sorted(gains)
    assert gains[-1] > 1.2 * gains[0]


def test_documented_gains() -> None:
    """docs/explanation/core-model.md, section on kinds of instructions."""
    kinds = (INTEGER, MEMORY, FLOAT, SIMD)
    assert [round(gain("2B2S", kind), 2) for kind in kinds] == [2.69, 3.01, 4.14, 4.86]


def test_three_classes_are_in_order() -> None:
    x1, a76, a55 = sorted(of("tensor"), key=lambda each: -each.rate_kips)
    assert x1.rate_kips > a76.rate_kips > 1.5 * a55.rate_kips


@pytest.mark.parametrize("mips", [0.5, 200_000.0, float("nan")])
def test_rates_out_of_range_are_refused(mips: float) -> None:
    with pytest.raises(VmError, match="million instructions per second: from 1 to 100000"):
        of("2B2S", mips)


def test_memory_takes_the_same_time_on_all_clusters() -> None:
    """So a fast core gains less from code that waits for it."""
    big, little = costs(Catalog.shipped().machine("2B2S"), caches=True)
    assert big.misses
    assert little.misses
    assert (big.misses.l1_kib, big.misses.l2_kib, little.misses.l2_kib) == (32, 2048, 512)
    integer = gain("2B2S", INTEGER)
    waits = [each.misses.shares[1] / each.rate_kips for each in (big, little) if each.misses]
    assert waits[1] / waits[0] < 0.6 * integer


def test_costs_of_misses_are_in_order() -> None:
    for entry in Catalog.shipped().entries("machine"):
        for number, each in enumerate(costs(Catalog.shipped().machine(entry.name), caches=True)):
            assert each.misses is not None
            l2, memory, l2_stream, memory_stream, store = each.misses.shares
            assert each.misses.cluster == number
            assert 0 < l2_stream < l2 < memory
            assert l2_stream < memory_stream < memory
            assert 0 < store < memory


def test_the_clock_is_told_of_caches() -> None:
    machine = Catalog.shipped().machine("hybrid-8P16E")
    lines = Exact(machine, caches=True).clock_settings().splitlines()
    # A cluster is a class of its own, as it has an L2 of its own.
    assert [line.split()[0] for line in lines[1:11]] == ["class", "cache"] * 5
    assert [line for line in lines if line.startswith("cpu")] == ["cpu 0"] * 8 + [
        f"cpu {number}" for number in (1, 2, 3, 4) for _ in range(4)
    ]
