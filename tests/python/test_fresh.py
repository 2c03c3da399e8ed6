"""What a fresh computer lacks: programs that the README does not name, and places that can be written."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from tools.check_fresh import packages

ROOT = Path(__file__).resolve().parents[2]

# Of Debian's essential packages: dash, coreutils, util-linux, bsdutils. Of those that the README names: gcc.
PROGRAMS = {"sh", "cp", "nice", "taskset", "renice", "unshare", "setpriv", "cc"}

# Without a writable /dev/shm there are no semaphores.
WITHOUT_SEMAPHORES = """
import _multiprocessing
def refuse(*arguments, **more):
    raise PermissionError(13, "Permission denied")
_multiprocessing.SemLock = refuse
import numpy as np
from ampsched.training.regression import fit
fit({kind!r}, np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 2.0]))
"""


def test_fresh_tests_run_only_programs_that_the_readme_provides() -> None:
    sources = [
        path for path in (ROOT / "crates").rglob("*.rs") if "tests" in path.parts and "live" in path.parts
    ]
    sources += (ROOT / "crates/taskrt/tests").glob("*.rs")
    called = {
        (name, path.relative_to(ROOT))
        for path in sources
        for name in re.findall(r'\b(?:Command::new|run)\(\s*"([a-z]+)"', path.read_text())
    }
    assert {name for name, _ in called} >= {"sh", "nice"}
    assert sorted(pair for pair in called if pair[0] not in PROGRAMS) == []


def test_fresh_an_empty_debian_gets_the_packages_that_build_the_project() -> None:
    assert {"make", "gcc", "git", "python3-venv"} <= set(packages((ROOT / "README.md").read_text()))
    assert packages("On Debian, run `apt\ninstall make gcc`; later `apt install other`.") == ["make", "gcc"]
    with pytest.raises(SystemExit, match="names no packages with which the project is built, but clang"):
        packages("Take `apt install clang` for kernels.")


def test_fresh_every_pinned_package_runs_on_the_oldest_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (oldest,) = re.findall(r">=(3\.\d+)", project["requires-python"])
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {tuple(line.removesuffix(" \\").split("==")) for line in lines if "==" in line}
    here = {(re.sub(r"[-_.]+", "-", each.name).lower(), each.version): each for each in distributions()}
    needs = {pair: here[pair].metadata.get("Requires-Python", "") for pair in pinned & here.keys()}
    assert len(needs) > 50
    assert {pair: need for pair, need in needs.items() if f"{oldest}.0" not in SpecifierSet(need)} == {}


def test_h34_every_pinned_package_has_hashes() -> None:
    blocks = re.split(r"\n(?=[a-z])", (ROOT / "constraints.txt").read_text())[1:]
    assert len(blocks) > 50
    for block in blocks:
        assert re.match(r"[\w.-]+==[\w.]+( \\\n    --hash=sha256:[0-9a-f]{64})+\s*(#.*\s*)?$", block), block


@pytest.mark.parametrize("kind", ["linear", "trees"])
def test_fresh_training_is_silent_without_semaphores(kind: str) -> None:
    command = [sys.executable, "-W", "error::UserWarning", "-c", WITHOUT_SEMAPHORES.format(kind=kind)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
