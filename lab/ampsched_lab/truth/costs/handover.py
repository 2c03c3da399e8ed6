"""Hand-over of cache lines: published rates of counters that many threads increment."""

from collections.abc import Mapping
from dataclasses import dataclass

from ampsched_lab.truth.costs.check import Row, rows_table, section, simulate

TOTAL = 20_000
"""Increments of a simulation."""


@dataclass(frozen=True)
class Published:
    """A counter that threads increment as fast as they can.

    Attributes:
        what: For the page.
        rates: Million increments per second by number of threads; the first is one thread.
        set_by: The number of threads whose rate says what a transfer takes.
    """

    what: str
    rates: Mapping[int, float]
    set_by: int


PUBLISHED = (
    Published(
        "[a desktop of four cores with two threads each]"
        "(https://gist.github.com/etishor/cd4f8019432bca2757b9) (`AtomicLong.Increment`)",
        {1: 119.08, 2: 45.98, 4: 49.52, 6: 53.60},
        2,
    ),
    Published(
        "[an Apple M4](https://github.com/v-code01/atomcliff) (one counter, relaxed)",
        {1: 542, 2: 260, 3: 84, 4: 74, 6: 56, 8: 37},
        3,
    ),
)


def rate_m(threads: int, alone_m: float, transfer_ns: float) -> float:
    """Million increments per second of threads on cores of their own."""
    machine = f"""name = "m"
description = "one cluster"
[[clusters]]
name = "c"
core_type = "generic"
cores = {threads}
class = 0
opps = [{{ mhz = 2000, volt = 1.0 }}]
[costs]
context_switch_ns = 0
migrate_same_cluster_ns = 0
migrate_cross_cluster_ns = 0
wakeup_latency_ns = 0
handover_same_cluster_ns = {round(transfer_ns)}
"""
    program = f"""[pools.counter]
total = {TOTAL}
[[threads]]
name = "t"
count = {threads}
cores = ["index"]
body = [{{ dynamic = "counter", body = [{{ occupy_us = {1 / alone_m}, profile = "swaptions" }}] }}]
"""
    return TOTAL / simulate(machine, program).makespan_ns * 1e3


def rows(published: Published) -> list[Row]:
    """All numbers of threads but those that set a value."""
    transfer_ns = 1e3 / published.rates[published.set_by]
    return [
        Row(f"{threads} threads", rate, rate_m(threads, published.rates[1], transfer_ns))
        for threads, rate in published.rates.items()
        if threads not in (1, published.set_by)
    ]


def text() -> str:
    """What the page says of lines."""
    parts = [
        "A lock, queue, pool or semaphore is with the core that used it last; who uses it next waits for the transfer "
        "of its cache line, and for those who want it before. So a counter that cores increment as fast as they can "
        "goes up once per transfer, however many cores they are. Tables of core-to-core latencies, such as "
        "[this one](https://github.com/nviennot/core-to-core-latency), give the values: a Core i9-12900K 35 ns within "
        "and 44 to 50 ns to or between E-cores, desktops of four cores 20 to 27 ns."
    ]
    for published in PUBLISHED:
        transfer_ns = 1e3 / published.rates[published.set_by]
        parts += [
            f"Of {published.what}, million increments per second; the rate of {published.set_by} threads sets a "
            f"transfer of {transfer_ns:.1f} ns:",
            rows_table("case", rows(published), ",.1f"),
        ]
    parts += [
        "What a fixed transfer cannot say: threads that share a core share its line (6 threads on four cores); a core "
        "keeps a line for several increments before it gives it away (2 threads on the M4); and where requests meet "
        "in the interconnect, each transfer takes longer, the more cores ask (the M4, whose cores beyond four are in "
        "another cluster, too). So trust it for locks that are used now and then by few cores, not for counters that "
        "all cores hammer on. False sharing stays out: programs say which locks they take, not which lines their "
        "data is in.",
        "No shipped machine states these costs. The computer on which this was written is a virtual machine whose "
        "CPUs move between a core's two threads and different cores: its transfers took 25 ns at one time and 100 ns "
        "at another, so nothing is compared with it.",
    ]
    return section("Hand-over of lines", parts)
