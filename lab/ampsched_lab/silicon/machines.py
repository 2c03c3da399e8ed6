"""Writes the machine files and core types of real chips: ``python -m ampsched_lab.silicon.machines [FOLDER]``.

The folder is the package's data folder by default. Nothing here is fitted: what is measured beside simulated comes from
judged.json and is a comment.
"""

import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

from ampsched_lab.silicon import intel, rail
from ampsched_lab.silicon.data import SHIPPED, chips, coremark, cores, kept, rows

WIDTH = 120
COSTS = {
    "priorities": (
        ("context_switch_ns", 1500, "estimate: below the 3.8 us of Li, Ding and Shen (ExpCS 2007)"),
        ("migrate_same_cluster_ns", 5000, "estimate: lower end of the 5 to 50 us reported for migrations"),
        ("migrate_cross_cluster_ns", 10000, "estimate: refill of part of an L2 from the shared L3"),
        ("wakeup_latency_ns", 2000, "estimate: interrupt, leaving C1, and the switch"),
    ),
    "capacities": (
        ("context_switch_ns", 2000, "estimate, as for all machines with Arm cores: hikey960 says from where"),
        ("migrate_same_cluster_ns", 5000, "the same"),
        ("migrate_cross_cluster_ns", 20000, "the same"),
        ("wakeup_latency_ns", 3000, "the same"),
    ),
}
SOURCES = {
    "freqbench": "kdrag0n/freqbench (MIT), CoreMark; power is that of the whole device over idle, one core busy",
    "tree": "device tree (facts of Linux's arm64 trees)",
    "wattson": "Perfetto's wattson tables (Apache-2.0): power of the CPUs alone; capacities follow an estimated rate",
}
LOW_V, HIGH_V = 0.6, 0.95
"""Estimate of the voltages of phones: at the lowest and at the highest operating point."""
LETTERS = {
    "S": "maker's manual",
    "P": "maker's presentation",
    "A": "AnandTech or Chips and Cheese",
    "W": "WikiChip",
    "L": "LLVM",
}


def core_type(name: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Values and sources of a core type: the shipped file's, or those of what it is like and its own."""
    own = cores().get(name)
    if own is None:
        values = tomllib.loads((SHIPPED / "core_types" / f"{name}.toml").read_text("utf-8"))
        return values, dict.fromkeys(values, f"as the {name}: estimate")
    values, sources = core_type(own["like"])
    sources = dict.fromkeys(sources, f"as the {own['like']}: estimate")
    for key, (value, source) in ((key, pair) for key, pair in own.items() if isinstance(pair, list)):
        letter, _, rest = source.partition(", ")
        values[key], sources[key] = value, f"{LETTERS[letter]}, {rest}" if letter in LETTERS else source
    return values, sources


def core_file(name: str) -> str:
    """The file of a core type."""
    values, sources = core_type(name)
    lines = [f'description = "{cores()[name]["about"]}"']
    lines.append('source = "behind each number; the input is lab/data/silicon/cores.toml"')
    lines.append("")
    for key, value in values.items():
        if key not in {"description", "source"}:
            text = f'"{value}"' if isinstance(value, str) else f"{value:g}"
            lines.append(f"{key} = {text}  # {sources[key]}")
    return "\n".join(lines) + "\n"


class Cluster:
    """A cluster of a chip, with what the data says of it."""

    def __init__(self, chip: str, stated: Mapping[str, Any]) -> None:
        """Reads the data.

        Raises:
            ValueError: If the data has no operating point of it.
        """
        self.stated = stated
        self.mhz: list[int] = []
        self.volts: Mapping[int, float] = {}
        self.power: Mapping[int, float] = {}
        self.rate: Mapping[int, float] = {}
        self.uncore: Mapping[int, float] = {}
        self.coefficient: float | None = None
        self.kind, _, place = "", "", ""
        if isinstance(stated["opps"], list):
            self.mhz = sorted(stated["opps"])
            if "limit" in chips()[chip]:
                self._by_law()
            return
        self.kind, _, place = stated["opps"].partition(":")
        getattr(self, f"_{self.kind}")(chip, place)
        if not self.mhz:
            raise ValueError(f"{chip}: no operating points of {stated['opps']}")

    def _by_law(self) -> None:
        """Operating points at every step, with voltages and C by the law of Intel's hybrids."""
        lowest, *_, highest = self.mhz
        self.mhz = [*range(lowest, highest + 1, intel.STEP_MHZ)]
        self.volts = {mhz: round(intel.voltage(mhz / highest), 3) for mhz in self.mhz}
        self.coefficient = intel.coefficient(self.stated["type"])

    def _freqbench(self, chip: str, _place: str) -> None:
        measured = coremark(chip)[self.stated["name"]]
        self.mhz = [mhz for mhz, _, _ in measured]
        self.power = {mhz: power for mhz, _, power in measured if power}
        self.rate = {mhz: rate for mhz, rate, _ in measured}

    def _wattson(self, chip: str, place: str) -> None:
        device, policy = place.split(":")
        wanted = [row for row in rows("wattson") if (row["chip"], row["policy"]) == (device, policy)]
        self.mhz = sorted({int(row["mhz"]) for row in wanted})
        own = [row for row in wanted if not row["with_policy"]]
        self.power = {int(row["mhz"]): float(row["active_mw"]) + float(row["static_mw"]) for row in own}
        if "with" in self.stated and "rate" in self.stated:
            self._beside_others(chips()[chip], device, policy)
        self.rate = {mhz: mhz * self.stated["rate"] for mhz in self.power}

    def _beside_others(self, chip: Mapping[str, Any], device: str, policy: str) -> None:
        """Power, and what of it is the uncore's, where it depends on another clock; voltages, relative, on a rail."""
        table = rail.measured(device, policy, self.stated["with"])
        if self.stated["name"] not in chip.get("rail", ()):
            # The shared unit has a clock that no file states: the one that is nearest to the core's.
            nearest = {mhz: min((abs(mhz - other), other) for each, other in table if each == mhz)[1]
                       for mhz, _ in table}  # fmt: skip
            self.power = {int(mhz): table[mhz, other] for mhz, other in nearest.items()}
            return
        law = rail.fitted(table)
        self.uncore = {int(mhz): mw * law.share / (1 + law.share) for mhz, mw in law.alone.items()}
        self.power = {int(mhz): mw / (1 + law.share) for mhz, mw in law.alone.items()}
        first = next(each for each in chip["clusters"] if each["name"] == chip["rail"][0])
        first_policy = first["opps"].rpartition(":")[2]
        of_all = rail.fitted(rail.measured(device, first_policy, first["with"]))
        asked = of_all.own if policy == first_policy else of_all.other
        most = max(*of_all.own.values(), *of_all.other.values())
        self.volts = {int(mhz): round(sqrt(square / most), 3) for mhz, square in asked.items()}

    def _tree(self, _chip: str, place: str) -> None:
        tree, number = place.split(":")
        number, _, most = number.partition("@")
        groups: dict[tuple[str, ...], list[Mapping[str, str]]] = {}
        for row in rows("trees"):
            if row["tree"] == tree:
                groups.setdefault((row["cpus"], row["core"], row["capacity_dmips_mhz"]), []).append(row)
        wanted = list(groups.values())[int(number)]
        wanted = [row for row in wanted if int(row["mhz"]) <= int(most or 10**6)]
        self.mhz = sorted({int(row["mhz"]) for row in wanted})
        self.volts = {int(row["mhz"]): int(row["uv"]) / 1e6 for row in wanted if row["uv"]}
        coefficient = wanted[0]["dynamic_power_coefficient"]
        self.coefficient = float(coefficient) if coefficient else None

    @property
    def has_table(self) -> bool:
        """Whether the power of every operating point is known, and how fast it is."""
        return set(self.mhz) <= set(self.power) and set(self.mhz) <= set(self.rate)

    @property
    def has_estimated_volts(self) -> bool:
        """Whether a law of power needs voltages that are not published."""
        return bool(self.coefficient) and not self.volts

    def volt(self, mhz: int) -> float:
        """Published, or estimated for a law of power, or 1 if nothing needs it."""
        if self.volts:
            return self.volts[mhz]
        if self.coefficient is None or len(self.mhz) == 1:
            return 1.0
        share = (mhz - self.mhz[0]) / (self.mhz[-1] - self.mhz[0])
        return float(round(LOW_V + (HIGH_V - LOW_V) * share, 3))


def _array(key: str, items: Sequence[str]) -> Iterator[str]:
    """An array of tables, several on a line."""
    yield f"{key} = ["
    line = " "
    for item in items:
        if len(line) + len(item) + 2 > WIDTH:
            yield line
            line = " "
        line += f" {item},"
    yield line
    yield "]"


def _cluster(cluster: Cluster, number: int, fastest: float) -> Iterator[str]:
    stated = cluster.stated
    shares = stated.get("shared", False)
    yield "[[clusters]]"
    yield f'name = "{stated["name"]}"'
    yield f'core_type = "{stated["type"]}"'
    yield f"cores = {stated['cores']}"
    yield f"class = {stated.get('class', number)}"
    yield f"l2_kib = {stated['l2']}"
    if shares:
        yield "shares_l2 = true"
        yield "l2_contention = true"
    if stated.get("threads_per_core", 1) == 2:
        yield "threads_per_core = 2"
        yield "smt_speed = 0.6  # Li et al. (ISLPED 2004): a gain of nearly 20 % for many programs"
    if "turbo" in stated:
        yield f"turbo_mhz = {stated['turbo']}"
    has_power = cluster.has_table or cluster.coefficient
    volts = {mhz: f", volt = {cluster.volt(mhz):g}" if has_power else "" for mhz in cluster.mhz}
    yield from _array("opps", [f"{{ mhz = {mhz}{volt} }}" for mhz, volt in volts.items()])
    if cluster.has_table:
        cells = []
        last = 0
        for mhz in cluster.mhz:
            last = max(last + 1, round(1024 * cluster.rate[mhz] / fastest))
            shared = f", cluster_mw = {cluster.uncore[mhz]:.1f}" if cluster.uncore else ""
            cells.append(f"{{ mhz = {mhz}, capacity = {last}, power_mw = {cluster.power[mhz]:.1f}{shared} }}")
        yield from _array("energy_model", cells)
    elif cluster.coefficient:
        yield f"power = {{ dynamic_uw_per_mhz_v2 = {cluster.coefficient:g} }}"
    yield ""


def machine_file(name: str) -> str:
    """The file of a chip."""
    chip = chips()[name]
    clusters = [Cluster(name, stated) for stated in chip["clusters"]]
    fastest = max((rate for each in clusters for rate in each.rate.values()), default=0)
    is_intel = any(each.stated.get("threads_per_core") for each in clusters)
    sees = "priorities" if is_intel else "capacities"
    own_caches = all(each.stated.get("shared") for each in clusters) and not is_intel
    lines = [f'name = "{name}"', f'description = "{chip["about"]}"', "", *_comments(name, clusters)]
    for number, cluster in enumerate(clusters):
        lines += _cluster(cluster, number, fastest)
    if "rail" in chip:
        names = ", ".join(f'"{each}"' for each in chip["rail"])
        lines += ["[power]", f"shared_rail = [{names}]", "shared_clock = true", ""]
    if "limit" in chip:
        pl1_w, pl2_w, tau_s, _ = chip["limit"]
        lines += [
            "[power]",
            f"pl1_mw = {1000 * pl1_w}  # base power, or what may be drawn for ever",
            f"pl2_mw = {1000 * pl2_w}  # turbo power",
            f"tau_ms = {1000 * tau_s}",
            "",
        ]
    lines += [
        "[memory]",
        f"bandwidth_mb_s = {bandwidth(name)}  # of {chip['memory'][0]}, {chip['memory'][2]}",
        f"channels = {chip['memory'][1]}",
        "",
        "[kernel]",
        f'sees = "{sees}"',
        f'last_level_cache = "{"cluster" if own_caches else "machine"}"',
        "",
        "[costs]",
        *(f"{key} = {value}  # {source}" for key, value, source in COSTS[sees]),
    ]
    return "\n".join(lines) + "\n"


def bandwidth(name: str) -> int:
    """What a memory carries: the fitted share of its peak."""
    share: float = kept("fitted").get("memory_share", 1.0)
    peak: int = chips()[name]["memory"][0]
    return round(peak * share)


def _comments(name: str, clusters: Sequence[Cluster]) -> Iterator[str]:
    chip = chips()[name]
    yield "# Written by `make -C lab silicon-machines` from lab/data/silicon (chips.toml); do not edit."
    kinds = dict.fromkeys(each.kind for each in clusters if each.kind)
    for kind in kinds:
        where = ", ".join(dict.fromkeys(str(each.stated["opps"]).partition(":")[2].partition(":")[0]
                                        for each in clusters if each.kind == kind))  # fmt: skip
        yield f"# {where}: {SOURCES[kind]}."
    if "opps_source" in chip:
        yield f"# Operating points: {chip['opps_source']}."
    if "turbo_source" in chip:
        yield f"# Turbo: {chip['turbo_source']}."
    yield from _of_powers(chip, clusters)
    yield from (f"# {line}" for line in kept("judged").get("headers", {}).get(name, ["Speeds: *unchecked*."]))


def _of_powers(chip: Mapping[str, Any], clusters: Sequence[Cluster]) -> Iterator[str]:
    if "limit" in chip:
        yield f"# Power limits: {chip['limit'][-1]}."
        yield "# Voltages and powers: a law fitted on the i9-12900K (lab/data/silicon/intel.toml); estimates."
    elif "rail" in chip:
        yield "# Voltages of the rail: relative, by wattson's powers at pairs of clocks. No result uses the others, 1 V."
        yield "# Little cores draw what they do with the shared unit at the clock nearest to theirs."
    elif any(each.has_estimated_volts for each in clusters):
        yield "# Voltages, and so powers, are estimates."
    elif not any(each.volts for each in clusters):
        yield "# Voltages are not published; where power is measured, 1 V stands for all and is used by no result."


def write(folder: Path) -> list[Path]:
    """Writes all files.

    Args:
        folder: With the folders machines and core_types.
    """
    texts = {folder / "core_types" / f"{name}.toml": core_file(name) for name in cores()}
    texts |= {folder / "machines" / f"{name}.toml": machine_file(name) for name in chips()}
    for path, text in texts.items():
        path.write_text(text, "utf-8")
    return list(texts)


if __name__ == "__main__":
    print(f"wrote {len(write(Path(sys.argv[1]) if sys.argv[1:] else SHIPPED))} files")
