"""Threads that only watch last as long as their program, wherever it is replayed.

Issue 35: a program with a thread that sleeps in a loop, as every JVM has one, was as slow on fast cores as where it
was recorded, because the loop was replayed as often as there.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ampsched import simulate
from ampsched.catalog import Catalog
from ampsched.recording import Recording, load
from ampsched.recording.replay import replayed

# A busy host may hold programs up while they are recorded.
pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc)"),
    pytest.mark.flaky(reruns=2),
]

PROGRAM = """
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static long us;
static volatile int stop;

static struct timespec later(void)
{
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    long ns = at.tv_nsec + us * 1000;
    return (struct timespec){ at.tv_sec + ns / 1000000000, ns % 1000000000 };
}
static void by_usleep(void) { usleep(us); }
static void by_nanosleep(void) { nanosleep(&(struct timespec){ 0, us * 1000 }, 0); }
static void by_condition(void)
{
    struct timespec at = later();
    pthread_mutex_lock(&mutex);
    pthread_cond_timedwait(&condition, &mutex, &at);
    pthread_mutex_unlock(&mutex);
}
static void by_semaphore(void) { struct timespec at = later(); sem_timedwait(&semaphore, &at); }
static void by_poll(void) { poll(0, 0, us / 1000); }

static void *watch(void *sleeps)
{
    while (!stop) {
        ((void (*)(void))sleeps)();
    }
    return 0;
}
static void *work(void *ms)
{
    struct timespec now;
    do {
        for (volatile int turn = 0; turn < 100000; turn++) { }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < (long)ms);
    return 0;
}
/* usleep|nanosleep|condition|semaphore|poll  us  cut|told */
int main(int count, char **word)
{
    pthread_t watchdog, workers[3];
    const char *names[] = { "usleep", "nanosleep", "condition", "semaphore", "poll" };
    void (*ways[])(void) = { by_usleep, by_nanosleep, by_condition, by_semaphore, by_poll };
    int way = 0;
    while (way < 5 && strcmp(names[way], word[1])) {
        way++;
    }
    sem_init(&semaphore, 0, 0);
    us = atol(word[2]);
    if (way < 5) {
        pthread_create(&watchdog, 0, watch, ways[way]);
    }
    for (long index = 0; index < 3; index++) {
        pthread_create(&workers[index], 0, work, (void *)(100 + 20 * index));
    }
    for (int index = 0; index < 3; index++) {
        pthread_join(workers[index], 0);
    }
    if (way < 5 && !strcmp(word[3], "told")) {
        stop = 1;
        pthread_mutex_lock(&mutex);
        pthread_cond_signal(&condition);
        pthread_mutex_unlock(&mutex);
        pthread_join(watchdog, 0);
    }
    return 0;
}
"""
PYTHON = """
import sys, threading, time
period, told = float(sys.argv[1]), sys.argv[2] == "told"
stop = threading.Event()
def watch():
    while not stop.is_set():
        (stop if told else threading.Event()).wait(period)
watchdog = threading.Thread(target=watch, daemon=not told)
if period:
    watchdog.start()
end = time.process_time() + 0.3
while time.process_time() < end:
    sum(range(10000))
stop.set()
if told and period:
    watchdog.join()
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, compiled."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "program.c").write_text(PROGRAM)
    subprocess.run(["cc", "-O1", "-pthread", "-o", folder / "program", folder / "program.c"], check=True)
    return folder / "program"


def recorded(command: list[str | Path], file: Path) -> Recording:
    done = subprocess.run(
        [sys.executable, "-m", "ampsched", "record", "-o", file, "--", *command],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return load(file)


def took_ms(recording: Recording, file: Path, speed: float, policy: str = "cfs") -> float:
    workload = replayed(Catalog.shipped(), recording, file, speed=speed, speedup=2.0).workload
    return simulate(machine="2B2S", workload=workload, policy=policy).makespan_ns / 1e6


def gain(recording: Recording, file: Path) -> float:
    """How many percent less time a policy takes that gives the slowest threads big cores: 41 without a watchdog.

    That it is the same within a point is tested in Rust, with recordings that no other work on the computer touches.
    """
    return 100 * (1 - took_ms(recording, file, 1, "acfs") / took_ms(recording, file, 1))


WAYS = ["usleep", "nanosleep", "condition", "semaphore", "poll"]


@pytest.mark.parametrize(
    ("way", "us", "end"),
    [
        *((way, 10_000, end) for way in WAYS for end in ("cut", "told")),
        ("usleep", 1_000, "cut"),
        ("poll", 50_000, "cut"),
    ],
)
def test_h35_2_watchdogs_end_with_their_program(
    way: str, us: int, end: str, program: Path, tmp_path: Path
) -> None:
    file = tmp_path / "program.ampr"
    recording = recorded([program, way, str(us), end], file)
    assert (
        "1 thread only watches: it ends with its program"
        in replayed(Catalog.shipped(), recording, file).notes
    )
    assert took_ms(recording, file, 20) < took_ms(recording, file, 1) / 12
    assert gain(recording, file) > 25


@pytest.mark.parametrize("end", ["cut", "told"])
def test_h35_2_watchdogs_of_an_interpreter_end_with_their_program(end: str, tmp_path: Path) -> None:
    file = tmp_path / "python.ampr"
    (tmp_path / "program.py").write_text(PYTHON)
    note = "1 thread only watches: it ends with its program"
    recording = recorded([sys.executable, "-S", "-E", tmp_path / "program.py", "0.02", end], file)
    assert note in replayed(Catalog.shipped(), recording, file).notes
    # On a computer with other work, reading modules may take long, and stays.
    blocked_ms = recording.threads[0][4] / 1e6
    assert took_ms(recording, file, 20) < recording.cpu_ns / 1e6 / 12 + blocked_ms
