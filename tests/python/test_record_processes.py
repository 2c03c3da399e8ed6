"""Children of recorded programs begin when their parents create them, however that is done and wherever replayed.

Issue 35: a child of vfork began at the absolute time of the recording, however fast the machine was.
"""

import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ampsched import simulate
from ampsched.catalog import Catalog
from ampsched.children import cpu_s_of_children
from ampsched.recording import load, preload
from ampsched.recording.check import check
from ampsched.recording.refusal import FOLLOWS_MIN
from ampsched.recording.replay import replayed

# A busy host may hold programs up while they are recorded.
pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc)"),
    pytest.mark.flaky(reruns=2),
]

CHILDREN = 3
WORK = "import time\nend = time.process_time() + 0.08\nwhile time.process_time() < end: pass"
CHILD = [sys.executable, "-S", "-E", "-c", WORK]
AGAIN = f"for _ in range({CHILDREN}): "
PIDFD = f"""
import os, select
def run():
    child = os.posix_spawn({CHILD[0]!r}, {CHILD}, os.environ)
    poller = select.poll()
    poller.register(os.pidfd_open(child), select.POLLIN)
    poller.poll()
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG)
{AGAIN}run()
"""
PYTHON = {
    "subprocess": f"import subprocess\n{AGAIN}subprocess.run({CHILD})",
    "output captured": f"import subprocess\n{AGAIN}subprocess.run({CHILD}, capture_output=True)",
    "posix_spawn": f"import os\n{AGAIN}os.waitpid(os.posix_spawn({CHILD[0]!r}, {CHILD}, os.environ), 0)",
    "system": f"import os, shlex\n{AGAIN}os.system(shlex.join({CHILD}))",
    "fork": f"import os\n{AGAIN}os.waitpid(os.fork() or os.execv({CHILD[0]!r}, {CHILD}), 0)",
    "pidfd": PIDFD,
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
    # Where this computer is busy, a slow call to a file may be one that has lost its core, and keeps its length.
    files_ms = check(recording, file, catalog).rest["device"] * took_ms(1)
    assert took_ms(20) <= work_ms / 20 + 0.1 * work_ms + files_ms


WAITS = "import time\nfor _ in range(10):\n    time.sleep(0.02)\n    sum(range(20000))"


@pytest.mark.parametrize(("code", "follows"), [(WORK, True), (WAITS, False)], ids=["works", "waits"])
def test_h35_4_the_share_that_follows_the_cores_is_told(code: str, follows: bool, tmp_path: Path) -> None:
    file = tmp_path / "program.ampr"
    record = [sys.executable, "-m", "ampsched", "record", "-o", file, "--", CHILD[0], "-S", "-E", "-c", code]
    done = subprocess.run(record, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = check(load(file), file, Catalog.shipped())
    assert found.violations == ()
    assert found.follows > 0.95 if follows else found.follows < FOLLOWS_MIN
    assert follows or found.rest["clock"] > 0.9 * (1 - found.follows)
    assert ("would shrink on faster cores" in done.stderr) == (load(file).cpu_ns >= 20e6), done.stderr


def test_h35_5_what_starting_a_program_takes_is_not_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody sees a child without our variables: its CPU time must not become the end of who started it."""

    class Late(subprocess.Popen[bytes]):
        def __init__(self, *words: Any, **settings: Any) -> None:
            time.sleep(0.3)
            super().__init__(*words, **settings)

    monkeypatch.setattr(preload.subprocess, "Popen", Late)
    unseen = shlex.join(["env", "-i", *CHILD])
    done = preload.record(["sh", "-c", f"{unseen}; :"], tmp_path / "r.ampr")
    # Of some 100 ms the child, whose end was seen, gets the half.
    assert done.recording.cpu_ns < 75e6


def test_h35_5_what_the_recorder_learns_at_the_start_is_no_work(tmp_path: Path) -> None:
    def plain_ms() -> float:
        before_s = cpu_s_of_children()
        subprocess.run(["true"], check=True)
        return 1e3 * (cpu_s_of_children() - before_s)

    recorded = (preload.record(["true"], tmp_path / f"{number}.ampr").recording for number in range(5))
    assert min(each.cpu_ns for each in recorded) / 1e6 < 3 * min(plain_ms() for _ in range(5)) + 2
