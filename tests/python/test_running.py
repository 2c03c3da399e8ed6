"""35.1: which processes are meant that run already, and what is said if there are none. Needs no root."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import Ampsched

from ampsched import InputError
from ampsched.recording import running, window

NO_PROCESS = 4_194_304
"""The kernel's numbers are below (PID_MAX_LIMIT)."""


@pytest.fixture
def group(tmp_path: Path) -> Path:
    """A folder like a mount of control groups, with a group of this process and its parent."""
    found = tmp_path / "mount/system.slice/served.service"
    (found / "below").mkdir(parents=True)
    (found / running.MEMBERS).write_text(f"{os.getpid()}\n{os.getppid()}\n")
    (found / "below" / running.MEMBERS).write_text(f"{NO_PROCESS}\n0\n")
    (tmp_path / "mount" / running.MEMBERS).write_text("")
    return found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is no number of a process"),
        ("x", "is no number of a process"),
        ("-1", "is no number of a process"),
        ("0", "is no number of a process"),
        ("1.5", "is no number of a process"),
        ("\u0661", "is no number of a process"),
        ("9" * 30, "is no number of a process"),
        ("\udcff", "--pid %ff: is no number of a process"),
        (str(NO_PROCESS), "there is no such process"),
        ("own", "is the recorder itself"),
    ],
)
def test_h35_1_numbers_that_are_no_process_are_refused(text: str, why: str) -> None:
    with pytest.raises(InputError) as refused:
        running.of_pids([str(os.getppid()), str(os.getpid()) if text == "own" else text])
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_h35_1_a_thread_is_refused_with_its_process() -> None:
    go_on, told = threading.Event(), threading.Event()
    numbers: list[int] = []

    def work() -> None:
        numbers.append(threading.get_native_id())
        told.set()
        go_on.wait()

    thread = threading.Thread(target=work)
    thread.start()
    told.wait()
    try:
        with pytest.raises(InputError, match=f"is a thread of process {os.getpid()} "):
            running.of_pids([str(numbers[0])])
    finally:
        go_on.set()
        thread.join()


def test_h35_1_a_process_that_nobody_has_waited_for_has_ended() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(InputError, match="has ended"):
        running.of_pids([str(child.pid)])
    child.wait()


def test_h35_1_threads_of_the_kernel_are_refused() -> None:
    if not Path("/proc/2/comm").exists() or Path("/proc/2/comm").read_text() != "kthreadd\n":
        pytest.skip("no threads of the kernel are seen here, as in a container")
    with pytest.raises(InputError, match="is a thread of the kernel"):
        running.of_pids(["2"])


def test_h35_1_all_below_a_process_belongs_to_it_and_the_recorder_does_not() -> None:
    program = "import subprocess, sys; subprocess.Popen(['cat']); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        target = running.of_pids([str(child.pid)])
        found = target.processes()
        assert found[0] == child.pid
        assert [Path(f"/proc/{pid}/comm").read_text() for pid in found[1:]] == ["cat\n"]
        assert target.name == Path(f"/proc/{child.pid}/comm").read_text().strip()
        assert running.command_of(child.pid) == [sys.executable, "-c", program]
        parent = running.of_pids([str(os.getppid())]).processes()
        assert os.getppid() in parent
        assert os.getpid() not in parent
        child.communicate()


@pytest.mark.parametrize("path", ["system.slice/served.service", "/system.slice/served.service"])
def test_h35_1_a_control_group_is_found_below_its_mount(group: Path, path: str) -> None:
    target = running.of_cgroup(Path(path), [group.parents[1]])
    assert (target.folder, target.name) == (group, "served.service")
    assert running.of_cgroup(group, []).folder == group
    assert target.processes() == [os.getppid()], "neither the recorder nor who is gone"


@pytest.mark.parametrize("path", ["none", "/none", "system.slice", ".", "x\0y", "x" * 300])
def test_h35_1_what_is_no_control_group_is_refused(group: Path, path: str) -> None:
    with pytest.raises(InputError, match=r"--cgroup .*(is no control group|cannot be read)"):
        running.of_cgroup(Path(path), [group.parents[1]])


def test_h35_1_a_control_group_that_is_gone_or_empty_has_no_process(group: Path, tmp_path: Path) -> None:
    target = running.of_cgroup(group, [])
    for folder in (group / "below", group):
        (folder / running.MEMBERS).write_text("")
    assert target.processes() == []
    (group / "below" / running.MEMBERS).write_text("x\n")
    with pytest.raises(InputError, match=f"below/{running.MEMBERS}: is no list of processes"):
        target.processes()
    (group.parents[1] / "system.slice").rename(tmp_path / "gone")
    assert target.processes() == []


def _systemctl(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, code: int = 0) -> None:
    folder.mkdir()
    program = folder / "systemctl"
    program.write_text(f"#!/bin/sh\ncat <<'E'\n{text}\nE\nexit {code}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.parametrize("name", ["served", "served.service"])
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("LoadState=loaded\nActiveState=active\nControlGroup=/system.slice/served.service", 0),
        ("", 1),
        ("LoadState=not-found\nActiveState=inactive\nControlGroup=", 0),
    ],
    ids=["by systemd", "without systemd", "of a user"],
)
def test_h35_1_a_unit_is_found(
    group: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, code: int
) -> None:
    _systemctl(tmp_path / "bin", monkeypatch, text, code)
    target = running.of_unit(name, [group.parents[1]])
    assert (target.folder, target.name, target.what) == (group, "served.service", "--unit served.service")


@pytest.mark.parametrize(
    ("text", "code", "why"),
    [
        ("", 1, "systemd does not run here, and no control group is called so"),
        ("LoadState=not-found\nActiveState=inactive\nControlGroup=", 0, "there is no such unit"),
        ("LoadState=loaded\nActiveState=failed\nControlGroup=", 0, "does not run, it is failed"),
    ],
)
def test_h35_1_a_unit_that_does_not_run_is_refused(
    group: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, code: int, why: str
) -> None:
    _systemctl(tmp_path / "bin", monkeypatch, text, code)
    with pytest.raises(InputError, match=f"^--unit other.service: {why}"):
        running.of_unit("other", [group.parents[1]])


def test_h35_1_a_unit_that_does_not_run_is_no_other_of_its_name(
    group: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _systemctl(tmp_path / "bin", monkeypatch, "LoadState=loaded\nActiveState=inactive\nControlGroup=")
    with pytest.raises(InputError, match="does not run, it is inactive"):
        running.of_unit("served", [group.parents[1]])


def test_h35_1_a_unit_of_several_users_is_to_be_named(
    group: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _systemctl(tmp_path / "bin", monkeypatch, "", 1)
    (group.parents[1] / "user.slice/served.service").mkdir(parents=True)
    with pytest.raises(InputError, match=r"several are called so .*--cgroup"):
        running.of_unit("served", [group.parents[1]])


@pytest.mark.parametrize("name", ["", "a b", "a/b", "*", "-x", "x\0", "\udcff", "ä"])
def test_h35_1_what_is_no_name_of_a_unit_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="is no name of a unit"):
        running.of_unit(name, [])


@pytest.mark.parametrize("for_s", [0.0, -1.0, float("nan"), float("inf"), 1e9])
def test_h35_1_times_that_are_none_are_refused(tmp_path: Path, for_s: float) -> None:
    target = running.of_pids([str(os.getppid())])
    with pytest.raises(InputError, match=r"--for-s .*: must be above 0"):
        window.record(target, tmp_path / "x.ampr", for_s=for_s)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--pid", "1", "--unit", "x"], "one of them at a time"),
        (["--cgroup", "x", "--unit", "x"], "one of them at a time"),
        (["--pid", "1", "--", "true"], "go without a command"),
        (["--unit", "x", "--each-kind"], "go without a command"),
        (["--cgroup", "x", "--recover", "y", "-o", "z"], "go without a command"),
        (["--for-s", "1", "--", "true"], "--for-s goes with --pid"),
        (["--for-s", "x", "--pid", "1"], "is not a number"),
        (["--pid", "1"], "needs root (sudo; or record a new run"),
        (["--unit", "x"], "needs root"),
        (["--cgroup", "x"], "needs root"),
    ],
)
def test_h35_1_options_that_do_not_go_together_are_refused(
    ampsched_here: Ampsched, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], why: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.chdir(tmp_path)
    done = ampsched_here("record", *arguments)
    assert done.code == 2
    assert why in done.err
    assert done.err.count("\n") == 1
    assert not list(tmp_path.iterdir())
