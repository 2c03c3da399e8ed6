"""Machines whose cores are exactly unequal: their speeds, and that two runs are the same."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from belongings import belongings
from machines import BUILT, ROOT, two_and_two

from ampsched.vm import exact
from ampsched.vm.exact import qemu

# Each core counts by itself and says how much CPU time that took, which the kernel counts in ns.
PINNED = """
for core in 0 1 2 3; do
    taskset $((1 << core)) sh -c '
        read -r begin _ </proc/self/schedstat
        i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done
        read -r end _ </proc/self/schedstat
        echo '$core' $((end - begin))' &
done
wait
"""
TOLERANCE = 0.005
"""What the kernel itself does meanwhile (ticks, the shells' start) is no part of the loop."""


def run(guest: exact.Exact, script: str, cwd: Path) -> exact.Done:
    done = exact.run(guest, exact.Work(["sh", "-c", script], cwd=cwd), out=cwd / "out", limit_s=300)
    assert done.code == 0, (done.output, done.console)
    return done


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_cores_are_as_unequal_as_stated(architecture: str, tmp_path: Path) -> None:
    done = run(two_and_two(architecture=architecture), PINNED, tmp_path)
    took_ns = {int(core): int(ns) for core, ns in (line.split() for line in done.output.splitlines())}
    assert took_ns.keys() == {0, 1, 2, 3}
    ratio = (took_ns[2] + took_ns[3]) / (took_ns[0] + took_ns[1])
    print(took_ns, ratio)
    assert abs(ratio / 2.5 - 1) < TOLERANCE


def test_cores_that_wake_each_other_are_as_unequal_as_stated() -> None:
    """A core that is woken begins when its waker does so, however long the quantum is."""
    script = [str(Path(sys.executable).resolve()), str(ROOT / "tests/live/guest_turns.py"), "0-1", "2-3"]
    took_ns = []
    for quantum_us in (10.0, 1.0):
        guest = two_and_two(quantum_us=quantum_us)
        done = exact.run(guest, exact.Work(script, files=belongings(), cwd=Path("/tmp")), limit_s=300)
        assert done.code == 0, (done.output, done.console)
        took_ns.append([float(line) for line in done.output.splitlines()])
    print(took_ns)
    # A core that has not halted yet notices an interrupt at its next turn: seen are up to 13 % of such turns. When
    # cores began at the quantum's start, turns of big ones were 75 times as short as those of little ones.
    for big_ns, little_ns in took_ns:
        assert abs(little_ns / big_ns / 2.5 - 1) < 0.3
    assert abs(took_ns[0][0] / took_ns[1][0] - 1) < 0.3


def test_two_runs_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the host's clock goes at another speed: then QEMU resizes translation buffers at other times."""
    script = PINNED + "cat /proc/interrupts /proc/schedstat /proc/uptime >state; dmesg >>state"
    both, states = [], []
    for slow in (None, slow_clock(tmp_path / "slow.so")):
        if slow:
            monkeypatch.setattr(qemu, "packaged", preloading(slow))
        both.append(run(two_and_two(), script, tmp_path))
        states.append((tmp_path / "out/state").read_text("utf-8"))
    assert both[0].output == both[1].output
    assert both[0].console == both[1].console
    assert states[0] == states[1]
    reports = [done.report for done in both]
    assert reports[0] is not None
    assert reports[1] is not None
    assert reports[0].virtual_s == reports[1].virtual_s
    assert reports[0].instructions == reports[1].instructions


def slow_clock(library: Path) -> Path:
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(ROOT / "tests/live/slow_clock.c")]
    subprocess.run(command, check=True)
    return library


def preloading(library: Path) -> Callable[..., list[str]]:
    """Starts programs with one more library, behind those that come first anyway."""

    def packaged(packages: Path, name: str, preload: Path | None = None) -> list[str]:
        words = command(packages, name, preload)
        if preload:
            words[words.index(str(preload))] = f"{preload}:{library}"
        return words

    command = qemu.packaged
    return packaged


HOWTO = ROOT / "docs/howto/run-on-cores-you-do-not-have.md"


def test_the_how_to_works(tmp_path: Path) -> None:
    """Every command of the page, one after the other, as it stands there."""
    blocks = re.findall(r"^```sh\n(.*?)^```", HOWTO.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) > 3
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euxc", "".join(blocks)],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "AMPSCHED_LIVE": str(BUILT / "ampsched-live")},
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stderr)
    assert done.returncode == 0, done.stderr[-3000:]
    times = re.findall(r"^ampsched: took ([\d.]+) s in the machine", done.stderr, re.MULTILINE)
    assert len(times) == 5
    assert times[0] == times[1], "the same run twice"
    assert "abreast as written" in done.stdout
    assert "sched_switch" in (tmp_path / "xz.trace").read_text("utf-8")
    assert "scaling_cur_freq" in done.stdout
    assert (tmp_path / "load.pftrace").stat().st_size > 0
