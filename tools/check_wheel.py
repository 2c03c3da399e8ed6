"""Installs a built wheel by pipx on an empty Debian that has no compiler, as an ordinary user, and uses what it brings.

    make check-wheel                    the wheel of make wheels for this computer, on Debian 12 and 13
    make check-wheel SUITES=trixie      Debian 13 only

Needs root and debootstrap. Debian and the way to packages are those of make check-fresh.
"""

import argparse
import platform
import shutil
import sys
from pathlib import Path

from check_fresh import HOME, ROOT, SUITES, attempt, debian, need_root

PACKAGES = ["python3", "python3-venv", "pipx"]
COMPILERS = ["cc", "gcc", "clang", "rustc", "cargo"]
INSTALLED = 'PATH="$HOME/.local/bin:$PATH"; '
FOLDER = '"$(dirname "$(realpath "$(command -v ampsched)")")"'
"""Where pipx has put the programs."""

COMMANDS = [
    f"for name in {' '.join(COMPILERS)}; do ! command -v $name || exit 1; done",
    f"pipx install {HOME}/ampsched-*.whl",
    *(
        INSTALLED + command
        for command in [
            "ampsched --version",
            "ampsched-live --version",
            "ampsched-live-scx --version",
            "ampsched compare -m 2B2S -w sync-2 -p linux,colab",
            f"test -s {FOLDER}/../share/man/man1/ampsched.1",
            "ampsched live doctor",
        ]
    ),
]


def built() -> Path:
    """The wheel for this computer."""
    found = sorted((ROOT / "dist").glob(f"ampsched-*_{platform.machine()}.whl"))
    if len(found) != 1:
        sys.exit(f"ampsched: dist has {len(found)} wheels for {platform.machine()} (make wheels makes one)")
    return found[0]


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suites", default=" ".join(SUITES), help="which versions of Debian")
    arguments = parser.parse_args()
    need_root()
    wheel = built()
    failed = []
    for suite in arguments.suites.split():
        root = debian(suite, PACKAGES)
        shutil.copy(wheel, root / HOME.strip("/"))
        failed += attempt(suite, root, COMMANDS)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
