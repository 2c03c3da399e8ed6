"""Saved files of /sys and /proc: folders, archives, and what the collecting script prints.

Only files that are read are taken over, each only so far as it can hold a fact; nothing of an archive is written
anywhere else.
"""

import itertools
import os
import re
import tarfile
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from ampsched._core import InputError, parse_cpus
from ampsched.machine_file.facts import ALL, Lack
from ampsched.machine_file.tree import CPU, CPUINFO_BYTES_MAX, ENERGY, Source, Tree, names

FIRST_LINE = "ampsched computer 1"
_POLICY = "{cpuinfo_min_freq,cpuinfo_max_freq,base_frequency,scaling_available_frequencies,cpuinfo_transition_latency}"
_WANTED = (
    f"{CPU}/{{online,offline}}",
    f"{CPU}/amd_pstate/prefcore",
    f"{CPU}/cpu[0-9]*/cpu_capacity",
    f"{CPU}/cpu[0-9]*/topology/{{core_cpus_list,thread_siblings_list}}",
    f"{CPU}/cpu[0-9]*/cache/index[0-9]*/{{level,type,size,shared_cpu_list}}",
    f"{CPU}/cpu[0-9]*/cpufreq/{_POLICY}",
    f"{CPU}/cpu[0-9]*/regs/identification/midr_el1",
    f"{CPU}/cpu[0-9]*/acpi_cppc/highest_perf",
    f"{CPU}/cpu[0-9]*/cpuidle/state[0-9]*/{{name,latency,residency}}",
    f"{CPU}/cpufreq/policy[0-9]*/affected_cpus",
    f"{CPU}/cpufreq/policy[0-9]*/{_POLICY}",
    "sys/bus/event_source/devices/*/{type,cpus}",
    "sys/class/powercap/intel-rapl*/name",
    "sys/class/powercap/intel-rapl*/constraint_[0-9]_{name,power_limit_uw,time_window_us}",
    "sys/class/thermal/thermal_zone[0-9]*/type",
    "sys/class/thermal/thermal_zone[0-9]*/trip_point_[0-9]_{temp,type}",
    f"{ENERGY}/*/{{cpus,flags}}",
    f"{ENERGY}/*/ps:*/{{frequency,power,inefficient}}",
    "proc/cpuinfo",
    "proc/sys/kernel/sched_itmt_enabled",
)
FILE_BYTES_MAX = 1 << 16
FILES_MAX = 1_000_000
_PLACES = (f"{CPU}/online", f"{ENERGY}")


def wanted() -> list[str]:
    """Names of files that are read, as patterns of a shell, without the leading slash."""
    found = []
    for pattern in _WANTED:
        head, brace, rest = pattern.partition("{")
        choices, _, tail = rest.partition("}")
        found += [head + choice + tail for choice in choices.split(",")] if brace else [pattern]
    return found


_PATTERNS: dict[int, list[list[str]]] = {}
for _pattern in wanted():
    _PATTERNS.setdefault(_pattern.count("/"), []).append(_pattern.split("/"))


def _is_wanted(name: str) -> bool:
    parts = name.split("/")
    patterns = _PATTERNS.get(len(parts) - 1, [])
    return ".." not in parts and any(all(map(fnmatchcase, parts, pattern)) for pattern in patterns)


def collector() -> str:
    """A script for any POSIX shell that prints the files; with root it sees the energy model, too."""
    loop = " \\\n    ".join(f"/{pattern}" for pattern in wanted())
    return f"""#!/bin/sh
# Prints what `ampsched machine` reads of a computer; changes nothing. More is seen with root (sudo, su).
#   here:       sh collect.sh > computer.txt
#   a phone:    adb shell sh < collect.sh > phone.txt
#   by ssh:     ssh HOST sh < collect.sh > host.txt
echo '{FIRST_LINE}'
for file in {loop}; do
    if [ -f "$file" ] && [ -r "$file" ]; then
        echo "==> $file <=="
        cat "$file" </dev/null 2>/dev/null
        echo
    fi
done
"""


def from_text(content: bytes, folder: Path, title: str) -> Source:
    """A source from what the collecting script has printed.

    Raises:
        InputError: It has none of the files.
    """
    parts = re.split(r"^==> /(\S+) <==\r?$", content.decode("utf-8", "replace"), flags=re.MULTILINE)
    files = zip(parts[1::2], (part.encode() for part in parts[2::2]), strict=True)
    return _taken(files, folder, title, "the kernel")


def from_folder(top: Path, folder: Path, title: str) -> Source:
    """A source from a folder that has ``sys`` in it, or is ``/sys``, or has an energy model of debugfs.

    Raises:
        InputError: It has none of the files.
    """
    prefix = _prefix(top)
    if prefix is None:
        raise InputError(f"{title}: has no {CPU}/online and no energy_model: is it a saved tree of /sys?")
    above, below = prefix
    files = _walked(top / above if above else top, below)
    return _taken(files, folder, title, "the kernel")


def _prefix(top: Path) -> tuple[str, str] | None:
    """What lies above the root within the folder, and what lies below the root above the folder."""
    depths = ["", *names(top, ".", r"[^/]+")[:50]]
    for above in depths:
        for place in _PLACES:
            parts = place.split("/")
            for depth in range(len(parts)):
                if (top / above / "/".join(parts[depth:])).exists() and depth < len(parts):
                    return above, "/".join(parts[:depth])
    if any((top / name / "cpus").is_file() for name in names(top, ".", r"[^/]+")):
        return "", ENERGY
    return None


def _walked(top: Path, below: str) -> Iterator[tuple[str, bytes]]:
    """The wanted files of a folder; `below` is what the folder is called below the root."""
    for pattern in wanted():
        if below and not pattern.startswith(f"{below}/"):
            continue
        inner = pattern.removeprefix(f"{below}/") if below else pattern
        for path in itertools.islice(top.glob(inner), FILES_MAX):
            name = path.relative_to(top).as_posix()
            content = _start(path)
            if content is not None:
                yield (f"{below}/{name}" if below else name), content


def _start(path: Path) -> bytes | None:
    """The beginning of an ordinary file; None if it is none or cannot be read."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return file.read(CPUINFO_BYTES_MAX if path.name == "cpuinfo" else FILE_BYTES_MAX)
    except (OSError, ValueError):
        return None


def from_archive(path: Path, folder: Path, title: str) -> Source:
    """A source from an archive of tar, compressed or not.

    Raises:
        InputError: It is damaged, or has none of the files.
    """
    try:
        with tarfile.open(path) as archive:
            return _taken(_members(archive), folder, title, "the kernel")
    except InputError:
        raise
    except Exception as error:  # compressors have errors of their own, such as zlib.error
        why = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{title}: is no whole archive ({why[:100]})") from None


def _members(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    """The wanted files; links of cpufreq, which Linux has in place of folders, are followed."""
    links: dict[str, str] = {}
    found: dict[str, bytes] = {}
    for member in itertools.islice(archive, FILES_MAX):
        name = _below_root(member.name)
        if member.issym() and name.endswith("/cpufreq"):
            target = os.path.normpath(PurePosixPath(name).parent / member.linkname)
            links[name] = str(target)
        elif member.isreg() and _is_wanted(name):
            file = archive.extractfile(member)
            if file:
                most = CPUINFO_BYTES_MAX if name == "proc/cpuinfo" else FILE_BYTES_MAX
                found[name] = file.read(most)
    for link, target in links.items():
        inside = {name: content for name, content in found.items() if name.startswith(f"{target}/")}
        found |= {link + name.removeprefix(target): content for name, content in inside.items()}
    yield from found.items()


def _below_root(name: str) -> str:
    """The name below the root: without ``./`` and folders above ``sys`` and ``proc``."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    starts = [parts.index(top) for top in ("sys", "proc") if top in parts]
    return "/".join(parts[min(starts) :] if starts else parts)


def _taken(files: Iterable[tuple[str, bytes]], folder: Path, title: str, by: str) -> Source:
    """Writes the wanted files below a folder and makes a source of them."""
    tree, count = Tree(folder), 0
    for name, content in files:
        # Programs that archive files of /sys fill them up with zeros.
        clean = content.rstrip(b"\0 \n\r\t")
        if clean and _is_wanted(name):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(clean + b"\n")
            count += 1
    if not count:
        raise InputError(f"{title}: has none of the files that say what CPUs there are (see --collector)")
    source = Source(title, by, folder)
    if not (folder / f"{CPU}/online").is_file():
        _only_energy(tree, source)
    return source


def _only_energy(tree: Tree, source: Source) -> None:
    """States the CPUs and clocks of an energy model that was saved alone.

    The model itself is read by crates/computer; here is only who shares a clock and which clocks there are.
    """
    everyone: list[int] = []
    for number, name in enumerate(names(tree.root, ENERGY, r"[^/]+")):
        place = f"{ENERGY}/{name}/cpus"
        path = tree.root / place
        if not path.is_file():
            continue
        cpus = parse_cpus(f"{source.title}: {place}", path.read_text("utf-8", "replace"))
        states = names(tree.root, f"{ENERGY}/{name}", r"ps:\d+")
        khz = [int(state[3:]) for state in states if len(state) < 15]
        if cpus and khz:
            tree.clock(cpus, khz, number)
            everyone += cpus
    if not everyone:
        raise InputError(f"{source.title}: has no {CPU}/online and no energy model of CPUs")
    tree.online(everyone)
    source.left_out.append(Lack("which cores these are", "an energy model alone does not say it", ALL))
