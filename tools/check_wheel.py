"""Installs built wheels by pipx on an empty Debian that has no compiler, as an ordinary user, and uses what they bring.

    make check-wheel                                       the wheels of make wheels, on Debian 12 and 13
    make check-wheel SUITES=trixie ARCHITECTURES=x86_64    one of them, on Debian 13 only

Needs root and debootstrap, and qemu-user-static and binfmt-support for the wheel of another architecture, which takes
ten times as long. Debian and the way to packages are those of make check-fresh. The commands are those of the page for
users and some more. Results of simulations must be the same in each Debian, on each architecture: whole numbers, such
as times, exactly, fractions to 12 digits.
"""

import argparse
import json
import math
import shutil
import sys
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

from check_fresh import ARCHITECTURES, HOME, ROOT, SUITES, attempt, debian, need_emulation, need_root, remove
from pages import blocks, lines

PAGE = ROOT / "docs/howto/install-without-a-compiler.md"
EXECUTED = "tools/check_wheel.py"
PACKAGES = ["python3", "python3-venv", "pipx"]
COMPILERS = ["cc", "gcc", "clang", "rustc", "cargo"]
INSTALLED = 'export PATH="$HOME/.local/bin:$PATH"; '
FOLDER = '"$(dirname "$(realpath "$(command -v ampsched)")")"'
"""Where pipx has put the programs."""

RESULTS = "compare.json"
COMMANDS = [
    "ampsched --version",
    "ampsched-live --version",
    "ampsched-live-scx --version",
    f"ampsched compare -m exynos5422 -w sync-2 -p linux,colab,hfee --energy --factors predicted --json >{RESULTS}",
    f"test -s {FOLDER}/../share/man/man1/ampsched.1",
    f"ampsched live doctor | grep -Fx 'kernel program '{FOLDER}/ampsched-live-scx",
    "! ampsched vm run -m 2B2S -- true 2>refused && grep 'Wheels do not have it' refused",
]
LICENSES = {"LICENSE-APACHE", "LICENSE-MIT", "LICENSE-GPL-2.0"}
EXPRESSION = "(Apache-2.0 OR MIT) AND GPL-2.0-only"


def built(machine: str) -> Path:
    """The wheel for an architecture."""
    found = sorted((ROOT / "dist").glob(f"ampsched-*_{machine}.whl"))
    if len(found) != 1:
        sys.exit(f"ampsched: dist has {len(found)} wheels for {machine} (make wheels makes one)")
    return found[0]


def commands() -> list[str]:
    """What is run in an empty Debian."""
    page = blocks(PAGE.read_text("utf-8"))
    shown = [line for block in page if block.said("executed by") == EXECUTED for line in lines(block)]
    no_compiler = f"for name in {' '.join(COMPILERS)}; do ! command -v $name || exit 1; done"
    return [no_compiler, *(INSTALLED + command for command in [*shown, *COMMANDS])]


def license_faults(wheel: Path) -> list[str]:
    """What is wrong with the licenses of a wheel, whose programs are under different ones."""
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(archive.read(name))
        folder = name.replace("METADATA", "licenses/")
        there = {each.removeprefix(folder) for each in archive.namelist() if each.startswith(folder)}
    named = set(metadata.get_all("License-File", []))
    found = [(named, LICENSES), (there, LICENSES), (metadata["License-Expression"], EXPRESSION)]
    return [f"{wheel.name}: {here}, not {wanted}" for here, wanted in found if here != wanted]


def agree(one: object, other: object) -> bool:
    """Whether results are the same, fractions to 12 digits: C libraries do not agree on the last one of `exp`."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(agree(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(agree, one, other))
    return one == other


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suites", default=" ".join(SUITES), help="which versions of Debian")
    parser.add_argument("--architectures", default=" ".join(ARCHITECTURES), help="whose wheels")
    arguments = parser.parse_args()
    need_root()
    machines = arguments.architectures.split()
    for machine in machines:
        need_emulation(machine)
    wheels = {machine: built(machine) for machine in machines}
    failed = [fault for wheel in wheels.values() for fault in license_faults(wheel)]
    results = {}
    for machine, wheel in wheels.items():
        for suite in arguments.suites.split():
            root = debian(suite, PACKAGES, machine)
            home = root / HOME.strip("/")
            shutil.copy(wheel, home)
            failed += attempt(root, commands())
            results[root.name] = (home / RESULTS).read_text("utf-8") if (home / RESULTS).exists() else ""
            remove(root)
    found = {name: json.loads(text) for name, text in results.items() if text}
    first, *others = found or [""]
    failed += [
        f"{other}: other results than {first}" for other in others if not agree(found[first], found[other])
    ]
    print("\n".join(failed or [f"the same results: {', '.join(found)}"]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
