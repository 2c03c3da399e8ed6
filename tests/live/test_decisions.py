"""Whatever the kernel's CPUs decide at once, the interpreter that simulations use decides one after the other."""

import re
import subprocess
from pathlib import Path

import pytest

SECONDS = 0.15
QUANTUM_US = 4.0
"""Cores take turns so often that locks are contended."""
IDLE_US_MAX = {"cfs": 10_000, "colab": 1000, "eevdf": 1000, "a-dwrr": 10_000, "gts": 10_000}
"""That a core may idle beside a thread that its rules let it run. Seen are up to 301 us, but 1,049 under a-dwrr and
4,793 under gts, where idle cores look again every 4 ms for threads whose load has risen; and 1,220 and 3,221 us under
cfs, which balances every 4 ms: the cause is not known, and any change of timing moves it."""
RECORDS = re.compile(r"^\S+: (\d+) records explained$", re.MULTILINE)
IDLE_US = re.compile(r"^idled though .* at most: (\d+) us", re.MULTILINE)


@pytest.mark.parametrize("name", ["cfs", "colab", "eevdf", "a-dwrr", "gts"])
def test_every_decision_is_explained(in_guest, name: str, tmp_path: Path, loader: Path) -> None:
    out, seconds = tmp_path / "out", f"{SECONDS:g}"
    found = in_guest(seconds, name, script="guest_decisions.py", out=out, quantum_us=QUANTUM_US)[name]
    assert (found["code"], found["after"], found["complaints"]) == (0, "disabled", []), found
    replay = [loader, "replay", out / f"{name}.decisions"]
    explained = subprocess.run(replay, capture_output=True, text=True, check=False)
    print(explained.stdout, explained.stderr)
    assert explained.returncode == 0, explained.stderr
    count = RECORDS.search(explained.stdout)
    assert count is not None, explained.stdout
    assert int(count[1]) > 10_000
    idle_us = IDLE_US.search(explained.stdout)
    assert idle_us is not None
    assert int(idle_us[1]) < IDLE_US_MAX[name]
