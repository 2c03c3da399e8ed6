"""LISA's ``plat_info.yml``: capacities, clocks and, in older ones, an energy model (github.com/ARM-software/lisa)."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ampsched._core import InputError
from ampsched.machine_file.facts import ALL, Lack
from ampsched.machine_file.tree import CPU, Source, Tree

CPUS_MAX = 4096
KHZ_MAX = 10_000_000


def from_yaml(content: str, folder: Path, title: str) -> Source:
    """A source from a description of a platform.

    Raises:
        InputError: PyYAML is missing, it is no YAML, or it says not which CPUs there are.
    """
    root = _parsed(content, title)
    info = root.get("platform-info") or root
    info = info.get("conf", info) if isinstance(info, dict) else {}
    if not isinstance(info, dict):
        raise InputError(f"{title}: platform-info is no table")
    capacities = _capacities(info)
    domains = [cpus for each in _list(info.get("freq-domains")) if (cpus := _cpus(each))]
    count = info.get("cpus-count")
    several = range(count) if isinstance(count, int) and 0 < count <= CPUS_MAX else range(0)
    cpus = sorted({*capacities, *(cpu for domain in domains for cpu in domain), *several})
    if not cpus:
        raise InputError(f"{title}: names no CPUs (cpu-capacities, freq-domains, cpus-count)")
    tree = Tree(folder)
    tree.online(cpus)
    name = (
        f" ({info['name'][:40]})" if isinstance(info.get("name"), str) and info["name"].isprintable() else ""
    )
    source = Source(title + name, "plat_info", folder, is_arm=str(info.get("abi", "arm64")).startswith("arm"))
    for cpu in cpus:
        if cpu in capacities:
            tree.put(f"{CPU}/cpu{cpu}/cpu_capacity", capacities[cpu])
    _clocks(tree, domains, info.get("freqs"), source)
    _energy(tree, info.get("nrg-model"), domains, source)
    source.left_out.append(Lack("which cores these are", "plat_info does not say it", ALL))
    return source


def _parsed(content: str, title: str) -> dict[str, Any]:
    try:
        import yaml
    except ImportError:
        raise InputError(f"{title}: PyYAML is not installed (install it with: pip install pyyaml)") from None

    class _Plain(yaml.SafeLoader):  # type: ignore[misc] # no types
        """Objects of Python are read as the tables and lists that they are written as."""

    def plain(loader: Any, _suffix: str, node: Any) -> Iterator[Any]:  # noqa: ANN401 (PyYAML's own types)
        # What contains itself is filled after it is known.
        if isinstance(node, yaml.MappingNode):
            table: dict[Any, Any] = {}
            yield table
            table.update(loader.construct_mapping(node))
        elif isinstance(node, yaml.SequenceNode):
            items: list[Any] = []
            yield items
            items.extend(loader.construct_sequence(node))
        else:
            yield loader.construct_scalar(node)

    _Plain.add_multi_constructor("tag:yaml.org,2002:python/", plain)
    _Plain.add_multi_constructor("!", plain)
    try:
        root = yaml.load(content, _Plain)  # noqa: S506 (a safe loader)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError, AttributeError) as error:
        raise InputError(
            f"{title}: is no YAML that can be read: {str(error).splitlines()[0][:100]}"
        ) from None
    if not isinstance(root, dict):
        raise InputError(f"{title}: is no table")
    return root


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _cpus(value: object) -> list[int]:
    return [cpu for cpu in _list(value) if isinstance(cpu, int) and 0 <= cpu < CPUS_MAX]


def _capacities(info: Mapping[str, Any]) -> dict[int, int]:
    told = info.get("cpu-capacities")
    told = told.get("orig", told) if isinstance(told, dict) else {}
    told = told if isinstance(told, dict) else {}
    return {
        cpu: round(value)
        for cpu, value in told.items()
        if isinstance(cpu, int)
        and 0 <= cpu < CPUS_MAX
        and isinstance(value, (int, float))
        and 0 < value <= CPUS_MAX
    }


def _clocks(tree: Tree, domains: list[list[int]], freqs: object, source: Source) -> None:
    told = freqs if isinstance(freqs, dict) else {}
    for number, cpus in enumerate(domains):
        khz = [
            each
            for each in _list(told.get(cpus[0], told.get(number)))
            if isinstance(each, int) and 1000 <= each <= KHZ_MAX
        ]
        if khz:
            tree.clock(cpus, khz, number)
        else:
            source.left_out.append(Lack(f"frequencies of CPU {cpus[0]}", "plat_info does not say them", ALL))


def _energy(tree: Tree, model: object, domains: list[list[int]], source: Source) -> None:
    """Powers of the CPUs' nodes; the model's unit is its own."""
    powers = dict(_nodes(model))
    if not powers:
        return
    for cpus in domains:
        if all(cpu in powers and powers[cpu] == powers[cpus[0]] for cpu in cpus):
            tree.energy(cpus, {khz: round(power * 1000) for khz, power in powers[cpus[0]].items()})
    source.left_out.append(
        Lack("the unit of power", "the energy model's own, taken as mW; clusters' is left out", "energy")
    )


def _nodes(model: object) -> Iterator[tuple[int, dict[int, float]]]:
    """CPU, and power by kHz, of each node of a CPU."""
    nodes = _list(model.get("cpu_nodes")) if isinstance(model, dict) else []
    for node in nodes[:CPUS_MAX]:
        if not isinstance(node, dict) or not isinstance(node.get("cpu"), int):
            continue
        powers = {}
        for pair in _list(node.get("active_states")):
            khz, state = pair if isinstance(pair, tuple) and len(pair) == 2 else (None, None)
            numbers = [each for each in _list(state) if isinstance(each, (int, float))]
            if (
                isinstance(khz, int)
                and len(numbers) == 2
                and 1000 <= khz <= KHZ_MAX
                and 0 < numbers[1] < 60_000
            ):
                powers[khz] = float(numbers[1])
        if powers:
            yield node["cpu"], powers
