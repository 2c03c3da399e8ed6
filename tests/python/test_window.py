"""35.1: what runs already is recorded by the kernel's events: by number and by control group. Needs root."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_system_recording import needs_tracing

from ampsched.recording import Recording, load, running, system

pytestmark = needs_tracing
ROUNDS = 40
SERVER = f"""
import os, sys, threading
down, up = os.pipe(), os.pipe()
def worker():
    while os.read(down[0], 1):
        sum(range(50_000))
        os.write(up[1], b"x")
threading.Thread(target=worker, daemon=True).start()
print("ready", flush=True)
while sys.stdin.readline():
    for _ in range({ROUNDS}):
        os.write(down[1], b"x")
        os.read(up[0], 1)
        sum(range(50_000))
    print("done", flush=True)
os._exit(0)
"""
READER = "import sys; [print(sum(range(100_000)), flush=True) for _ in sys.stdin]"


def _until(is_so: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Waits for a state; a process that has ended will never reach it."""
    while not is_so():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


@contextmanager
def _recorder(out: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A recorder that has begun; the window is over long before its time."""
    command = [sys.executable, "-m", "ampsched", "record", *arguments, "-o", str(out), "--for-s", "300"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    about = out.with_name(f"{out.name}{system.SUFFIX}") / system.ABOUT

    def has_begun() -> bool:
        try:
            return bool(json.loads(about.read_text())["options"]["window"]["threads"])
        except (OSError, ValueError):  # not yet, or not to its end
            return False

    try:
        _until(has_begun, process)
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@contextmanager
def _python(
    program: str, stdin: int = subprocess.PIPE, stdout: int = subprocess.PIPE
) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=stdin, stdout=stdout, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def _say(process: subprocess.Popen[str], text: str = "go\n") -> None:
    assert process.stdin is not None
    process.stdin.write(text)
    process.stdin.flush()


def _cpu_ns(pid: int) -> int:
    """What the kernel says of the CPU time of a process's threads."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads)


def _taken_ns() -> int:
    """What interrupts and a hypervisor have taken of all cores, which is no CPU time of threads for the kernel."""
    ticks = Path("/proc/stat").read_text().splitlines()[0].split()[6:9]
    return sum(map(int, ticks)) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def _ended(process: subprocess.Popen[str], out: Path) -> tuple[Recording, str]:
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert not list(out.parent.glob(f"*{system.SUFFIX}"))
    return load(out), err


def test_h35_1_a_server_is_recorded_until_it_ends(tmp_path: Path) -> None:
    """Both threads, who woke whom, and all of the CPU time, though the window has neither begin nor end of them."""
    out = tmp_path / "x.ampr"
    with _python(SERVER) as server:
        assert _line(server) == "ready\n"
        before_ns, taken_ns = _cpu_ns(server.pid), _taken_ns()
        with _recorder(out, "--pid", str(server.pid)) as recorder:
            _say(server)
            assert _line(server) == "done\n"
            used_ns = _cpu_ns(server.pid) - before_ns
            server.communicate()
            recording, err = _ended(recorder, out)
    info = json.loads(recording.info)
    assert (info["recorder"], info["exit_code"], info["lost_events"]) == ("system", None, 0)
    assert info["command"] == [sys.executable, "-c", SERVER]
    assert info["window_ns"] >= info["wall_ns"] > 0
    assert [process for _, process, *_ in recording.threads] == [0, 0]
    waits = {(waker, woken): count for waker, woken, count, _ in system.wake_ups(recording)}
    assert set(waits) == {(0, 1), (1, 0)}
    assert sum(waits.values()) >= 10, "who finds something to read does not block"
    # It also ends, which takes CPU time behind the last account.
    assert used_ns * 0.98 <= recording.cpu_ns <= used_ns * 1.05 + 20e6 + _taken_ns() - taken_ns
    # The wait for this test was under way when the window began.
    blocked_ns, known_ns = recording.blocked_ns
    assert known_ns < blocked_ns
    assert "next: ampsched advise" in err
    assert "cut" not in err


def test_h35_1_advice_says_what_a_server_waits_for(tmp_path: Path) -> None:
    out = tmp_path / "x.ampr"
    with _python(READER) as server, _recorder(out, "--pid", str(server.pid)) as recorder:
        for _ in range(20):
            _say(server)
            _line(server)
            time.sleep(0.01)  # a client that thinks
        recorder.send_signal(signal.SIGINT)
        recording, err = _ended(recorder, out)
        assert server.poll() is None, "it goes on"
    assert "clients of a server" in " ".join(err.split())
    assert json.loads(recording.info)["exit_code"] is None
    command = [sys.executable, "-m", "ampsched", "advise", str(out), "-m", "2B2S", "-p", "linux,abreast"]
    told = subprocess.run(
        [*command, "-r", "2", "--anyway"], capture_output=True, text=True, env=os.environ | {"COLUMNS": "80"}
    )
    assert told.returncode == 0, told.stderr
    assert "clients of a server" in " ".join(told.stdout.split())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_h35_1_a_signal_ends_it_and_saves(tmp_path: Path, number: signal.Signals) -> None:
    out = tmp_path / "x.ampr"
    with _python(SERVER) as server:
        assert _line(server) == "ready\n"
        with _recorder(out, "--pid", str(server.pid)) as recorder:
            _say(server)
            assert _line(server) == "done\n"
            recorder.send_signal(number)
            recording, _ = _ended(recorder, out)
    assert len(recording.threads) == 2


def test_h35_1_a_window_in_which_nothing_ran_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "x.ampr"
    with _python(SERVER) as server:
        assert _line(server) == "ready\n"
        with _recorder(out, "--pid", str(server.pid)) as recorder:
            recorder.send_signal(signal.SIGINT)
            _, err = recorder.communicate(timeout=60)
    if recorder.returncode:  # else a late page fault has made one of its threads run
        assert "nothing ran meanwhile" in err
        assert not list(tmp_path.iterdir())


@contextmanager
def _group() -> Iterator[Path]:
    """A new control group."""
    for mount in running.cgroup_mounts():
        folder = mount / f"ampsched-test-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            yield folder
        finally:
            _remove(folder)
        return
    pytest.skip("no control group can be made here")


def _remove(folder: Path) -> None:
    while folder.exists():
        try:
            folder.rmdir()
        except OSError:  # who was in it has not ended altogether
            time.sleep(0.01)


def test_h35_1_a_control_group_of_two_processes(tmp_path: Path) -> None:
    out = tmp_path / "x.ampr"
    waits, gives = os.pipe()
    writer = f"import sys\nfor line in sys.stdin:\n for _ in range({ROUNDS}): print(sum(range(50_000)), flush=True)"
    with _group() as folder, _python(writer, stdout=gives) as one, _python(READER, stdin=waits) as other:
        os.close(waits)
        os.close(gives)
        for process in (one, other):
            (folder / running.MEMBERS).write_text(str(process.pid))
        with _recorder(out, "--cgroup", folder.name) as recorder:
            _say(one)
            for _ in range(ROUNDS):
                _line(other)
            one.communicate()
            other.communicate()
            recording, _ = _ended(recorder, out)
    assert sorted(process for _, process, *_ in recording.threads) == [0, 1]
    woken = {(waker, woken) for waker, woken, *_ in system.wake_ups(recording)}
    assert len(woken) >= 1, "who writes wakes who reads"
    assert json.loads(recording.info)["name"] == folder.name


def test_h35_1_an_empty_control_group_is_refused(tmp_path: Path) -> None:
    with _group() as folder:
        command = [sys.executable, "-m", "ampsched", "record", "--cgroup", folder.name]
        done = subprocess.run([*command, "-o", str(tmp_path / "x.ampr")], capture_output=True, text=True)
    assert done.returncode == 2
    assert "has no process" in done.stderr
    assert not list(tmp_path.iterdir())


def test_h35_1_what_is_started_meanwhile_is_recorded(tmp_path: Path) -> None:
    out = tmp_path / "x.ampr"
    starter = (
        "import subprocess, sys\nfor _ in sys.stdin: print(subprocess.call(['sleep', '0.01']), flush=True)"
    )
    with _python(starter) as server, _recorder(out, "--pid", str(server.pid)) as recorder:
        for _ in range(3):
            _say(server)
            assert _line(server) == "0\n"
        recorder.send_signal(signal.SIGINT)
        recording, _ = _ended(recorder, out)
    assert [(name, process) for name, process, *_ in recording.threads[1:]] == [
        ("sleep", number) for number in (1, 2, 3)
    ]
    assert dict(recording.counts)["create"] == 3


def test_h35_1_a_window_ends_when_its_share_of_the_disk_is_full(tmp_path: Path) -> None:
    out = tmp_path / "x.ampr"
    ring = (
        "import os, threading\na, b = os.pipe(), os.pipe()\nos.write(b[1], b'x')\n"
        "def hand(a, b):\n while True: os.write(b[1], os.read(a[0], 1))\n"
        "threading.Thread(target=hand, args=(a, b)).start()\nhand(b, a)"
    )
    with (
        _python(ring) as one,
        _recorder(out, "--pid", str(one.pid), "--limit-mb", "1") as recorder,
    ):
        recording, _ = _ended(recorder, out)
        assert one.poll() is None
    assert json.loads(recording.info)["window_ns"] < 300e9


def test_h35_1_a_window_of_a_killed_recorder_is_recovered(tmp_path: Path) -> None:
    out, pages = tmp_path / "x.ampr", tmp_path / f"x.ampr{system.SUFFIX}"

    def bytes_read() -> int:
        return sum(file.stat().st_size for file in pages.glob("cpu*"))

    with _python(SERVER) as server:
        assert _line(server) == "ready\n"
        with _recorder(out, "--pid", str(server.pid)) as recorder:
            _say(server)
            assert _line(server) == "done\n"
            for _ in range(2):  # what is read now may have begun before
                so_far = bytes_read()
                _until(lambda so_far=so_far: bytes_read() > so_far, recorder)  # type: ignore[misc]
            recorder.kill()
            recorder.wait()
        recording = system.recover(pages, out)
    assert len(recording.threads) == 2
    info = json.loads(recording.info)
    assert info["window_ns"] == info["wall_ns"] > 0
    assert info["unknown"][0] == "what happened after the recorder was ended"
