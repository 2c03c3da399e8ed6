"""Runs the programs of a mix at the same time and measures them: ``python _runner.py SPEC RESULT``.

A file of its own that imports nothing of the package, so that what is scheduled together with the programs is as little
as possible. Every program is a process group of its own, which is an application for ``ampsched-live``.
"""

import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PRCTL = ctypes.CDLL(None).prctl


def run_all(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Starts all programs when they are due and waits until one fails or the limit; what is left is killed."""
    if spec["cpus"]:
        os.sched_setaffinity(0, spec["cpus"])
    rows = [
        {"name": row["name"], "turnaround_s": None, "code": None, "error": ""} for row in spec["programs"]
    ]
    waiting = sorted(range(len(rows)), key=lambda index: spec["programs"][index]["delay_s"])
    running: dict[int, subprocess.Popen[bytes]] = {}
    first_s = time.monotonic()
    selector = selectors.DefaultSelector()
    try:
        while waiting or running:
            now_s = time.monotonic() - first_s
            while waiting and spec["programs"][waiting[0]]["delay_s"] <= now_s:
                index = waiting.pop(0)
                _start(spec["programs"][index], rows[index], running, index, selector)
            if now_s > spec["limit_s"] or not (waiting or running) or any(map(_has_failed, rows)):
                break
            next_s = spec["programs"][waiting[0]]["delay_s"] if waiting else spec["limit_s"]
            for key, _ in selector.select(max(0.0, min(next_s, spec["limit_s"]) - now_s) + 0.001):
                _end(key, rows, running, spec, first_s, selector)
    finally:
        is_late = not any(map(_has_failed, rows))
        for index, process in running.items():
            if is_late:
                rows[index]["error"] = f"did not end within {spec['limit_s']:g} s"
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return rows


def _has_failed(row: dict[str, Any]) -> bool:
    return bool(row["error"] or row["code"])


def _end_with_parent() -> None:
    """Whatever ends this process ends the programs: PR_SET_PDEATHSIG of include/uapi/linux/prctl.h."""
    PRCTL(1, signal.SIGKILL)


def _start(
    program: dict[str, Any],
    row: dict[str, Any],
    running: dict[int, subprocess.Popen[bytes]],
    index: int,
    selector: selectors.BaseSelector,
) -> None:
    try:
        with Path(program["log"]).open("wb") as log:
            process = subprocess.Popen(  # noqa: S603
                program["command"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )
    except OSError as error:
        row["error"] = f"cannot be run: {error.strerror}"
        return
    running[index] = process
    selector.register(os.pidfd_open(process.pid), selectors.EVENT_READ, index)


def _end(
    key: selectors.SelectorKey,
    rows: list[dict[str, Any]],
    running: dict[int, subprocess.Popen[bytes]],
    spec: dict[str, Any],
    first_s: float,
    selector: selectors.BaseSelector,
) -> None:
    ended_s = time.monotonic() - first_s
    index: int = key.data
    selector.unregister(key.fileobj)
    os.close(key.fd)
    rows[index]["code"] = running.pop(index).wait()
    rows[index]["turnaround_s"] = ended_s - spec["programs"][index]["delay_s"]


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    result = run_all(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    Path(sys.argv[2]).write_text(json.dumps(result), encoding="utf-8")
