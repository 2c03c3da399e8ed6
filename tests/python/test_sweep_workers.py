"""Sweeps by several processes, by executors and on clusters: whoever dies, nothing is lost or counted twice."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import ROOT, command_path
from sweeping import contents, small
from tools.pages import blocks

import ampsched
from ampsched import InputError
from ampsched.sweeps import running
from ampsched.sweeps.folder import Folder


@pytest.fixture(scope="module")
def one_process(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What one process writes."""
    folder = tmp_path_factory.mktemp("one") / "results"
    small(folder)
    return contents(folder)


def test_bytes_do_not_depend_on_who_runs_it_in_what_order(
    tmp_path: Path, one_process: dict[str, bytes]
) -> None:
    small(tmp_path / "a", jobs=2)
    small(tmp_path / "b", executor=_Backwards())
    with ProcessPoolExecutor(2) as pool:
        small(tmp_path / "c", executor=pool)
    for folder in "abc":
        assert contents(tmp_path / folder) == one_process


class _Backwards(Executor):
    """Runs what it is given last at first, when somebody waits."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._todo: list[Any] = []

    def submit(self, function: Any, /, *arguments: Any, **more: Any) -> Future[Any]:  # type: ignore[override]
        future: Future[Any] = Future()
        self._todo.append((future, function, arguments))
        self._pool.submit(self._run)
        return future

    def _run(self) -> None:
        time.sleep(0.02)
        future, function, arguments = self._todo.pop()
        future.set_result(function(*arguments))


def test_a_killed_worker_loses_nothing(
    tmp_path: Path, one_process: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    once = tmp_path / "killed"
    monkeypatch.setattr(running, "simulate", _Deadly(str(once)))
    found = small(tmp_path / "r", jobs=2)
    assert once.exists(), "no worker was killed"
    assert found.frame["key"].n_unique() == found.frame.height == 48
    assert contents(tmp_path / "r") == one_process


class _Deadly:
    """The first worker that gets a chunk is killed."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __call__(self, *arguments: Any) -> Any:
        from ampsched.sweeps.work import simulate

        try:
            os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return simulate(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)
        return None


def test_workers_that_always_die_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "simulate", _dies)
    with pytest.raises(InputError, match="have died 3 times"):
        small(tmp_path / "r", jobs=2)


def _dies(*_arguments: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


WHAT: dict[str, Any] = {
    "machine": "2B2S",
    "workload": "comm-1",
    "policies": ["cfs", "colab:decay=0.5..1.0:40"],
    "repeat": 2,
}
TOTAL = 41 * 2 * 2
"""Some tenths of a second of work."""
SWEEP = [
    "-m",
    WHAT["machine"],
    "-w",
    WHAT["workload"],
    "-p",
    ",".join(WHAT["policies"]),
    "--repeat",
    "2",
    "--jobs",
    "2",
]


def started(folder: Path) -> subprocess.Popen[str]:
    """The command, when it has begun to keep results."""
    command = [command_path(), "sweep", *SWEEP, "--out", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not list(folder.glob("added/*.parquet")):
        time.sleep(0.005)
    return process


def test_a_killed_coordinator_goes_on_and_its_workers_end(tmp_path: Path) -> None:
    process = started(tmp_path / "r")
    workers = _children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = len(Folder(tmp_path / "r").keys())
    assert 0 < kept < TOTAL, "it was killed too early or too late for this test"
    assert len(workers) >= 2
    _wait_for_the_end_of(workers)
    again = ampsched.sweep(**WHAT, folder=tmp_path / "r", jobs=1)
    assert again.simulated == TOTAL - kept
    assert again.frame["key"].n_unique() == again.frame.height == TOTAL
    ampsched.sweep(**WHAT, folder=tmp_path / "one", jobs=1)
    assert contents(tmp_path / "r") == contents(tmp_path / "one")


def test_ctrl_c_keeps_what_is_done_and_says_so(tmp_path: Path) -> None:
    process = started(tmp_path / "r")
    workers = _children(process.pid)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert "stopped: what is done is in" in err
    assert "Traceback" not in err
    assert 0 < len(Folder(tmp_path / "r").keys()) < TOTAL
    _wait_for_the_end_of(workers)


@pytest.mark.parametrize("own", [True, False])
def test_what_is_taken_back_fails_in_no_executor(own: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Killed workers' futures are ended by their executor, which fails at cancelled ones; others are cancelled."""
    with (
        contextlib.suppress(KeyboardInterrupt),
        running.workers(1) if own else ThreadPoolExecutor(1) as executor,
    ):
        futures = [executor.submit(time.sleep, 0.01) for _ in range(100)]
        futures[0].result()
        running._take_back(executor, futures)
        raise KeyboardInterrupt
    assert not caplog.records
    assert sum(each.cancelled() for each in futures) >= (0 if own else 90)


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in text.split()]


def _wait_for_the_end_of(pids: Sequence[int]) -> None:
    """Waits until none of them runs; the helpers of multiprocessing end as well."""
    end = time.monotonic() + 300
    while alive := [pid for pid in pids if _runs(pid)]:
        assert time.monotonic() < end, f"still there: {alive}"
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_python_policies_and_machines_as_objects_are_run(tmp_path: Path) -> None:
    class Mine(ampsched.Policy):
        base = "cfs"

    machine = ampsched.Catalog.shipped().machine("2B2S")
    found = ampsched.sweep(machine, "cpu-bound", ["cfs", Mine], repeat=3, jobs=2)
    assert found.ranking()["h_antt_change"].to_list() == [0.0, 0.0]
    with pytest.raises(InputError, match="a policy is a text or a subclass"):
        ampsched.sweep(machine, "cpu-bound", [Mine()])
    with pytest.raises(InputError, match="machines and workloads are names or files"):
        ampsched.sweep(machine, "cpu-bound", "cfs", executor=ThreadPoolExecutor(1))


def test_dask_loses_nothing_if_a_worker_is_killed(tmp_path: Path, one_process: dict[str, bytes]) -> None:
    from distributed import Client, LocalCluster

    def pids() -> list[int]:
        return list(client.run(os.getpid).values())

    how = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    with LocalCluster(**how) as cluster, Client(cluster) as client:
        before = pids()
        killed: list[int] = []

        def kill_one(done: int, _all: int) -> None:
            if not killed and done:
                killed.append(before[0])
                os.kill(before[0], signal.SIGKILL)

        found = small(tmp_path / "r", executor=client.get_executor(), jobs=2, progress=kill_one)
    assert killed, "no worker was killed"
    assert found.frame["key"].n_unique() == found.frame.height == 48
    assert contents(tmp_path / "r") == one_process


def test_the_snakefile_of_the_how_to_page_makes_what_it_says(tmp_path: Path) -> None:
    """By Snakemake if it is there; it is no dependency, as it wants older libraries than ours. Else by its commands."""
    page = (ROOT / "docs/howto/sweep-with-snakemake.md").read_text()
    (text,) = [block.body for block in blocks(page) if block.title == "Snakefile"]
    assert len(text.splitlines()) == 20
    (tmp_path / "Snakefile").write_text(text)
    if shutil.which("snakemake"):
        subprocess.run(["snakemake", "--cores", "2"], cwd=tmp_path, check=True, capture_output=True)
    else:
        head = text.partition("rule all")[0]
        names: dict[str, Any] = {}
        exec(head, names)  # its constants
        names["threads"] = 1
        names["output"] = SimpleNamespace(json="summary.json", plot="decay.svg")
        names["params"] = SimpleNamespace(machines=",".join(names["MACHINES"]))
        shells = re.findall(r"shell:\n((?: {8}\".*\n)+)", text)
        of_machine, of_all = (eval(f"({shell})") for shell in shells)
        for machine in names["MACHINES"]:
            _shell(of_machine.format(**names, wildcards=SimpleNamespace(machine=machine)), tmp_path)
        _shell(of_all.format(**names), tmp_path)
    found = json.loads((tmp_path / "summary.json").read_text())
    assert found["simulated"] == 0
    assert {row["machine"] for row in found["simulations"]} == {"2B2S", "2B4S"}
    assert (tmp_path / "decay.svg").exists()


def _shell(command: str, folder: Path) -> None:
    path = os.pathsep.join([str(Path(command_path()).parent), os.environ["PATH"]])
    subprocess.run(
        command, shell=True, cwd=folder, check=True, capture_output=True, env={**os.environ, "PATH": path}
    )
