"""hwloc's XML: ``lstopo --of xml`` (hwloc 2, and what hwloc 1 has in common with it)."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from ampsched._core import InputError
from ampsched.machine_file.facts import ALL, Lack
from ampsched.machine_file.tree import CPU, Source, Tree

CPUS_MAX = 4096
_PMUS = {"IntelLowPower": "cpu_lowpower", "IntelAtom": "cpu_atom", "IntelCore": "cpu_core"}


def from_xml(content: str, folder: Path, title: str) -> Source:
    """A source from a topology.

    Raises:
        InputError: It is no XML, defines entities, or has no processing units.
    """
    root = _parsed(content, title)
    objects = [dict(each.attrib) for each in root.iter("object")]
    cpus = sorted({cpu for each in objects if each.get("type") == "PU" and (cpu := _index(each)) is not None})
    if not cpus:
        raise InputError(f'{title}: has no processing units (objects of type "PU")')
    tree = Tree(folder)
    tree.online(cpus)
    infos = _infos(root)
    is_arm = infos.get("Architecture", "").startswith(("aarch64", "arm"))
    source = Source(title, "hwloc", folder, is_arm=is_arm)
    _shared(tree, objects, cpus)
    _cpuinfo(tree, infos)
    _kinds(tree, root, cpus, source)
    return source


def _parsed(content: str, title: str) -> ElementTree.Element:
    if "<!ENTITY" in content:
        raise InputError(f"{title}: defines entities of XML, which hwloc never does")
    try:
        return ElementTree.fromstring(content)  # noqa: S314 (entities are refused above)
    except (ElementTree.ParseError, ValueError, RecursionError) as error:
        raise InputError(f"{title}: is no XML: {error}") from None


def _shared(tree: Tree, objects: Sequence[Mapping[str, str]], cpus: Sequence[int]) -> None:
    """Cores and caches."""
    for each in objects:
        own = sorted(_set(each.get("cpuset", "")) & set(cpus))
        if each.get("type") == "Core":
            for cpu in own:
                tree.put(f"{CPU}/cpu{cpu}/topology/core_cpus_list", ",".join(map(str, own)))
        elif level := _level(each):
            size = each.get("cache_size", "")
            kib = int(size) // 1024 if re.fullmatch(r"\d{1,15}", size) else 0
            for cpu in own:
                tree.cache(cpu, level, "Unified" if level > 1 else "Data", kib, own)


def _index(each: Mapping[str, str]) -> int | None:
    text = each.get("os_index", "")
    return int(text) if re.fullmatch(r"\d{1,4}", text) and int(text) < 2 * CPUS_MAX else None


def _set(text: str) -> set[int]:
    """CPUs of a mask such as ``0x00000001,0x0000ffff``; empty if it cannot be read or has no end."""
    words = text.split(",")
    if len(words) > 2 * CPUS_MAX // 32 or not all(
        re.fullmatch(r"(0x[0-9a-fA-F]{1,8})?", word) for word in words
    ):
        return set()
    mask = 0
    for word in words:
        mask = mask << 32 | int(word or "0", 16)
    return {bit for bit in range(mask.bit_length()) if mask >> bit & 1}


def _level(each: Mapping[str, str]) -> int:
    """The level of a cache of data; 0 if it is none."""
    named = re.fullmatch(r"L([1-5])Cache", each.get("type", ""))
    depth = each.get("depth", "") if each.get("type") == "Cache" and each.get("cache_type") != "2" else ""
    return int(named[1]) if named else int(depth) if re.fullmatch("[1-5]", depth) else 0


def _infos(element: ElementTree.Element) -> dict[str, str]:
    return {each.get("name", ""): each.get("value", "") for each in element.iter("info")}


def _cpuinfo(tree: Tree, infos: Mapping[str, str]) -> None:
    if infos.get("CPUVendor"):
        keys = {"vendor_id": "CPUVendor", "cpu family": "CPUFamilyNumber", "model": "CPUModelNumber"}
        tree.put("proc/cpuinfo", "\n".join(f"{key}\t: {infos.get(name, '')}" for key, name in keys.items()))


def _kinds(tree: Tree, root: ElementTree.Element, cpus: list[int], source: Source) -> None:
    """Kinds of cores: capacities, highest frequencies, and Intel's names."""
    kinds = [
        (sorted(_set(each.get("cpuset", "")) & set(cpus)), _infos(each)) for each in root.iter("cpukind")
    ]
    number = 0
    for own, infos in kinds:
        mhz, capacity = infos.get("FrequencyMaxMHz", ""), infos.get("LinuxCapacity", "")
        for cpu in own:
            if re.fullmatch(r"\d{1,5}", mhz):
                tree.clock([cpu], [int(mhz) * 1000], number)
                number += 1
            if re.fullmatch(r"\d{1,5}", capacity):
                tree.put(f"{CPU}/cpu{cpu}/cpu_capacity", capacity)
        pmu = _PMUS.get(infos.get("CoreType", ""))
        if pmu and own:
            tree.put(f"sys/bus/event_source/devices/{pmu}/type", 4 + len(pmu))
            tree.put(f"sys/bus/event_source/devices/{pmu}/cpus", ",".join(map(str, own)))
        base = infos.get("FrequencyBaseMHz", "")
        if re.fullmatch(r"\d{1,5}", base) and own:
            source.remarks.append(f"base frequency of CPU {own[0]} and those like it {base} MHz")
    if not kinds:
        source.left_out.append(
            Lack("kinds of cores", "none: hwloc writes them from version 2.4 on (cpukind)", ALL)
        )
