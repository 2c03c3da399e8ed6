"""Recordings through the kernel's events. Without root or tracefs only what can be said without them is tested."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ampsched import InputError
from ampsched.recording import load, summary, system, tracefs

PROGRAM = """
import os, threading, time
def worker():
    for _ in range(20):
        os.read(down[0], 1)
        os.write(up[1], b"x")
down, up = os.pipe(), os.pipe()
thread = threading.Thread(target=worker)
thread.start()
for _ in range(20):
    time.sleep(0.002)
    os.write(down[1], b"x")
    os.read(up[0], 1)
thread.join()
time.sleep(0.05)
if os.fork() == 0:
    sum(range(1_000_000))
    os._exit(0)
os.wait()
raise SystemExit(3)
"""


def _can_trace() -> bool:
    try:
        system.check_root("")
        with tracefs.mounted() as folder, tracefs.Instance.made(folder, system.EVENTS, [], 64):
            return True
    except InputError:
        return False


needs_tracing = pytest.mark.skipif(not _can_trace(), reason="needs root and a kernel that traces")


def _instances() -> list[str]:
    with tracefs.mounted() as folder:
        return [
            each.name for each in (folder / "instances").iterdir() if each.name.startswith(tracefs.PREFIX)
        ]


@needs_tracing
def test_threads_and_processes_are_recorded_with_who_woke_whom(tmp_path: Path) -> None:
    out = tmp_path / "x.ampr"
    done = system.record([sys.executable, "-c", PROGRAM], out)
    assert done.exit_code == 3
    assert done.lost_events == 0
    # Only sleeps, pipes, and a child that ends.
    assert done.coverage > 0.8
    recording = load(out)
    info = json.loads(recording.info)
    assert (info["recorder"], info["exit_code"]) == ("system", 3)
    processes = [process for _, process, *_ in recording.threads]
    assert processes == [0, 0, 1]
    counts = dict(recording.counts)
    assert counts["create"] == 2
    assert counts["wake"] > 10
    waits = {(waker, woken): count for waker, woken, count, _ in done.wakes}
    # Who finds something to read need not block; the worker is made to.
    assert waits[0, 1] >= 10
    assert sum(waits.values()) > 10
    assert summary.coverage(recording) == done.coverage
    assert not list(tmp_path.glob("*.pages"))


@needs_tracing
def test_cpu_time_on_slow_cores_is_less_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's recorder took all cores for equally fast, whatever the kernel states."""
    one, other = sorted(os.sched_getaffinity(0))[:2]
    speeds = [0.5 if number == other else 1.0 for number in range(os.cpu_count() or 1)]
    monkeypatch.setattr(system, "core_speeds", lambda: speeds)
    work = "import time\nwhile time.process_time() < 0.2: pass"
    found = []
    for core in (one, other):
        out = tmp_path / f"{core}.ampr"
        command = ["taskset", "--cpu-list", str(core), sys.executable, "-I", "-S", "-c", work]
        recording = system.record(command, out).recording
        (path_ns,) = recording.laws([1.0])[0]
        found.append(path_ns / recording.cpu_ns)
    assert found == pytest.approx([1.0, 0.5], abs=0.1)


@needs_tracing
def test_h35_1_a_recorder_that_ends_takes_no_mount_from_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place := tmp_path / "tracing").mkdir()
    monkeypatch.setattr(tracefs, "PLACES", (place,))
    with contextlib.ExitStack() as one, contextlib.ExitStack() as other:
        first = one.enter_context(tracefs.mounted())
        second = other.enter_context(tracefs.mounted())
        made = other.enter_context(tracefs.Instance.made(second, system.EVENTS, [], 64))
        assert (first / "instances" / made.folder.name).is_dir(), "it is the same tracer"
        one.close()
        made.start()
        made.stop()
        assert made.stats()["entries"] >= 0
    assert not place.is_mount()


@needs_tracing
def test_a_command_that_is_none_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no-such-program: No such file"):
        system.record(["no-such-program"], tmp_path / "x.ampr")
    assert not list(tmp_path.iterdir())


RECORDER = """
import sys
from pathlib import Path
from ampsched.recording import system
system.record(["sleep", "60"], Path(sys.argv[1]))
"""


@needs_tracing
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_pages_of_a_recorder_that_is_ended_are_recovered(tmp_path: Path, how: signal.Signals) -> None:
    out, pages = tmp_path / "x.ampr", tmp_path / "x.ampr.pages"
    recorder = subprocess.Popen([sys.executable, "-c", RECORDER, str(out)], stderr=subprocess.DEVNULL)
    own = f"{tracefs.PREFIX}{recorder.pid}"
    until_s = time.monotonic() + 300
    while not any(file.stat().st_size for file in pages.glob("cpu*")) and time.monotonic() < until_s:
        time.sleep(0.02)
    time.sleep(0.3)
    recorder.send_signal(how)
    recorder.wait(10)
    if how is signal.SIGINT:
        assert own not in _instances()
    with pytest.raises(InputError, match=r"recover or remove it"):
        system.record(["true"], out)
    recording = system.recover(pages, out)
    assert [name for name, *_ in recording.threads] == ["sleep"]
    assert "what happened after the recorder was ended" in summary.unknown(recording)
    if how is signal.SIGKILL:
        pid = json.loads((pages / system.ABOUT).read_text())["options"]["pids"][0]
        os.kill(pid, signal.SIGKILL)
    # The next recorder removes what a killed one has left in the kernel.
    system.record(["true"], tmp_path / "y.ampr")
    assert own not in _instances()


def test_a_folder_without_pages_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no pages of a recorder"):
        system.recover(tmp_path, tmp_path / "x.ampr")


def test_without_root_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(InputError, match="needs root"):
        system.record(["true"], tmp_path / "x.ampr")
