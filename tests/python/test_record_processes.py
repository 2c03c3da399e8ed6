"""Children of recorded programs begin when their parents create them, however that is done and wherever replayed.

Issue 35: a child of vfork began at the absolute time of the recording, however fast the machine was.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ampsched import simulate
from ampsched.catalog import Catalog
from ampsched.recording import load
from ampsched.recording.advice import FOLLOWS_MIN, follows_cores
from ampsched.recording.replay import replayed

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc)")

CHILDREN = 3
WORK = "import time\nend = time.process_time() + 0.08\nwhile time.process_time() < end: pass"
CHILD = [sys.executable, "-S", "-E", "-c", WORK]
AGAIN = f"for _ in range({CHILDREN}): "
PYTHON = {
    "subprocess": f"import subprocess\n{AGAIN}subprocess.run({CHILD})",
    "output captured": f"import subprocess\n{AGAIN}subprocess.run({CHILD}, capture_output=True)",
    "posix_spawn": f"import os\n{AGAIN}os.waitpid(os.posix_spawn({CHILD[0]!r}, {CHILD}, os.environ), 0)",
    "system": f"import os, shlex\n{AGAIN}os.system(shlex.join({CHILD}))",
    "fork": f"import os\n{AGAIN}os.waitpid(os.fork() or os.execv({CHILD[0]!r}, {CHILD}), 0)",
}
SHELLS = ["sh", "dash", "bash"]


def command_of(way: str, folder: Path) -> list[str]:
    """A program that creates children in that way, one after the other."""
    if way in PYTHON:
        return [sys.executable, "-S", "-E", "-c", PYTHON[way]]
    (folder / "child.py").write_text(WORK)
    child = f"{sys.executable} -S -E {folder}/child.py"
    if shutil.which(way) is None:
        pytest.skip(f"there is no {way}")
    if way == "make":
        targets = " ".join(map(str, range(CHILDREN)))
        (folder / "Makefile").write_text(f".PHONY: all {targets}\nall: {targets}\n{targets}:\n\t@{child}\n")
        return ["make", "-C", str(folder), "--no-print-directory", "-j1"]
    (folder / "script").write_text(f"{child}\n" * CHILDREN)
    return [way, str(folder / "script")]


@pytest.mark.parametrize("way", [*PYTHON, *SHELLS, "make"])
def test_h35_1_children_follow_the_machines_speed(way: str, tmp_path: Path) -> None:
    file = tmp_path / "children.ampr"
    record = [sys.executable, "-m", "ampsched", "record", "-o", file, "--", *command_of(way, tmp_path)]
    done = subprocess.run(record, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    recording, catalog = load(file), Catalog.shipped()
    assert len({process for _, process, *_ in recording.threads}) > CHILDREN

    def took_ms(speed: float) -> float:
        workload = replayed(catalog, recording, file, speed=speed, speedup=1.0).workload
        return simulate(machine="2B2S", workload=workload, policy="linux").makespan_ns / 1e6

    work_ms = recording.cpu_ns / 1e6
    # They are one after the other: nothing is earlier than its cause, and nothing waits for a clock.
    assert took_ms(0.1) >= 10 * work_ms * 0.99
    assert took_ms(20) <= work_ms / 20 + 0.1 * work_ms


WAITS = "import time\nfor _ in range(10):\n    time.sleep(0.02)\n    sum(range(20000))"


@pytest.mark.parametrize(("code", "follows"), [(WORK, True), (WAITS, False)], ids=["works", "waits"])
def test_h35_4_the_share_that_follows_the_cores_is_told(code: str, follows: bool, tmp_path: Path) -> None:
    file = tmp_path / "program.ampr"
    record = [sys.executable, "-m", "ampsched", "record", "-o", file, "--", CHILD[0], "-S", "-E", "-c", code]
    done = subprocess.run(record, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    share = follows_cores(load(file), file, Catalog.shipped())
    assert share > 0.95 if follows else share < FOLLOWS_MIN
    assert ("would shrink on faster cores" in done.stderr) == (load(file).cpu_ns >= 20e6), done.stderr
