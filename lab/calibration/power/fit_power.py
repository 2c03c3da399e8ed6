#!/usr/bin/env python3
"""Fits power and heat of the Exynos 5422 to measurements of an Odroid XU3.

    python lab/calibration/power/fit_power.py            writes the machine files
    python lab/calibration/power/fit_power.py --check    compares with the committed files; exit code 1 if they differ

Needs numpy and scipy. Deterministic: the same measurements give the same numbers, as far as they are stated.
"""

import argparse
import sys
from pathlib import Path

import law
import thermal
from machines import VARIANTS, machine_file
from measured import DATA

MACHINES = DATA / "machines"


def laws_and_network() -> tuple[dict[str, law.Law], thermal.Network]:
    """The fit: heat first, as leakage needs temperatures; then the big cluster, whose warm-up was recorded."""
    network = thermal.fit()
    big = law.fit("big", network, None)
    little = law.fit("little", network, big.idle.kelvin)
    return {"little": little, "big": big}, network


def outputs() -> dict[Path, str]:
    """Files and their texts."""
    laws, network = laws_and_network()
    return {MACHINES / f"{each.name}.toml": machine_file(each, laws, network) for each in VARIANTS}


def main() -> int:
    """Writes or compares the files."""
    parser = argparse.ArgumentParser(description="Fits power and heat of the Exynos 5422.")
    parser.add_argument("--check", action="store_true", help="compare with the committed files instead")
    check = parser.parse_args().check
    files = outputs()
    if not check:
        for path, text in files.items():
            path.write_text(text)
        return 0
    differing = [path.name for path, text in files.items() if not path.exists() or path.read_text() != text]
    for name in differing:
        print(f"{name} differs from what the fit writes", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
