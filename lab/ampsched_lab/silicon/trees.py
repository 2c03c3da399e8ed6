"""Facts of processors from compiled device trees: ``python -m ampsched_lab.silicon.trees DTB ... >trees.csv``.

Needs ``dtc``. The trees are those of Debian's kernel packages for arm64. A row for each operating point of a group of
cores that share one, or one row without a frequency if the firmware knows them instead of the tree.
"""

import argparse
import csv
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

FIELDS = ("tree", "cpus", "core", "capacity_dmips_mhz", "dynamic_power_coefficient", "mhz", "uv")
Node = dict[str, "str | Node"]


def parsed(text: str) -> Node:
    """A device tree's source, as dtc writes it: nodes and properties by name."""
    root: Node = {}
    path = [root]
    for line in (each.strip() for each in text.splitlines()):
        if line.endswith("{"):
            node: Node = {}
            path[-1][line[:-1].split(":")[-1].strip()] = node
            path.append(node)
        elif line == "};":
            path.pop()
        elif found := re.fullmatch(r"([\w,#.+-]+)(?: = (.*))?;", line):
            path[-1][found[1]] = found[2] or ""
    return root


def numbers(value: object) -> list[int]:
    """The cells of a property."""
    return [int(each, 16) for each in re.findall(r"0x[0-9a-f]+", str(value))]


def nodes(node: Node) -> Iterator[tuple[str, Node]]:
    """All below a node, with their names."""
    for name, inner in node.items():
        if isinstance(inner, dict):
            yield name, inner
            yield from nodes(inner)


def rows(tree: str, root: Node) -> Iterator[dict[str, object]]:
    """What a tree says of its cores."""
    tables = {number: node for _, node in nodes(root) for number in numbers(node.get("phandle"))}
    groups: dict[tuple[str, ...], int] = {}
    cpus = [node for name, node in nodes(root) if re.fullmatch(r"cpu@\w+", name)]
    facts = (
        "compatible",
        "capacity-dmips-mhz",
        "dynamic-power-coefficient",
        "operating-points-v2",
        "qcom,freq-domain",
    )
    for cpu in cpus:
        key = tuple(str(cpu.get(fact, "")) for fact in facts)
        groups[key] = groups.get(key, 0) + 1
    for (core, *values, _), count in groups.items():
        capacity, coefficient, points = (numbers(value) for value in values)
        table = tables.get(points[0]) if points else None
        opps = [each for each in (table or {}).values() if isinstance(each, dict)] or [{}]
        for opp in opps:
            hz, uv = numbers(opp.get("opp-hz")), numbers(opp.get("opp-microvolt"))
            yield {
                "tree": tree,
                "cpus": count,
                "core": core.split('"')[1].split(",")[-1] if '"' in core else core,
                "capacity_dmips_mhz": capacity[0] if capacity else "",
                "dynamic_power_coefficient": coefficient[0] if coefficient else "",
                "mhz": ((hz[0] << 32) + hz[-1]) // 1_000_000 if hz else "",
                "uv": uv[0] if uv else "",
            }


def main() -> None:
    """Reads trees and prints their rows."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("trees", type=Path, nargs="+")
    writer = csv.DictWriter(sys.stdout, FIELDS, lineterminator="\n")
    writer.writeheader()
    for path in options.parse_args().trees:
        words = ["dtc", "-q", "-I", "dtb", "-O", "dts", str(path)]
        text = subprocess.run(words, check=True, capture_output=True, text=True).stdout  # noqa: S603
        writer.writerows(rows(path.stem, parsed(text)))


if __name__ == "__main__":
    main()
