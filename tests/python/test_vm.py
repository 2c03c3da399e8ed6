"""What virtual machines need of this computer: children that end with them, and lines of results."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ampsched.vm.results import results


def test_results_are_lines_of_json() -> None:
    assert results('begin\nRESULT {"a": 1}\nno RESULT 3\nRESULT [2.5]\n') == [{"a": 1}, [2.5]]
    assert results("") == []


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
        until = time.monotonic() + 300
        while Path(f"/proc/{child}").exists() and time.monotonic() < until:
            time.sleep(0.01)
    assert not Path(f"/proc/{child}").exists()
