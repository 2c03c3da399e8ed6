"""Devices: requests per second at queue depths between the two that set a service and a latency."""

from collections.abc import Mapping

from ampsched_lab.truth.costs.check import Row, rows_table, section, simulate

PUBLISHED: Mapping[str, Mapping[int, float]] = {
    "[pull request 74](https://github.com/microsoft/lisa/pull/74)": {
        1: 313.07,
        2: 627.28,
        4: 1301.13,
        8: 2665.59,
        16: 5330.87,
        32: 6176.85,
        64: 6278.17,
        128: 6504.00,
        256: 6611.43,
    },
    "[pull request 32](https://github.com/microsoft/lisa/pull/32)": {
        1: 431.00,
        2: 872.73,
        4: 1759.43,
        8: 3569.31,
        16: 5194.68,
        32: 5290.88,
        64: 5781.34,
        128: 5923.13,
        256: 5848.12,
    },
}
"""fio, random reads of 4 KiB, by queue depth: arrays of remote disks, in threads of microsoft/lisa."""
REQUESTS = 300
"""Of each thread."""


def rate_per_s(depth: int, service_us: float, latency_us: float, threads: int, random: bool = False) -> float:
    """Requests per second of threads that do nothing else."""
    amount = f'{{ mean = {service_us}, dist = "exponential" }}' if random else f"{service_us}"
    program = (
        f"[devices.disk]\ndepth = {depth}\nlatency_us = {latency_us}\n"
        f'[[threads]]\nname = "reader"\ncount = {threads}\n'
        f'body = [{{ loop = {REQUESTS}, body = [{{ io_us = {amount}, device = "disk" }}] }}]\n'
    )
    outcome = simulate("sym-2", program)
    return threads * REQUESTS / outcome.makespan_ns * 1e9


def repairman_per_s(depth: int, service_us: float, latency_us: float, threads: int) -> float:
    """The same in theory (machine repairman, M/M/c//N): exponential service, time in between of any distribution."""
    weights = [1.0]
    for there in range(1, threads + 1):
        free = threads - there + 1
        weights.append(weights[-1] * free * service_us / latency_us / min(there, depth))
    busy = sum(min(there, depth) * weight for there, weight in enumerate(weights)) / sum(weights)
    return busy / service_us * 1e6


def of_published(rates: Mapping[int, float]) -> list[Row]:
    """The first and the last depth set the device; those in between are the check."""
    first, last = min(rates), max(rates)
    service_us = 1e6 / rates[last]
    latency_us = 1e6 / rates[first] - service_us
    return [
        Row(f"queue depth {depth}", rate, rate_per_s(1, service_us, latency_us, depth))
        for depth, rate in rates.items()
        if depth not in (first, last)
    ]


def of_theory() -> list[Row]:
    """Random services beside queueing theory."""
    cases = [(1, 400.0, threads) for threads in (1, 4, 16)] + [(4, 900.0, threads) for threads in (2, 8, 32)]
    return [
        Row(
            f"depth {depth}, {threads} threads",
            repairman_per_s(depth, 100.0, latency_us, threads),
            rate_per_s(depth, 100.0, latency_us, threads, random=True),
        )
        for depth, latency_us, threads in cases
    ]


def text() -> str:
    """What the page says of devices."""
    parts = [
        "A device is a service, which occupies it, and a latency, which does not. Two published figures set them: the "
        "rate at queue depth 1 is that of a service and a latency in turn, the rate at the greatest depth that of "
        "services one after the other. The depths in between are the check. The figures are fio's, random reads of "
        "4 KiB from arrays of remote disks whose rate is limited, in threads of microsoft/lisa."
    ]
    for source, rates in PUBLISHED.items():
        parts += [f"Of {source}, requests per second:", rows_table("case", of_published(rates))]
    parts += [
        "Rows that are more than 10 % off lie around the depth where the limit begins, where it counts how much single "
        "services vary, which two figures cannot tell: constant services, as here, reach the limit at once, and "
        "exponential ones (by the theory below) miss two rows as well, one of them in the other direction.",
        "Queueing theory (machine repairman, exponential services of 100 us), requests per second:",
        rows_table("case", of_theory()),
    ]
    return section("Devices", parts)
