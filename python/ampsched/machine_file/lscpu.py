"""``lscpu``: its text, ``lscpu -J``, and ``lscpu -e -J`` with a row per CPU (util-linux, lscpu(1))."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ampsched._core import InputError, parse_cpus
from ampsched.machine_file.core_types import HYBRIDS
from ampsched.machine_file.facts import ALL, Lack
from ampsched.machine_file.tree import CPU, Source, Tree

CPUS_MAX = 4096
TABLE = "lscpu -e=CPU,CORE,SOCKET,CACHE,MAXMHZ -J"
_PMUS = (("cpu_core", 4), ("cpu_atom", 10))
_UNITS = {"B": 1 / 1024, "K": 1, "KIB": 1, "M": 1024, "MIB": 1024, "G": 1 << 20, "GIB": 1 << 20}


def from_json(content: str, folder: Path, title: str) -> Source | None:
    """A source from ``lscpu -J`` or ``lscpu -e -J``; None if the text is something else.

    Raises:
        InputError: It is theirs, but says not which CPUs there are.
    """
    try:
        # lscpu writes a bare "-" for numbers that it does not know.
        root = json.loads(re.sub(r'(":\s*)-(?=\s*[,}\]])', r"\1null", content))
    except (ValueError, RecursionError):
        return None
    if not isinstance(root, dict):
        return None
    if isinstance(root.get("lscpu"), list):
        return _summary(dict(_fields(root["lscpu"])), folder, title)
    if isinstance(root.get("cpus"), list):
        return _rows([row for row in root["cpus"] if isinstance(row, dict)], folder, title)
    return None


def from_text(content: str, folder: Path, title: str) -> Source:
    """A source from the text of ``lscpu``.

    Raises:
        InputError: It says not which CPUs there are.
    """
    lines = (line.partition(":") for line in content.splitlines())
    return _summary({key.strip(): value.strip() for key, _, value in lines if value.strip()}, folder, title)


def _fields(rows: list[Any], depth: int = 0) -> list[tuple[str, str]]:
    found = []
    for row in rows:
        if isinstance(row, dict) and isinstance(row.get("field"), str):
            found.append((row["field"].rstrip(":"), str(row.get("data") or "")))
            if isinstance(row.get("children"), list) and depth < 9:
                found += _fields(row["children"], depth + 1)
    return found


def _whole(text: object) -> int | None:
    found = re.match(r"\d{1,9}(?![\d])", str(text).strip())
    return int(found[0]) if found else None


def _khz(text: object) -> int | None:
    """A frequency in MHz such as 5000.0000."""
    found = re.fullmatch(r"(\d{1,6})([.,]\d+)?", str(text).strip())
    return round(float(found[0].replace(",", ".")) * 1000) if found else None


def _kib(text: object) -> tuple[int, int]:
    """KiB of all instances of a cache, and how many they are: ``1.3 MiB (4 instances)``."""
    found = re.match(r"([\d.]{1,12})\s*([KMG]?i?B?)(?:\s*\((\d{1,5}) instance)?", str(text).strip())
    if not found or not re.fullmatch(r"\d+(\.\d+)?", found[1]):
        return 0, 1
    return int(float(found[1]) * _UNITS.get(found[2].upper() or "B", 0)), max(1, int(found[3] or 1))


def _summary(fields: Mapping[str, str], folder: Path, title: str) -> Source:
    """A source from the summary, which shows all cores as if they were alike."""
    told = fields.get("On-line CPU(s) list", "")
    cpus = parse_cpus(f"{title}: On-line CPU(s) list", told) if told else []
    if not cpus:
        raise InputError(f"{title}: lscpu's output does not say which CPUs are on-line (On-line CPU(s) list)")
    tree = Tree(folder)
    tree.online(cpus)
    source = Source(title, "lscpu", folder, is_arm=_is_arm(fields))
    khz = _khz(fields.get("CPU max MHz", ""))
    if khz:
        for number, cpu in enumerate(cpus):
            tree.clock([cpu], [khz], number)
    threads = _whole(fields.get("Thread(s) per core", "")) or 1
    _caches(tree, cpus, fields, threads)
    _cpuinfo(tree, fields)
    if _is_intel(fields) and _whole(fields.get("Model", "")) in HYBRIDS:
        source.left_out.append(
            Lack("which CPUs are P-cores", f"the summary does not say it; take: {TABLE}", ALL)
        )
    elif threads > 1:
        _guess_siblings(tree, cpus, threads, source)
    elif "Thread(s) per core" in fields:
        for cpu in cpus:
            tree.put(f"{CPU}/cpu{cpu}/topology/core_cpus_list", cpu)
    _one_model(source, cpus, fields)
    return source


def _one_model(source: Source, cpus: list[int], fields: Mapping[str, str]) -> None:
    """Names the cores, if all are of one model."""
    name = fields.get("Model name", "").lower()
    if re.fullmatch(r"(cortex|neoverse)-[a-z]?\d+[a-z]*", name) and not _several_models(fields):
        source.cores = dict.fromkeys(cpus, name)
    elif source.is_arm:
        source.left_out.append(
            Lack("which CPU is which core", f"the summary does not say it; take: {TABLE}", ALL)
        )


def _several_models(fields: Mapping[str, str]) -> bool:
    sockets = _whole(fields.get("Socket(s)", "")) or 1
    per = (_whole(fields.get("Core(s) per socket", "")) or 0) * (
        _whole(fields.get("Thread(s) per core", "")) or 1
    )
    return per * sockets != _whole(fields.get("CPU(s)", "")) and bool(per)


def _is_intel(fields: Mapping[str, str]) -> bool:
    return fields.get("Vendor ID") == "GenuineIntel" and fields.get("CPU family") == "6"


def _is_arm(fields: Mapping[str, str]) -> bool:
    return fields.get("Architecture", "").startswith(("aarch64", "arm"))


def _cpuinfo(tree: Tree, fields: Mapping[str, str]) -> None:
    if fields.get("Vendor ID"):
        keys = (("vendor_id", "Vendor ID"), ("cpu family", "CPU family"), ("model", "Model"))
        tree.put("proc/cpuinfo", "\n".join(f"{key}\t: {fields.get(field, '')}" for key, field in keys))


def _caches(tree: Tree, cpus: list[int], fields: Mapping[str, str], threads: int) -> None:
    """Sizes of the L2, if each core has one, and of the L3, if all share it: nothing else can be told apart."""
    kib, count = _kib(fields.get("L2 cache", fields.get("L2", "")))
    if kib and count * threads == len(cpus):
        for cpu in cpus:
            tree.cache(cpu, 2, "Unified", kib // count, [cpu])
    kib, count = _kib(fields.get("L3 cache", fields.get("L3", "")))
    if kib and count == 1:
        for cpu in cpus:
            tree.cache(cpu, 3, "Unified", kib, cpus)


def _guess_siblings(tree: Tree, cpus: list[int], threads: int, source: Source) -> None:
    """Pairs CPUs as Linux usually numbers them: first one thread of each core, then the others."""
    cores = len(cpus) // threads
    if threads != 2 or cores * threads != len(cpus):
        source.left_out.append(Lack("which CPUs are hardware threads of one core", f"take: {TABLE}", ALL))
        return
    for place, cpu in enumerate(cpus[:cores]):
        other = cpus[place + cores]
        for each in (cpu, other):
            tree.put(f"{CPU}/cpu{each}/topology/core_cpus_list", f"{cpu},{other}")
    source.left_out.append(
        Lack("which CPUs are siblings", f"as Linux usually numbers them; {TABLE} says it", ALL)
    )


def _rows(rows: list[dict[str, Any]], folder: Path, title: str) -> Source:
    """A source from the table with a row per CPU."""
    lower = [{str(key).lower(): value for key, value in row.items()} for row in rows[:CPUS_MAX]]
    by_cpu = {cpu: row for row in lower if (cpu := _whole(row.get("cpu"))) is not None and _is_online(row)}
    if not by_cpu or max(by_cpu) >= 2 * CPUS_MAX:
        raise InputError(f'{title}: lscpu\'s table has no column "cpu" with numbers of CPUs')
    tree, cpus = Tree(folder), sorted(by_cpu)
    tree.online(cpus)
    source = Source(title, "lscpu", folder)
    smt = _siblings(tree, by_cpu)
    for number, cpu in enumerate(cpus):
        khz = _khz(by_cpu[cpu].get("maxmhz"))
        if khz:
            tree.clock([cpu], [khz], number)
    if not any(_khz(row.get("maxmhz")) for row in by_cpu.values()):
        source.left_out.append(Lack("frequencies", "the column MAXMHZ is missing or empty", ALL))
    _shared_caches(tree, cpus, by_cpu)
    _names(source, by_cpu)
    if smt and len(smt) < len(cpus) and not source.cores:
        _hybrid(tree, cpus, smt, source)
    return source


def _siblings(tree: Tree, by_cpu: Mapping[int, Mapping[str, Any]]) -> set[int]:
    """States the hardware threads of each core; those that have a sibling."""
    cores: dict[object, list[int]] = {}
    for cpu, row in sorted(by_cpu.items()):
        core = _whole(row.get("core"))
        cores.setdefault(cpu if core is None else (str(row.get("socket")), core), []).append(cpu)
    for key, siblings in cores.items():
        for cpu in siblings if isinstance(key, tuple) else []:
            tree.put(f"{CPU}/cpu{cpu}/topology/core_cpus_list", ",".join(map(str, siblings)))
    return {cpu for siblings in cores.values() if len(siblings) > 1 for cpu in siblings}


def _is_online(row: Mapping[str, Any]) -> bool:
    return str(row.get("online", "yes")).lower() not in ("no", "false", "n")


def _names(source: Source, by_cpu: Mapping[int, Mapping[str, Any]]) -> None:
    for cpu, row in by_cpu.items():
        name = str(row.get("modelname") or "").lower()
        if re.fullmatch(r"(cortex|neoverse)-[a-z]?\d+[a-z]*", name):
            source.cores[cpu] = name
            source.is_arm = True


def _shared_caches(tree: Tree, cpus: list[int], by_cpu: Mapping[int, Mapping[str, Any]]) -> None:
    """The column CACHE: ``0:0:0:0``, numbers of L1d, L1i, L2 and L3; equal numbers are one cache."""
    column = next((key for key in next(iter(by_cpu.values())) if key.startswith(("cache", "l1d:"))), "")
    numbers = {cpu: str(by_cpu[cpu].get(column) or "").split(":") for cpu in cpus}
    for place, level in ((2, 2), (3, 3)):
        groups: dict[str, list[int]] = {}
        for cpu in cpus:
            if len(numbers[cpu]) > place and numbers[cpu][place].isdecimal():
                groups.setdefault(numbers[cpu][place], []).append(cpu)
        for shared in groups.values():
            for cpu in shared:
                tree.cache(cpu, level, "Unified", 0, shared)


def _hybrid(tree: Tree, cpus: list[int], smt: set[int], source: Source) -> None:
    """Only Intel's hybrids have cores with two threads beside cores with one: P- and E-cores."""
    others = [cpu for cpu in cpus if cpu not in smt]
    for (pmu, number), own in zip(_PMUS, (sorted(smt), others), strict=True):
        tree.put(f"sys/bus/event_source/devices/{pmu}/type", number)
        tree.put(f"sys/bus/event_source/devices/{pmu}/cpus", ",".join(map(str, own)))
    source.remarks.append(
        "P-cores are those with two hardware threads, as on all of Intel's hybrids that have SMT"
    )
