"""Power of boards and shared rails: simulations beside the arithmetic of their laws."""

from math import exp

from ampsched_lab.truth.costs.check import Row, rows_table, section, simulate

CASES = ((1.0, 1.0), (1.1, 0.9), (1.25, 0.9), (1.3625, 0.9), (0.9, 1.1))
"""Volts of the big and of the little cluster."""
MHZ = 1000
DYNAMIC_UW, UNCORE_UW, STATIC_MW, UNCORE_STATIC_MW, PER_VOLT = 100.0, 40.0, 30.0, 20.0, 1.5
BOARD_MW = 1200.0
RUN_MS = 100


def machine(big_volt: float, little_volt: float) -> str:
    """Two clusters of one core each on one rail."""
    clusters = "".join(
        f"""[[clusters]]
name = "{name}"
core_type = "{core_type}"
cores = 1
class = {class_}
opps = [{{ mhz = {MHZ}, volt = {volt} }}]
[clusters.power]
dynamic_uw_per_mhz_v2 = {DYNAMIC_UW}
uncore_dynamic_uw_per_mhz_v2 = {UNCORE_UW}
static_mw = {STATIC_MW}
uncore_static_mw = {UNCORE_STATIC_MW}
static_at_volt = 1.0
static_per_volt = {PER_VOLT}
"""
        for name, core_type, class_, volt in (
            ("big", "cortex-a15", 1, big_volt),
            ("little", "cortex-a7", 0, little_volt),
        )
    )
    return f"""name = "m"
description = "one rail"
{clusters}
[costs]
context_switch_ns = 0
migrate_same_cluster_ns = 0
migrate_cross_cluster_ns = 0
wakeup_latency_ns = 0
[power]
board_mw = {BOARD_MW}
shared_rail = ["big", "little"]
"""


def expected_w(big_volt: float, little_volt: float) -> float:
    """A busy little core, an idle big one, both uncores awake, all at the higher voltage, and the board."""
    volt = max(big_volt, little_volt)
    dynamic_mw = (DYNAMIC_UW + 2 * UNCORE_UW) * MHZ * volt**2 / 1000
    leakage_mw = (2 * STATIC_MW + 2 * UNCORE_STATIC_MW) * volt * exp(PER_VOLT * (volt - 1.0))
    return (dynamic_mw + leakage_mw + BOARD_MW) / 1000


def rows() -> list[Row]:
    """All cases."""
    program = f"""[[threads]]
name = "t"
cores = [1]
body = [{{ occupy_us = {RUN_MS * 1000}, profile = "swaptions" }}]
"""
    made = []
    for volts in CASES:
        outcome = simulate(machine(*volts), program, energy=True)
        assert outcome.power_w is not None
        made.append(Row(f"{volts[0]:g} V and {volts[1]:g} V", expected_w(*volts), outcome.power_w))
    return made


def text() -> str:
    """What the page says of power."""
    return section(
        "Boards and shared rails",
        [
            "`board_mw` is added to the energy of a machine (`energy_j`, `power_w`), not to any cluster's, nor to what "
            "policies and sensors see. Clusters with a `shared_rail` have the highest voltage that one of them asks "
            "for: dynamic power grows with its square, leakage by its law. Beside the arithmetic of these laws, for a "
            "busy little core and an idle big one, by what each asks for, in W of the whole machine:",
            rows_table("case", rows(), ".4f"),
            "That is arithmetic: no published measurement of a board was found that states both its voltages and its "
            "power with clusters on one regulator, so the law itself is checked by none.",
        ],
    )
