"""What waits at pipes, sockets and counters waits for the recorded thread that wrote, wherever it is replayed.

Issue 35: such waits kept their length, so a pipeline took as long on fast cores as on slow ones.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from test_system_recording import needs_tracing

from ampsched import InputError, simulate
from ampsched.catalog import Catalog
from ampsched.recording import load
from ampsched.recording.check import check
from ampsched.recording.replay import replayed

# A busy host may hold programs up while they are recorded.
pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc)"),
    pytest.mark.flaky(reruns=2),
]

PYTHON = f"{sys.executable} -S -E"
TALKS = Path(__file__).parent / "data" / "record" / "streams.py"
TIMERS = TALKS.with_name("timers.py")
TURN_S = 0.004
TURNS = 2 * 12
KEPT_SHARE, WAKING_MS = 0.1, 4.0
"""Waking and switching threads takes as long on fast cores, and longer where this computer was busy meanwhile: parts of
the work, and a time. What keeps its length because its cause was missed is a third of the work and more."""


def allowed_ms(work_ms: float) -> float:
    """How long work may take that follows cores which are 20 times as fast."""
    return work_ms / 20 + KEPT_SHARE * work_ms + WAKING_MS


def recorded(
    command: list[str], folder: Path, *options: str
) -> tuple[float, float, Callable[[float], float]]:
    """Work of a program in ms, the share of its waits whose cause is known, and how long its replay takes by speed.

    Without what the program waits for files, which no core makes faster.
    """
    file = folder / "streams.ampr"
    record = [sys.executable, "-m", "ampsched", "record", *options, "-o", file, "--", *command]
    done = subprocess.run(record, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    recording, catalog = load(file), Catalog.shipped()

    def took_ms(speed: float) -> float:
        workload = replayed(catalog, recording, file, speed=speed, speedup=1.0).workload
        return simulate(machine="2B2S", workload=workload, policy="linux").makespan_ns / 1e6

    blocked_ns, known_ns = recording.blocked_ns
    files_ms = check(recording, file, catalog).rest["device"] * took_ms(1)
    return recording.cpu_ns / 1e6, known_ns / max(blocked_ns, 1), lambda speed: took_ms(speed) - files_ms


POLLED = ["accepted by poll", "accepted by epoll", "a thread that hears"]
"""What a poll has waited for, the thread's next call does not tell."""


@pytest.mark.parametrize(
    "how", ["pipes", "socketpair", "unix", "tcp", "eventfd", "futex", "signals", "signalfd", *POLLED]
)
def test_h35_1_who_talks_by_turns_is_as_fast_as_the_cores(how: str, tmp_path: Path) -> None:
    work_ms, known, took_ms = recorded([*PYTHON.split(), str(TALKS), how, str(TURN_S)], tmp_path)
    turns_ms = TURNS * TURN_S * 1e3
    # They are one after the other: nothing is earlier than its cause, and nothing keeps its length.
    assert took_ms(0.1) >= 10 * turns_ms
    assert took_ms(20) <= allowed_ms(work_ms + turns_ms)
    assert known > 0.9


@pytest.mark.parametrize("how", ["read", "epoll"])
def test_h35_2_periods_of_a_timer_stay_as_long_as_they_are(how: str, tmp_path: Path) -> None:
    periods, period_ms, period_work_ms = 12, 12.0, 4.0
    words = [str(TIMERS), how, str(periods), str(period_ms / 1e3), str(period_work_ms / 1e3)]
    work_ms, _, took_ms = recorded([*PYTHON.split(), *words], tmp_path)
    whole_ms, before_ms = periods * period_ms, work_ms - periods * period_work_ms
    # A wait of fixed length would leave out, or add, half of the work of each period and more. Where this computer was
    # busy, the first and the last period may have been late by another one.
    for speed in (0.5, 20):
        expected_ms = whole_ms + before_ms / speed
        assert whole_ms - period_ms / 2 <= took_ms(speed) <= expected_ms + 2 * period_ms, speed


POOL = """
from multiprocessing import Pool
def work(rounds):
    return sum(n * n for n in range(rounds))
if __name__ == "__main__":
    with Pool(2) as pool:
        pool.map(work, [100_000] * 24, chunksize=2)
"""


def test_h35_1_a_pool_of_processes_is_as_fast_as_the_cores(tmp_path: Path) -> None:
    """One of its threads polls what another one reads."""
    (tmp_path / "pool.py").write_text(POOL)
    # Of about 30 recordings, one cannot be replayed: Python's own lock passes by a condition, and in the end the pool
    # takes another lock in another order than it did (docs/explanation/limits.md).
    for attempt in range(3):
        work_ms, known, took_ms = recorded([sys.executable, str(tmp_path / "pool.py")], tmp_path)
        try:
            fast_ms = took_ms(20)
            break
        except InputError as error:
            if "deadlock" not in str(error) or attempt == 2:
                raise
    assert fast_ms <= allowed_ms(work_ms)
    assert took_ms(0.1) >= 10 * work_ms / 4
    assert known > 0.9


WAITS_FOR_THE_END = """
import os, select, socket, sys
how, what = sys.argv[1:]
if what == "pipe":
    here, there = os.pipe()
else:
    here, there = (end.detach() for end in socket.socketpair())
os.set_inheritable(there, True)
if os.fork() == 0:
    # Who writes is no child of who reads.
    if os.fork() == 0:
        os.close(here)
        os.write(there, b"x")
        sum(range(6_000_000))
    os._exit(0)
os.close(there)
os.wait()
os.read(here, 1)
if how == "select":
    select.select([here], [], [])
else:
    poller = getattr(select, how)()
    poller.register(here, select.POLLIN)
    poller.poll()
sum(range(3_000_000))
"""


@pytest.mark.parametrize("what", ["pipe", "socketpair"])
@pytest.mark.parametrize("how", ["select", "poll", "epoll"])
def test_h35_1_a_poll_that_finds_the_end_waits_for_who_has_written(
    how: str, what: str, tmp_path: Path
) -> None:
    """It was input from outside, as nobody had written what it found."""
    work_ms, known, took_ms = recorded([*PYTHON.split(), "-c", WAITS_FOR_THE_END, how, what], tmp_path)
    assert took_ms(20) <= allowed_ms(work_ms)
    assert took_ms(0.1) >= 10 * 0.9 * work_ms
    assert known > 0.9


READS_WHAT_IS_IN_MEMORY = """
import os, sys, threading

def read():
    for _ in range(30):
        file = os.open(sys.argv[1], os.O_RDONLY)
        while os.read(file, 1 << 20):
            pass
        os.close(file)

threads = [threading.Thread(target=read) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_h35_2_who_reads_from_memory_waits_for_no_disk(tmp_path: Path) -> None:
    """Where there are more threads than cores, waits for a core inside of a read were the disk's."""
    data = tmp_path / "data"
    data.write_bytes(bytes(16 << 20))
    file = tmp_path / "reads.ampr"
    command = [*PYTHON.split(), "-c", READS_WHAT_IS_IN_MEMORY, str(data)]
    record = [sys.executable, "-m", "ampsched", "record", "-o", file, "--", *command]
    subprocess.run(record, check=True, capture_output=True, timeout=60)
    # Where memory is short, the kernel may have dropped a part of the file.
    assert dict(load(file).counts).get("input or output", 0) <= 20


WRITE = """
import sys
for number in range(150):
    sum(range(20000))
    sys.stdout.write("%05d %s\\n" % (number, "x" * 2000))
    sys.stdout.flush()
"""
READ = """
import sys
for line in sys.stdin:
    sum(range(20000))
"""
FILTER = """
#include <stdio.h>
int main(void) {
    char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        fputs(line, stdout);
    }
    return 0;
}
"""


@needs_tracing
def test_h35_1_a_pipeline_is_replayed_as_by_what_the_kernel_tells(tmp_path: Path) -> None:
    """What starting and ending its programs takes is theirs, too; how much they work differs from run to run."""
    for name, text in {"write.py": WRITE, "read.py": READ}.items():
        (tmp_path / name).write_text(text)
    pipeline = ["sh", "-c", f"{PYTHON} {tmp_path}/write.py | sort | {PYTHON} {tmp_path}/read.py; /bin/true"]
    shares = []
    for options in ([], ["--system"]):
        work_ms, _, took_ms = recorded(pipeline, tmp_path, *options)
        shares.append([took_ms(speed) * speed / work_ms for speed in (0.1, 1)])
    assert shares[0] == pytest.approx(shares[1], rel=0.1)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_h35_1_a_pipeline_is_as_fast_as_the_cores(shell: str, tmp_path: Path) -> None:
    """Also where programs read and write by the C library's buffers, which pass no wrapper."""
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    for name, text in {"write.py": WRITE, "read.py": READ, "filter.c": FILTER}.items():
        (tmp_path / name).write_text(text)
    subprocess.run(["cc", "-O2", "-o", tmp_path / "filter", tmp_path / "filter.c"], check=True)
    pipeline = f"{PYTHON} {tmp_path}/write.py | {tmp_path}/filter | {PYTHON} {tmp_path}/read.py; :"
    work_ms, known, took_ms = recorded([shell, "-c", pipeline], tmp_path)
    assert took_ms(20) <= allowed_ms(work_ms)
    assert took_ms(0.1) >= 10 * work_ms / 4
    assert known > 0.9
