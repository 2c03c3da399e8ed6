"""Recordings that the library and the kernel have made together: names from one, causes from the other."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from test_record_streams import allowed_ms, recorded
from test_system_recording import needs_tracing

from ampsched import InputError
from ampsched.cli.recording import By, _who_tells
from ampsched.recording import both, load, preload, roles, summary, tracefs

SOURCE = Path(__file__).parent / "data" / "record" / "unseen.c"
TURNS, STEPS = 20, 4_000_000
"""Turns of some ms: who waits has begun to by their end, also where others use the cores."""
RECORD = [sys.executable, "-m", "ampsched", "record"]

# A busy host may hold programs up while they are recorded.
pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc)"),
    pytest.mark.flaky(reruns=2),
]


def _built(folder: Path, *flags: str) -> str:
    program = folder / "unseen"
    done = subprocess.run(["cc", "-O1", "-pthread", *flags, "-o", program, SOURCE], capture_output=True)
    if done.returncode and flags:
        pytest.skip("the C library has no static form")
    assert done.returncode == 0, done.stderr
    return str(program)


@needs_tracing
def test_a_futex_that_no_library_sees_is_waited_for(tmp_path: Path) -> None:
    command = [_built(tmp_path), "futex", str(TURNS), str(STEPS)]
    work_ms, _, took_ms = recorded(command, tmp_path, "--by", "library")
    assert took_ms(1) < 0.65 * work_ms, "as if both worked at once"
    work_ms, known, took_ms = recorded(command, tmp_path)
    assert known > 0.95
    assert took_ms(10) <= allowed_ms(2 * work_ms)
    info = json.loads(load(tmp_path / "streams.ampr").info)
    assert info["recorder"] == "both"
    added = info["merged"]["added"]
    assert added >= TURNS
    # As below, of the turns that were waited for.
    assert took_ms(1) > 0.9 * work_ms * min(1, added / (2 * TURNS)), "they take turns"
    assert info["merged"]["lost_events"] == 0


@needs_tracing
def test_a_pipe_that_is_written_unseen_keeps_no_wait(tmp_path: Path) -> None:
    command = [_built(tmp_path), "pipe", str(TURNS), str(STEPS)]
    work_ms, known, took_ms = recorded(command, tmp_path, "--by", "library")
    assert known < 0.5
    assert took_ms(20) > max(0.2 * work_ms, 1.2 * allowed_ms(work_ms)), "its waits are kept"
    work_ms, known, took_ms = recorded(command, tmp_path, "--by", "both")
    assert known > 0.95
    assert took_ms(20) <= allowed_ms(work_ms)
    # Each thread waits once a turn. On a host that takes cores away a byte may be there before it is asked for: then
    # nothing waits, nothing is tied, and that turn may be done beside the other's.
    tied = json.loads(load(tmp_path / "streams.ampr").info)["merged"]["tied"]
    assert tied >= TURNS
    assert took_ms(1) > 0.9 * work_ms * tied / (2 * TURNS)


@needs_tracing
def test_children_that_load_no_library_are_there(tmp_path: Path) -> None:
    static = _built(tmp_path, "-static")
    out = tmp_path / "r.ampr"
    script = f"{static} futex 4 {STEPS}; {static} pipe 4 {STEPS}"
    done = subprocess.run([*RECORD, "-o", out, "--", "sh", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "told by the library and the kernel: " in done.stderr
    recording = load(out)
    assert [process for _, process, *_ in recording.threads] == [0, 1, 1, 2, 2]
    assert [name for name, *_ in recording.threads] == ["sh", *["unseen"] * 4]
    counts = dict(recording.counts)
    assert counts["create"] == 4, "two processes, and a thread of each"
    assert sum(cpu_ns for _, _, _, cpu_ns, _ in recording.threads[1:]) > 0.9 * recording.cpu_ns
    assert (summary.coverage(recording) or 0) > 0.9
    assert any("did not load the library: 4 threads" in text for text in summary.unknown(recording))


@needs_tracing
def test_a_program_without_libraries_is_told_by_the_kernel(tmp_path: Path) -> None:
    static = _built(tmp_path, "-static")
    out = tmp_path / "r.ampr"
    done = subprocess.run(
        [*RECORD, "-o", out, "--", static, "futex", "4", "1000"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "told by the kernel (the program is static, so it loads no library)" in done.stderr
    # A script hides it until it runs.
    (script := tmp_path / "script").write_text(f"#!{static} futex\n")
    script.chmod(0o755)
    done = subprocess.run([*RECORD, "-o", out, "--", script], capture_output=True, text=True)
    assert done.returncode == 2
    assert json.loads(load(out).info)["recorder"] == "system"


@needs_tracing
@pytest.mark.parametrize("limit_mb", [1, 1024])
def test_the_kernels_events_have_a_limit_too(limit_mb: int, tmp_path: Path) -> None:
    out = tmp_path / "r.ampr"
    spins = "import os\nr, w = os.pipe()\nif os.fork():\n for _ in range(60000): os.write(w, b'x'); os.sched_yield()\n"
    spins += "else:\n for _ in range(60000): os.read(r, 1)"
    done = subprocess.run(
        [
            *RECORD,
            "--limit-mb",
            str(limit_mb),
            "-o",
            out,
            "--",
            "taskset",
            "-c",
            "0",
            sys.executable,
            "-c",
            spins,
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert ("The kernel's events from some moment on: they took 1 MiB" in done.stderr) == (limit_mb == 1)


@needs_tracing
def test_what_a_killed_recorder_leaves_is_merged(tmp_path: Path) -> None:
    # After its turns the program itself ends the recorder: their events are on the disk, which its size would not tell.
    script = f"{_built(tmp_path)} futex {TURNS} {STEPS}; sleep 1; kill -KILL $PPID"
    done = subprocess.run([*RECORD, "-o", tmp_path / "r.ampr", "--", "sh", "-c", script], capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    found = preload.recover(tmp_path / "r.ampr.parts")
    assert json.loads(found.info)["merged"]["added"] >= TURNS
    with tracefs.mounted() as folder:
        tracefs.remove_left(folder)


def test_who_tells_is_what_may_and_can(monkeypatch: pytest.MonkeyPatch) -> None:
    def who(by: By | None, kernel: str | None, library: str | None) -> tuple[By, str]:
        monkeypatch.setattr(both, "why_not", lambda: kernel)
        monkeypatch.setattr(preload, "why_not_loaded", lambda _: library)
        return _who_tells("program", by)

    assert who(None, None, None) == (By.BOTH, "")
    assert who(None, "it needs root", None) == (By.LIBRARY, "the kernel does not tell: it needs root")
    assert who(None, None, "is static") == (By.KERNEL, "the program is static, so it loads no library")
    assert who(None, "it needs root", "is static")[0] == By.LIBRARY, "which refuses it"
    assert who(By.LIBRARY, None, "is static") == (By.LIBRARY, "")
    assert who(By.KERNEL, "it needs root", None) == (By.KERNEL, "")
    assert who(By.BOTH, "it needs root", None) == (By.BOTH, ""), "which is refused"


def test_bad_input_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = {
        "--system is --by kernel: it goes without --by library": [
            "--system",
            "--by",
            "library",
            "--",
            "true",
        ],
        'unknown value of --by "nobody"': ["--by", "nobody", "--", "true"],
        "go without a command, --by, ": ["--pid", "1", "--by", "both"],
    }
    for text, arguments in cases.items():
        done = subprocess.run([*RECORD, *arguments], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 2
        assert text in done.stderr
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr("ampsched.recording.system.PLACES", ())
    assert both.why_not() == "it needs root"
    with pytest.raises(InputError, match=r"needs root \(sudo; or --by library\)"):
        preload.record(["true"], tmp_path / "r.ampr", with_kernel=True)
    assert list(tmp_path.iterdir()) == []


def test_threads_of_a_language_are_named_by_what_they_do(tmp_path: Path) -> None:
    program = """
import ctypes, threading, time
prctl = ctypes.CDLL(None).prctl
def work(name):
    prctl(15, name, 0, 0, 0)
    sum(range(300_000))
for name in (b"C2 CompilerThread0", b"GC Thread#1", b"GC Thread#2", b"worker"):
    thread = threading.Thread(target=work, args=(name,))
    thread.start()
    thread.join()
time.sleep(0.2)  # Threads that have been joined take a moment to end, and those cut off have their first names.
"""
    found = preload.record([sys.executable, "-c", program], tmp_path / "r.ampr").recording
    assert re.fullmatch(
        r"its language's own: 1 thread compiling \(\d+% of the work\), "
        r"2 threads collecting garbage \(\d+% of the work\)",
        roles.roles_text(found) or "",
    )
    assert roles.roles_text(preload.record(["true"], tmp_path / "r.ampr").recording) is None
    assert max(map(len, roles.BEGINNINGS)) <= 15, "the kernel keeps no more"
