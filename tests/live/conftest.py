"""Tests in a virtual machine: what they need, and how they run something there."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ampsched import vm

ROOT = Path(__file__).resolve().parents[2]
LOADER = ROOT / "target/debug/ampsched-live-scx"
LIMIT_S = 560
TRIES = 3

# What the guest has found, for the word of the tests.
Found = dict[str, Any]


def seen_by_guest() -> Path:
    """The least folder that holds the checkout and what it links to: below ``/tmp`` the guest sees no other."""
    linked = [ROOT, (ROOT / ".venv").resolve(), (ROOT / "target").resolve()]
    return Path(os.path.commonpath(linked))


@pytest.fixture(scope="session", autouse=True)
def loader() -> Path:
    """The program that loads policies; ``make test-live`` builds it."""
    assert os.geteuid() == 0, "the virtual machine needs root"
    assert LOADER.exists(), f"{LOADER} is missing: make test-live builds it"
    return LOADER


@pytest.fixture(scope="session")
def in_guest(loader: Path) -> Callable[..., Found]:
    """Runs a script of this folder with arguments in a virtual machine and returns the object that it prints."""

    def run(*arguments: str, script: str = "guest.py") -> Found:
        command = [sys.executable, str(ROOT / "tests/live" / script), str(loader), *arguments]
        done = vm.run(command, limit_s=LIMIT_S, throttle=False, cwd=seen_by_guest(), tries=TRIES)
        if done.code != 0:
            pytest.fail(f"exit code {done.code}\n{done.output[-3000:]}\n{done.console[-3000:]}")
        found: Found = done.results()[-1]
        print(json.dumps(found, indent=1))
        return found

    return run
