"""The columns of results that are measured: what they are called, and which way is better."""

from dataclasses import dataclass

from ampsched.naming import unknown


@dataclass(frozen=True, slots=True)
class Measure:
    """A measured column."""

    label: str
    """On axes and in tables, with the unit."""
    lower_is_better: bool


MEASURES = {
    "h_antt": Measure("H_ANTT", True),
    "h_stp": Measure("H_STP", False),
    "antt": Measure("ANTT", True),
    "stp": Measure("STP", False),
    "makespan_ns": Measure("makespan, ns", True),
    "unfairness": Measure("unfairness", True),
    "uniformity": Measure("uniformity", False),
    "min_fairness": Measure("min fairness", False),
    "energy_j": Measure("energy, J", True),
    "edp_js": Measure("energy x makespan, J s", True),
    "peak_c": Measure("peak temperature, °C", True),
    "instructions": Measure("instructions", False),
    "ready_ns": Measure("waiting of all threads, ns", True),
    "ready_ns_max": Measure("longest wait, ns", True),
    "latency_p50_ns": Measure("wake-up latency p50, ns", True),
    "latency_p95_ns": Measure("wake-up latency p95, ns", True),
    "latency_p99_ns": Measure("wake-up latency p99, ns", True),
    "latency_max_ns": Measure("wake-up latency max, ns", True),
    "missed": Measure("missed deadlines", True),
    "switches": Measure("switches", True),
    "migrations": Measure("migrations", True),
}


def measure(name: str) -> Measure:
    """The measure of that name.

    Raises:
        InputError: If there is none.
    """
    if name not in MEASURES:
        raise unknown("metric", name, MEASURES)
    return MEASURES[name]
