"""The virtual machine, as far as it can be tested without one: scripts, quotas, refusals."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Ampsched

from ampsched import vm
from ampsched.vm._read_only import mounts_below
from ampsched.vm.guest import Terminal, init_script
from ampsched.vm.machine import _check_folder, _qemu, read_only_root
from ampsched.vm.shape import CpuGroups, cpu_groups
from ampsched.vm.speeds import evaluate


def script(*command: str, throttle: bool = False, terminal: Terminal | None = None) -> str:
    return init_script(
        command, Path("/a folder"), Path("/cache/config-6"), throttle=throttle, terminal=terminal
    )


def test_the_script_quotes_what_it_is_given() -> None:
    text = script("printf", "%s; rm -rf", "it's")
    assert """printf '%s; rm -rf' 'it'"'"'s' </dev/null""" in text
    assert "cd '/a folder'" in text
    assert "@" not in text.replace("#!/bin/sh", "")


def test_the_script_throttles_only_when_asked() -> None:
    assert "\nthrottle\n" in script("true", throttle=True)
    assert "\nthrottle\n" not in script("true")


def test_a_shell_has_a_terminal_of_its_own() -> None:
    text = script("bash", terminal=Terminal("xterm", 40, 120))
    assert "setsid -c bash" in text
    assert "stty sane rows 40 columns 120" in text
    assert "export TERM=xterm\n" in text


def test_quotas_are_shares_of_the_period() -> None:
    shape = vm.Shape(vm.CoreShape(2, 40), vm.CoreShape(1, 16.5))
    assert shape.quotas_us() == [40_000, 40_000, 16_500]


@pytest.mark.parametrize(
    ("big", "little", "text"),
    [
        (vm.CoreShape(2, 0.5), vm.CoreShape(2, 16), "big cores 2:0.5 % are not possible"),
        (vm.CoreShape(2, 40), vm.CoreShape(1, 101), "little cores 1:101 % are not possible"),
        (vm.CoreShape(0, 40), vm.CoreShape(0, 16), "needs a core"),
    ],
)
def test_impossible_cores_are_refused(big: vm.CoreShape, little: vm.CoreShape, text: str) -> None:
    with pytest.raises(vm.VmError, match=text):
        vm.Shape(big, little)


def test_batch_is_how_the_host_schedules_the_machine(tmp_path: Path) -> None:
    def command(*, batch: bool) -> list[str]:
        return _qemu(tmp_path / "vmlinuz", vm.Accelerator.TCG, vm.Shape(batch=batch), 512, tmp_path)

    assert command(batch=True) == ["chrt", "--batch", "0", *command(batch=False)]


def test_results_are_lines_of_json() -> None:
    output = 'begin\nRESULT {"a": 1}\nno RESULT 3\nRESULT [2.5]\n'
    assert vm.Outcome(0, output, "", timed_out=False).results() == [{"a": 1}, [2.5]]
    assert vm.Outcome(0, "", "", timed_out=False).results() == []


class FakeGroups:
    """A folder that looks like the root of control groups."""

    def __init__(self, root: Path, *, unified: bool) -> None:
        self.root = root if unified else root / "cpu"
        self.unified = unified
        self.root.mkdir(exist_ok=True)
        for name in self.files():
            (self.root / name).touch()
        if unified:
            (root / "cgroup.controllers").write_text("cpuset cpu io\n")

    def files(self) -> list[str]:
        if self.unified:
            return [
                "cgroup.procs",
                "cgroup.threads",
                "cgroup.subtree_control",
                "cgroup.type",
                "cpu.max",
                "cpu.weight",
            ]
        return ["tasks", "cpu.cfs_period_us", "cpu.cfs_quota_us", "cpu.shares"]


@pytest.mark.parametrize("unified", [False, True])
def test_low_each_thread_has_its_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unified: bool
) -> None:
    fake = FakeGroups(tmp_path, unified=unified)
    make, remove = Path.mkdir, Path.rmdir

    def make_group(path: Path, *, exist_ok: bool = False) -> None:
        make(path, exist_ok=exist_ok)
        for name in fake.files():
            (path / name).touch()

    def remove_group(path: Path) -> None:
        for name in fake.files():
            (path / name).unlink()
        remove(path)

    monkeypatch.setattr(Path, "mkdir", make_group)
    monkeypatch.setattr(Path, "rmdir", remove_group)
    with cpu_groups("ours", tmp_path) as groups:
        for _ in range(2):  # a command may call ``throttle``, too
            groups.limit(1, {11: 40_000, 12: 16_000}, 100_000)
        folder = fake.root / "ours"
        if unified:
            assert (folder / "11" / "cpu.max").read_text() == "40000 100000"
            assert (folder / "12" / "cgroup.threads").read_text() == "12"
            assert (folder / "12" / "cgroup.type").read_text() == "threaded"
        else:
            assert (folder / "11" / "cpu.cfs_quota_us").read_text() == "40000"
            assert (folder / "12" / "tasks").read_text() == "12"
    assert not folder.exists()


def test_low_what_a_killed_run_has_left_is_removed(tmp_path: Path) -> None:
    FakeGroups(tmp_path, unified=True)
    for name in ("ampsched-vm-7-ab", "ampsched-vm-8-cd", "other"):
        (tmp_path / name / "11").mkdir(parents=True)
    old = time.time() - 3600
    for name in ("ampsched-vm-7-ab", "other"):
        os.utime(tmp_path / name, (old, old))
    with cpu_groups("ampsched-vm-9-ef", tmp_path):
        left = {path.name for path in tmp_path.iterdir() if path.is_dir()}
    assert left == {"ampsched-vm-8-cd", "other"}


def test_without_a_cpu_controller_nothing_is_slowed_down(tmp_path: Path) -> None:
    with pytest.raises(vm.VmError, match="has no CPU controller"):
        CpuGroups.find("ours", tmp_path)


def test_speeds_are_compared_by_kind() -> None:
    found = evaluate([500.0, 480.0, 200.0, 192.0], vm.Shape())
    assert found.ratio == pytest.approx(2.5)
    assert evaluate([5.0], vm.Shape(vm.CoreShape(1, 40), vm.CoreShape(0, 1))).ratio is None


def test_bad_cores_end_in_one_line(ampsched_here: Ampsched) -> None:
    ended = ampsched_here("vm", "quota", "run", "--big", "two", "--", "true")
    assert ended.code == 2
    assert (
        ended.err == 'error: --big "two" is not of the form CORES:PERCENT (two cores of 40 % each are 2:40)\n'
    )


def test_a_shell_needs_a_terminal(ampsched_here: Ampsched) -> None:
    ended = ampsched_here("vm", "quota", "shell")
    assert ended.code == 2
    assert ended.err.startswith("error: a shell needs a terminal")


MOUNTINFO = r"""
24 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
90 24 8:1 / /tmp/a\040b/root rw,relatime - ext4 /dev/sda1 rw
91 90 0:5 / /tmp/a\040b/root/dev rw - devtmpfs none rw
92 24 0:6 / /tmp/a\040b/root2 rw - tmpfs none rw
""".strip()


def test_low_mounts_are_found_whatever_the_folder_is_called() -> None:
    assert mounts_below("/tmp/a b/root", MOUNTINFO) == ["/tmp/a b/root", "/tmp/a b/root/dev"]
    assert mounts_below("/tmp/a", MOUNTINFO) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: only root can mount")
def test_low_a_folder_s_name_is_no_command(tmp_path: Path) -> None:
    root = tmp_path / "it's $(touch x); a b"
    root.mkdir()
    inside = f"{root}{tmp_path}"
    look = ["sh", "-c", 'cat "$1/file" && ! touch "$1/new" 2>/dev/null', "sh", inside]
    (tmp_path / "file").write_text("here")
    ended = subprocess.run(
        read_only_root(root, look), cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "here"), ended.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", root.name]
    assert list(root.iterdir()) == [], "for this one alone"


@pytest.mark.parametrize("name", ["a,b", 'a"b', "a\nb", "a" * 100])
def test_low_a_folder_that_cannot_be_told_is_refused(name: str) -> None:
    with pytest.raises(
        vm.VmError, match=r"a virtual machine cannot have its files in a folder with .*TMPDIR"
    ):
        _check_folder(Path("/tmp") / name)
    _check_folder(Path("/tmp/it's a b"))


CHILD = """
import sys
from ampsched.children import ended_by_signals
from ampsched.children import child_in_group
with ended_by_signals(), child_in_group(["sleep", "60"]) as process:
    print(process.pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_low_nothing_outlives_a_run_that_is_killed(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", CHILD], stdin=-1, stdout=-1, stderr=-1) as run:
        assert run.stdout
        child = int(run.stdout.readline())
        run.send_signal(number)
        run.wait(10)
        until = time.monotonic() + 10
        while Path(f"/proc/{child}").exists() and time.monotonic() < until:
            time.sleep(0.01)
    assert not Path(f"/proc/{child}").exists()


def test_cores_can_be_kept_busy(tmp_path: Path) -> None:
    steady, plain = (
        set(command[command.index("-append") + 1].split())
        for command in (
            _qemu(tmp_path, vm.Accelerator.TCG, vm.Shape(steady=busy), 512, tmp_path)
            for busy in (True, False)
        )
    )
    assert steady - plain == {"idle=poll"}
