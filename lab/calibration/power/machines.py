"""Writes the machine files of the Exynos 5422 with the fitted power law and thermal network."""

from dataclasses import dataclass

from law import REFERENCE_C, REFERENCE_VOLT, Law
from measured import CLUSTERS, CORE_TYPES, columns, rows
from thermal import IDLE_OTHER_W, LITTLE_AREA, Network

DMIPS_PER_MHZ = {"little": 539, "big": 1024}
"""`capacity-dmips-mhz` of Linux's exynos5422-cpus.dtsi."""
DTS_UW_PER_MHZ_V2 = {"little": 90, "big": 310}
"""`dynamic-power-coefficient` of the same file."""
CLASSES = {"little": 0, "big": 1}
LIMITS_MHZ = {"little": (200, 1400), "big": (200, 2000)}


@dataclass(frozen=True)
class Variant:
    """A machine file: how many cores of each cluster are enabled."""

    name: str
    cores: int
    description: str


VARIANTS = (
    Variant("exynos5422", 4, "Samsung Exynos 5422 (Odroid XU3): four Cortex-A7 and four Cortex-A15 cores"),
    Variant("exynos5422-2B2S", 2, "Samsung Exynos 5422 with two Cortex-A7 and two Cortex-A15 cores enabled"),
    Variant(
        "exynos5422-3B3S", 3, "Samsung Exynos 5422 with three Cortex-A7 and three Cortex-A15 cores enabled"
    ),
)

HEADER = """\
# Written by lab/calibration/power/fit_power.py from measurements; run it again instead of editing this file.
#
# Samsung Exynos 5422 on an Odroid XU3. Voltages: measured on a board with its fan at full speed (PARTSim); the
# device tree states upper limits that a chip's own table undercuts. Power and heat: fitted to the same board,
# docs/explanation/power-model.md tells how and how far off they are. Idle cores only stop their clocks: that is what the
# measured idle power shows, and no power of the deeper state was published.
"""

KERNEL = """
[kernel]                             # what the policy linux knows of the machine
sees = "capacities"                  # capacity-dmips-mhz of exynos5422-cpus.dtsi
last_level_cache = "cluster"         # A7 and A15 clusters have an L2 each; there is no L3 before DynamIQ
"""

COSTS = """
[costs]                              # COLAB names none; the same for all machines with Arm cores
context_switch_ns = 2000             # estimate; Li, Ding and Shen (ExpCS 2007) measured 3.8 us directly on a 2 GHz Xeon
migrate_same_cluster_ns = 5000       # estimate: lower end of the 5 to 50 us reported for migrations; the L2 stays warm
migrate_cross_cluster_ns = 20000     # estimate: the same, with 256 KiB to refetch at about 13 GB/s
wakeup_latency_ns = 3000             # estimate: interrupt to the other core, leaving WFI, and the switch
frequency_switch_ns = 140000         # clock-latency-ns of Linux's exynos5420.dtsi
"""

TRIPS = """
# Trip points and steps: Linux, exynos5422-odroidxu3-common.dtsi, passive trips 3 and 4 of each core's zone, and its
# polling period. Sensors: four TMU channels, one on each big core, in whole degrees; their period is an estimate.
sensors = [{ name = "tmu", node = "big-core", resolution_c = 1, period_ms = 10 }]
throttle_period_ms = 250
trips = [
  { celsius = 70, hysteresis_c = 10, cooling = { little = [0, 2], big = [0, 2] } },
  { celsius = 85, hysteresis_c = 10, cooling = { little = [3, 8], big = [3, 14] } },
]
"""


def machine_file(variant: Variant, laws: dict[str, Law], network: Network) -> str:
    """The text of a machine's file."""
    head = f'name = "{variant.name}"\ndescription = "{variant.description}"\n\n{HEADER}'
    clusters = "".join(_cluster(cluster, variant.cores, laws[cluster]) for cluster in CLUSTERS)
    return head + clusters + KERNEL + COSTS + _thermal(network) + TRIPS


def _cluster(cluster: str, cores: int, law: Law) -> str:
    idle = columns(cluster)["idle"]
    volts = dict(zip(idle.mhz, idle.volt, strict=True))
    lowest, highest = LIMITS_MHZ[cluster]
    opps = "".join(
        f"  {{ mhz = {mhz:.0f}, volt = {volt:.4g} }},\n"
        for mhz, volt in volts.items()
        if lowest <= mhz <= highest
    )
    sensor = (
        "power_sensor = { resolution_mw = 1, period_ms = 270 }   # INA231; Chronaki et al. 2018, section 4"
    )
    return f"""[[clusters]]
name = "{cluster}"
core_type = "{CORE_TYPES[cluster]}"
cores = {cores}
class = {CLASSES[cluster]}
opps = [
{opps}]
# What Linux's energy model believes: capacity-dmips-mhz and dynamic-power-coefficient of exynos5422-cpus.dtsi with
# the device tree's voltages. It is not the measured power.
energy_model = [
{_energy_model(cluster)}]
{sensor}
[clusters.power]
dynamic_uw_per_mhz_v2 = {law.dynamic_uw_per_mhz_v2:.4g}
uncore_dynamic_uw_per_mhz_v2 = {law.idle.uncore_uw_per_mhz_v2:.4g}
static_mw = {1000 * law.idle.leakage_w / 4:.3g}   # a quarter of the cluster's: all of it is the cores', as in DS3
static_at_volt = {REFERENCE_VOLT:.4g}
static_at_c = {REFERENCE_C:.4g}
static_per_volt = {law.idle.per_volt:.4g}
static_kelvin = {law.idle.kelvin:.4g}
activity = {{ stalled = {law.stalled:.3g}, l2 = {law.l2:.3g} }}

"""


def _energy_model(cluster: str) -> str:
    dmips, uw_per_mhz_v2 = DMIPS_PER_MHZ[cluster], DTS_UW_PER_MHZ_V2[cluster]
    table = [
        (int(row["mhz"]), float(row["volt_dts"]))
        for row in rows("exynos5422_power.csv")
        if row["cluster"] == cluster and row["workload"] == "idle" and row["volt_dts"]
    ]
    return "".join(
        f"  {{ mhz = {mhz}, capacity = {dmips * mhz / LIMITS_MHZ['big'][1]:.0f}, "
        f"power_mw = {uw_per_mhz_v2 * mhz * volt**2 / 1000:.1f} }},\n"
        for mhz, volt in table
    )


def _thermal(network: Network) -> str:
    little_r, little_c = network.big_k_per_w / LITTLE_AREA, network.big_j_per_k * LITTLE_AREA
    return f"""
[thermal]                            # Odroid XU3 with its fan at full speed
ambient_c = {network.ambient_c:.3g}
period_ms = 10
nodes = [
  {{ name = "big-core", cores = "big", j_per_k = {network.core_j_per_k:.3g} }},
  {{ name = "big", cluster = "big", j_per_k = {network.big_j_per_k:.3g} }},
  {{ name = "little", cluster = "little", j_per_k = {little_c:.3g} }},   # not measured: a quarter of the big cluster's area
  {{ name = "case", j_per_k = {network.case_j_per_k:.3g}, background_mw = {1000 * IDLE_OTHER_W:.3g} }},   # idle GPU and memory
]
links = [
  {{ from = "big-core", to = "big", k_per_w = {network.core_k_per_w:.3g} }},
  {{ from = "big", to = "case", k_per_w = {network.big_k_per_w:.3g} }},
  {{ from = "little", to = "case", k_per_w = {little_r:.3g} }},
  {{ from = "case", to = "ambient", k_per_w = {network.case_k_per_w:.3g} }},
]"""
