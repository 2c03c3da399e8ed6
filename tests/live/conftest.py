"""Tests in an exact virtual machine: what they need, and how they run something there.

Cores are exactly as unequal as stated and time is the guest's own, so what a test sees does not depend on this
computer or its load.
"""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from belongings import belongings
from machines import BUILT, ROOT, two_and_two

from ampsched.vm import exact
from ampsched.vm.results import RESULT

LOADER = BUILT / "ampsched-live-scx"
LIMIT_S = 3000
"""Of this computer, per boot; some thirty times what a boot needs here."""

# What the guest has found, for the word of the tests.
Found = dict[str, Any]
InGuest = Callable[..., Found]


@pytest.fixture(scope="session", autouse=True)
def loader() -> Path:
    """The program that loads policies."""
    assert LOADER.exists(), f"{LOADER} is missing: make test-live builds it"
    return LOADER


@pytest.fixture(scope="session")
def in_guest(loader: Path) -> InGuest:
    """Runs a script of this folder with arguments in a virtual machine and returns the object that it prints.

    ``out`` gets the files that it leaves.
    """

    def run(
        *arguments: str,
        script: str = "guest.py",
        files: Sequence[Path] = (),
        out: Path | None = None,
        **machine: Any,
    ) -> Found:
        programs = sorted(file for file in BUILT.rglob("*") if file.is_file())
        work = exact.Work(
            [str(Path(sys.executable).resolve()), str(ROOT / "tests/live" / script), str(loader), *arguments],
            files=[*programs, *belongings(), *files],
            variables={"LOADS": str(BUILT / "loads"), "PYTHONHASHSEED": "0"},
            cwd=out.parent if out else Path("/tmp"),
        )
        done = exact.run(two_and_two(**machine), work, out=out, limit_s=LIMIT_S)
        if done.code != 0 or done.timed_out:
            pytest.fail(f"exit code {done.code}\n{done.output[-3000:]}\n{done.console[-3000:]}")
        found: Found = done.results()[-1]
        told = [line for line in done.output.splitlines() if not line.startswith(RESULT)]
        print(*told, json.dumps(found, indent=1), done.report, sep="\n")
        return found

    return run
