"""Recordings of commands in exact machines: work is the same whichever core executed it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from machines import two_and_two

from ampsched.recording import summary
from ampsched.vm import exact

TOLERANCE = 0.02
"""The shells' start, and what the tracer and the kernel do on each core."""
LOOP = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"


def test_work_is_the_same_on_a_big_core_and_on_a_little_one(tmp_path: Path) -> None:
    script = tmp_path / "both"
    script.write_text(f"#!/bin/sh\nfor mask in 1 4; do taskset $mask sh -c '{LOOP}'; done\n")
    script.chmod(0o755)
    done, recording = exact.record(two_and_two(), exact.Work([str(script)], cwd=tmp_path), limit_s=300)
    assert recording is not None
    assert done.code == 0, (done.output, done.console)
    info = json.loads(recording.info)
    assert [core["speed"] for core in info["cores"]] == [1.0, 1.0, 0.4, 0.4]
    assert (info["recorder"], info["lost_events"], info["exit_code"]) == ("vm", 0, 0)
    loops = sorted(summary.rows(recording), key=lambda row: -row.work_ns)[:2]
    print(loops)
    assert abs(loops[0].work_ns / loops[1].work_ns - 1) < TOLERANCE
    cpu_ns = sorted(row.cpu_ns for row in loops)
    assert abs(cpu_ns[1] / cpu_ns[0] / 2.5 - 1) < TOLERANCE
    assert summary.coverage(recording) == 1.0


PROGRAM = """
#include <pthread.h>
enum { THREADS = 4, ROUNDS = 6 };
static pthread_barrier_t barrier;
static volatile long sink;
static void *work(void *argument)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (long i = 0; i < 100000 * (1 + (long)argument); i++)
            sink += i;
        pthread_barrier_wait(&barrier);
    }
    return 0;
}
int main(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, 0, THREADS);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], 0);
}
"""


def test_calls_are_recorded_on_fast_cores_and_the_speedup_on_slow_ones(tmp_path: Path) -> None:
    source = tmp_path / "meet.c"
    source.write_text(PROGRAM)
    subprocess.run(["cc", "-O1", "-pthread", "-o", tmp_path / "meet", source], check=True)
    work = exact.Work([str(tmp_path / "meet")], cwd=tmp_path)
    done, recording = exact.record_calls(two_and_two(), work, limit_s=300)
    assert recording is not None
    assert done.code == 0, (done.output, done.console)
    assert dict(recording.counts)["barrier"] == 4 * 6
    info = json.loads(recording.info)
    assert [core["speed"] for core in info["cores"]] == [1.0] * 4
    # Integer code, on cores of 1000 and of 400 MIPS.
    assert abs(info["speedup"] / 2.5 - 1) < TOLERANCE, info["speedup"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["meet", "meet.c"]
