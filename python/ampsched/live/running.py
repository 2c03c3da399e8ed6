"""Running the programs of a mix at the same time, on some CPUs, possibly under something."""

import dataclasses
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ampsched._core import InputError
from ampsched.children import end, with_parent
from ampsched.files import temporary_folder
from ampsched.live.mix import MixProgram
from ampsched.live.program import error_of

RUNNER = Path(__file__).with_name("_runner.py")
LOG_TAIL = 300


def run_programs(
    programs: Sequence[MixProgram], cpus: Sequence[int], limit_s: float, under: Sequence[str] = ()
) -> tuple[float, ...]:
    """Starts programs when they are due and waits for all.

    Args:
        programs: What is run.
        cpus: CPUs that they may use.
        limit_s: Time in s after which what still runs is killed, which is an error.
        under: A command that runs the command behind it.

    Returns:
        Turnaround of each program in s.

    Raises:
        InputError: If a program cannot be run, fails, or does not end, or if ``under`` fails.
    """
    with temporary_folder("ampsched-live-") as folder:
        logs = [folder / f"{number}.log" for number in range(len(programs))]
        rows = [
            dataclasses.asdict(program) | {"log": str(log)}
            for program, log in zip(programs, logs, strict=True)
        ]
        spec, result = folder / "spec.json", folder / "times.json"
        spec.write_text(
            json.dumps({"programs": rows, "cpus": list(cpus), "limit_s": limit_s}), encoding="utf-8"
        )
        code, said = _wait_for([*under, sys.executable, "-I", "-S", str(RUNNER), str(spec), str(result)])
        if code != 0 or not result.exists():
            raise InputError(error_of(said))
        times = json.loads(result.read_text(encoding="utf-8"))
        for row, log in zip(times, logs, strict=True):
            _check_end(row, log)
        return tuple(row["turnaround_s"] for row in times)


def _wait_for(command: Sequence[str]) -> tuple[int, str]:
    """Exit code of a command, and what it has said of errors. Whatever ends this process ends the command, too."""
    with subprocess.Popen(  # noqa: S603
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=with_parent(signal.SIGTERM),
    ) as process:
        try:
            _, said = process.communicate()
        except BaseException:
            end(process)
            raise
        return process.returncode, said


def _check_end(row: dict[str, Any], log: Path) -> None:
    if not row["error"] and row["code"] in (0, None):  # none: it was ended because another one has failed
        return
    reason = row["error"] or f"exit code {row['code']}"
    said = log.read_text(encoding="utf-8", errors="replace").strip()[-LOG_TAIL:] if log.exists() else ""
    raise InputError(f"program {row['name']}: {reason}{f': {said}' if said else ''}")
