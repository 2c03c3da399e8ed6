"""Ctrl-C, SIGTERM and SIGHUP end any command at once, and nothing half-written stays."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ampsched._core import DESCRIPTION_BYTES_MAX

ENDLESS = '[[threads]]\nname = "t"\ncount = 4\nbody = [{ loop = 1000000000, body = [{ sleep_us = 1 }] }]\n'
HUGE = "".join(f"t{n},1,,\n" for n in range(160_000))
"""Takes several times as long as the wait below, on a fast computer too."""
STEP = '{ run_us = 20, profile = "fft" }, '
COUNTS = "".join(f"{n // 4 + 1}.000,{n},,instructions,1000000,100.00,,\n" for n in range(1_000_000))
STARTED_S = 1.0
"""Processor time after which a command has been read and is at work."""
END_CPU_S = 0.5
"""Processor time that is allowed until it is over: less than that passes, however busy the computer is with others."""

COMMANDS = {
    "simulate": (
        "simulate",
        "-m",
        "2B2S",
        "-w",
        "endless.toml",
        "--limit-s",
        "1e6",
        "--trace",
        "out/x.pftrace",
    ),
    "compare": (
        "compare",
        "-m",
        "2B2S",
        "-w",
        "endless.toml",
        "-p",
        "cfs,colab",
        "--limit-s",
        "1e6",
        "-j",
        "2",
    ),
    "explain": (
        "explain",
        "-m",
        "2B2S",
        "-w",
        "endless.toml",
        "--thread",
        "0",
        "--at",
        "1e8",
        "--limit-s",
        "1e6",
    ),
    "tasks schedule": (
        "tasks",
        "schedule",
        "huge.csv",
        "-w",
        "2048x10,2048x4",
        "-p",
        "heft",
        "--csv",
        "out/x.csv",
    ),
    "tasks run": ("tasks", "run", "huge.csv", "-w", "2048x10,2048x4", "-p", "heft,peft"),
    "calibrate": ("calibrate", "--out", "out", "--window-ms", "10000"),
    "train": ("train", "--machine", "2B2S", "--regression", "trees", "-o", "out/model.json"),
    "counters import": ("counters", "import", "perf.csv", "--from", "perf", "-o", "out/x.csv"),
    "describe": ("describe", "long.toml"),
}
SIGNALS = {
    signal.SIGINT: tuple(COMMANDS),
    signal.SIGTERM: ("simulate", "tasks schedule", "calibrate"),
    signal.SIGHUP: ("simulate",),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the commands read."""
    folder = tmp_path_factory.mktemp("signals")
    (folder / "endless.toml").write_text(ENDLESS)
    (folder / "huge.csv").write_text(HUGE)
    (folder / "perf.csv").write_text(COUNTS)
    steps = STEP * (DESCRIPTION_BYTES_MAX // len(STEP) - 10)
    (folder / "long.toml").write_text(f'[[threads]]\nname = "t"\nbody = [{steps}]\n')
    return folder


def cpu_s(process: "subprocess.Popen[bytes]") -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    assert fields[0] != "Z", "it has ended before it was told to"
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(
    ("number", "what"), [(number, what) for number, all_ in SIGNALS.items() for what in all_]
)
def test_m13_a_signal_ends_a_command_soon(inputs: Path, tmp_path: Path, number: int, what: str) -> None:
    (tmp_path / "out").mkdir()
    for file in inputs.iterdir():
        (tmp_path / file.name).symlink_to(file)
    path = os.pathsep.join(
        str(Path(each).resolve()) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep)
    )
    said = tmp_path / "said"
    with said.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "ampsched", *COMMANDS[what]],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
    while cpu_s(process) < STARTED_S:
        time.sleep(0.02)
    before_s = cpu_s(process)
    process.send_signal(number)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert (process.returncode, said.read_bytes()) == (128 + number, b"")
    assert usage.ru_utime + usage.ru_stime - before_s < END_CPU_S
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


LOSING = """
import os, signal, sys, time
from ampsched.cli.signals import exit_code

def command():
    try:
        os.kill(os.getpid(), signal.{number})
        time.sleep(60)
    except BaseException:
        {then}
    time.sleep(60)

sys.exit(exit_code(command))
"""


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("then", ["pass", "raise ValueError from None"])
def test_a_signal_ends_a_command_though_a_library_loses_its_exception(number: int, then: str) -> None:
    program = LOSING.format(number=signal.Signals(number).name, then=then)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=300, check=False)
    assert (ended.returncode, ended.stderr) == (128 + number, b"")


def test_cleaning_up_after_a_signal_is_not_interrupted() -> None:
    program = LOSING.format(number="SIGINT", then='time.sleep(0.3); print("clean"); raise')
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=300, check=False)
    assert (ended.returncode, ended.stdout) == (128 + signal.SIGINT, b"clean\n")
