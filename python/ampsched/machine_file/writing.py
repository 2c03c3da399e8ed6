"""The writer of machine files from facts."""

import json
import textwrap
from collections.abc import Iterable, Sequence

from ampsched._core import format_cpus
from ampsched.machine_file.facts import ClusterFacts, Fact, MachineFacts

# What the machine files of Arm boards state as estimates (python/ampsched/data/machines/2B2S.toml says from where).
COSTS = {
    "context_switch_ns": 2000,
    "migrate_same_cluster_ns": 5000,
    "migrate_cross_cluster_ns": 20000,
    "wakeup_latency_ns": 3000,
}
SMT_SPEED = 0.6
"""A gain of 20 % by the second thread: Li et al., ISLPED 2004 (docs/explanation/contention.md)."""
ROW = 108
"""Longest line of a list."""


def machine_text(name: str, description: str, facts: MachineFacts) -> str:
    """A machine file; comments say where each number comes from and what is not known."""
    lines = [f"name = {_value(name)}", f"description = {_value(description)}", ""]
    lines += _wrapped(f"From {facts.source}. Behind each number: who states it, or that it is an estimate.")
    lines += ["#", "# Not known:"] * bool(facts.lacks)
    for lack in facts.lacks:
        lines += _wrapped(f"* {lack}")
    numbers = numbering(facts)
    if facts.cpus != list(range(len(facts.cpus))):
        lines += ["#", *_wrapped("Cores are numbered without a gap; each cluster says which CPUs they are.")]
    if facts.remarks:
        lines += ["#", "# Not used yet:"]
        lines += [line for remark in facts.remarks for line in _wrapped(f"* {remark}")]
    for cluster in facts.clusters:
        lines += _cluster(facts, cluster, numbers)
    lines += ["", "[kernel]", *_keys([("sees", facts.sees), ("last_level_cache", facts.last_level_cache)])]
    lines += ["", "[costs]"]
    estimate = "estimate, as in all shipped machines with Arm cores"
    costs = {key: Fact(value, estimate) for key, value in COSTS.items()} | facts.costs
    lines += _keys(costs.items())
    return "\n".join(lines) + "\n"


def numbering(facts: MachineFacts) -> dict[int, int]:
    """The core of each CPU, in the order of CPUs; empty if cores are simply counted through the clusters."""
    cpus = facts.cpus
    in_order = [cpu for cluster in facts.clusters for cpu in cluster.cpus]
    return {} if in_order == cpus else {cpu: core for core, cpu in enumerate(cpus)}


def _cluster(facts: MachineFacts, cluster: ClusterFacts, numbers: dict[int, int]) -> list[str]:
    count: object = [numbers[cpu] for cpu in cluster.cpus] if numbers else len(cluster.cpus)
    threads = ", in pairs of hardware threads" if cluster.threads_per_core > 1 else ""
    lines = ["", "[[clusters]]"]
    lines += _keys(
        [
            ("name", Fact(cluster.name, "")),
            ("core_type", cluster.core_type),
            ("cores", Fact(count, f"CPUs {format_cpus(cluster.cpus)}{threads}")),
            ("class", cluster.class_),
        ]
    )
    if cluster.relative_speed:
        lines += _keys([("relative_speed", cluster.relative_speed)])
    if cluster.l2_kib:
        lines += _keys([("l2_kib", Fact(cluster.l2_kib, "stated: size of the second-level cache"))])
    if cluster.shares_l2 and facts.sees.value != "capacities":  # kernels of Arm cores do not look at it
        lines += _keys([("shares_l2", Fact(True, "stated: several cores have one second-level cache"))])
    if cluster.threads_per_core > 1:
        origin = "estimate: a second thread gains 20 % (Li et al., ISLPED 2004)"
        lines += _keys(
            [
                ("threads_per_core", Fact(cluster.threads_per_core, "stated: siblings")),
                ("smt_speed", Fact(SMT_SPEED, origin)),
            ]
        )
    lines += _opps(cluster) + _power(cluster, facts)
    for remark in cluster.remarks:
        lines += _wrapped(f"Not used yet: {remark}")
    return lines


def _opps(cluster: ClusterFacts) -> list[str]:
    said, rows = "", [f"{{ mhz = {mhz} }}" for mhz in cluster.mhz]
    if cluster.volts or (cluster.power and cluster.capacity):
        estimate = "volt = 1.0 is an estimate that no result uses"
        said = f"; {'voltages are stated, too' if cluster.volts else estimate}"
        rows = [f"{{ mhz = {mhz}, volt = {cluster.volts.get(mhz, 1.0)} }}" for mhz in cluster.mhz]
    return [*_wrapped(f"Frequencies: {cluster.mhz_origin}{said}."), *_list("opps", rows)]


def _power(cluster: ClusterFacts, facts: MachineFacts) -> list[str]:
    lines = []
    if cluster.power and cluster.capacity:
        top = cluster.mhz[-1]
        lines += _wrapped(
            f"Power of a busy core: {cluster.power_origin}; capacity {cluster.capacity:.0f} of 1024 in proportion "
            "to the frequency, as Linux has it."
        )
        rows = [
            f"{{ mhz = {mhz}, capacity = {cluster.capacity * mhz / top:.2f}, power_mw = {cluster.power[mhz]:g} }}"
            for mhz in cluster.mhz
        ]
        lines += _list("energy_model", rows)
    elif cluster.capacity and all(each.capacity for each in facts.clusters):
        simulated = f"; {cluster.simulated_capacity:.0f} simulated" if cluster.simulated_capacity else ""
        origin = f"stated: cpu_capacity, which kernels believe{simulated}"
        lines += _keys([("capacity", Fact(cluster.capacity, origin))])
    if cluster.coefficient and cluster.volts:
        lines += _wrapped("dynamic-power-coefficient, stated.")
        lines.append(f"power = {{ dynamic_uw_per_mhz_v2 = {cluster.coefficient:g} }}")
    return lines


def _keys(pairs: Iterable[tuple[str, Fact]]) -> list[str]:
    lines = []
    for key, fact in pairs:
        line = f"{key} = {_value(fact.value)}"
        remark = f" # {_printable(fact.origin)}" if fact.origin else ""
        if len(line) + len(remark) > ROW:
            lines += _wrapped(f"{key}: {fact.origin}.")
            remark = ""
        if len(line) > ROW:
            lines += _list(key, [str(each) for each in fact.value])
        else:
            lines.append(line + remark)
    return lines


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    # What JSON escapes in a text TOML reads alike.
    return json.dumps(_printable(value), ensure_ascii=False) if isinstance(value, str) else str(value)


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _list(key: str, rows: Sequence[str]) -> list[str]:
    """A list, on one line if it fits."""
    whole = f"{key} = [{', '.join(rows)}]"
    if len(whole) <= ROW:
        return [whole]
    lines, line = [f"{key} = ["], " "
    for row in rows:
        if len(line) + len(row) + 2 > ROW:
            lines.append(line)
            line = " "
        line += f" {row},"
    return [*lines, line, "]"]


def _wrapped(remark: str) -> list[str]:
    """A comment in lines."""
    return textwrap.wrap(
        _printable(remark), ROW, initial_indent="# ", subsequent_indent="#   " if remark[:1] == "*" else "# "
    )
