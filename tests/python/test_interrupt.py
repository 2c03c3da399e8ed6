"""SIGINT ends whatever is computed, at once."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars
import pytest

import ampsched
from ampsched import _core
from ampsched.execution import job_of
from ampsched.policy import PolicySpec
from ampsched.settings import RunSettings

PROMPT_S = 100.0
"""An interrupted call raises within half a second on a quiet computer; one that is not interrupted takes hours."""

LONG = """
[[threads]]
name = "t"
count = 3
body = [ { loop = 1000000000, body = [ { run_us = 20, profile = "fft" }, { sleep_us = 5 } ] } ]
"""
"""Billions of events."""

CALLS = {
    "simulate": "ampsched.simulate('2B2S', file)",
    "a Python policy without methods": "ampsched.simulate('2B2S', file, Rules)",
    "a Python policy with methods": "ampsched.simulate('2B2S', file, Hooks)",
    "compare": "ampsched.compare('2B2S', file, ['cfs', 'rr'], repeat=3, jobs=2)",
    "explain": "ampsched.explain('2B2S', file, thread='long/t.0', at_ms=3.5e6)",
    "a trace": "ampsched.simulate('2B2S', file, trace=os.devnull)",
    "an off-line schedule": "ampsched.run_tasks('swaptions:swaptions=100000', '1000x10,1000x4', 'dls')",
}

PROGRAM = """
import os
import time
import ampsched

class Rules(ampsched.Policy):
    pass

class Hooks(ampsched.Policy):
    events = ("blocking",)

    def on_event(self, view, event, plan):
        pass

file = {file!r}
print("begins", flush=True)
try:
    {call}
except KeyboardInterrupt:
    print("interrupted", flush=True)
    os._exit(0)
print("ended", flush=True)
"""


@pytest.mark.parametrize("what", CALLS)
def test_m13_an_interrupt_ends_it_soon(what: str, tmp_path: Path) -> None:
    file = tmp_path / "long.toml"
    file.write_text(LONG)
    program = PROGRAM.format(file=str(file), call=CALLS[what])
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begins\n"
        time.sleep(0.5)
        os.kill(child.pid, signal.SIGINT)
        try:
            said, _ = child.communicate(timeout=PROMPT_S)
        finally:
            child.kill()
    assert said == "interrupted\n"


def test_m13_more_processors_than_there_are_are_not_used() -> None:
    threads: list[int] = []

    def count() -> int:
        time.sleep(0.005)
        return len(os.listdir("/proc/self/task"))

    def progress(_done: int, _all: int) -> None:
        # Threads of the batch before are there for a moment, while they end.
        threads.append(min(count() for _ in range(3)))

    def compare(jobs: int) -> polars.DataFrame:
        threads.clear()
        mixes = ["sync-1", "single-fft"]
        result = ampsched.compare("2B2S", mixes, ["cfs", "rr"], repeat=20, jobs=jobs, progress=progress)
        return result.to_polars()

    first = compare(1)  # starts the threads of other libraries, too
    compare(1)
    before = max(threads)
    assert compare(100_000).equals(first)
    assert max(threads) < before + (os.cpu_count() or 1)


def test_m13_what_progress_raises_ends_a_batch(tmp_path: Path) -> None:
    def progress(_number: int) -> None:
        raise RuntimeError("enough")

    file = tmp_path / "long.toml"
    file.write_text(LONG)
    catalog, spec = ampsched.Catalog.shipped(), PolicySpec.of("cfs")
    jobs = [
        job_of(RunSettings(seed=1), catalog.machine("2B2S"), catalog.workload(mix), spec)
        for mix in ("single-fft", file)
    ]
    with pytest.raises(RuntimeError, match="enough"):
        _core.run_batch(jobs, 1, progress, _core.Compared())
