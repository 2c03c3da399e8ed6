"""The same round robin in other simulators: which are there, and how they are run."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

SOURCES = Path(__file__).parent / "peers"
SIMGRID_PACKAGE = "libsimgrid-dev"


def commands(build: Path, install: bool) -> tuple[dict[str, list[str]], list[str]]:
    """Commands of the peers by name, and a message for each one that is missing."""
    found: dict[str, list[str]] = {}
    missing: list[str] = []
    if find_spec("simpy") is None and install:
        requirements = str(Path(__file__).parent / "requirements.txt")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--requirement", requirements]
        subprocess.run(pip, check=True)
    if find_spec("simpy") is None:
        missing.append("SimPy is not installed: `pip install simpy`, or give `--install-peers`")
    else:
        found["SimPy"] = [sys.executable, str(SOURCES / "simpy_rr.py")]
    if not has_simgrid() and install:
        install_simgrid()
    if has_simgrid():
        found["SimGrid"] = [str(build_simgrid(build))]
    else:
        missing.append(
            f"SimGrid is not installed: `apt-get install {SIMGRID_PACKAGE}`, or give "
            "`--install-peers` as root"
        )
    return found, missing


def has_simgrid() -> bool:
    """Whether a C++ program that uses SimGrid can be compiled."""
    if shutil.which("g++") is None:
        return False
    probe = subprocess.run(
        ["g++", "-std=c++17", "-fsyntax-only", "-x", "c++", "-"],
        input="#include <simgrid/s4u.hpp>\n",
        text=True,
        capture_output=True,
        check=False,
    )
    return probe.returncode == 0


def install_simgrid() -> None:
    """Installs the Debian package; only root can."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    apt = ["apt-get", "install", "--yes", "--quiet", SIMGRID_PACKAGE]
    subprocess.run(apt, check=True, stdout=sys.stderr)


def build_simgrid(build: Path) -> Path:
    """Compiles the SimGrid driver."""
    build.mkdir(parents=True, exist_ok=True)
    program = build / "simgrid_rr"
    source = str(SOURCES / "simgrid_rr.cpp")
    compile_ = ["g++", "-O2", "-std=c++17", "-o", str(program), source, "-lsimgrid"]
    subprocess.run(compile_, check=True)
    return program
