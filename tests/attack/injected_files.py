"""Scenes of the recorder and of sweeps in which system calls fail.

They fail in the command's first thread: libraries' own threads, such as those of polars, hang where theirs fail.
"""

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import injection
from injection import Plan

AMPSCHED = (sys.executable, "-m", "ampsched")
Ran = subprocess.CompletedProcess[bytes]
ENDED_S = 120.0
RAN = "ran"
PANIC = re.compile(r"panicked at (?!\S*polars)")
TOLD = "error: polars cannot work here"
"""Panics of polars and of its libraries, which say so themselves, have to become this error of ours."""
PROGRAM = ("sh", "-c", f"echo once >>{RAN}; echo out; echo problem >&2; exit 3")
"""Says that it has run, and has its own streams and exit code."""
CODE = 3
SWEEP = (
    *AMPSCHED,
    "sweep",
    "-m",
    "2B2S",
    "-w",
    "sync-1",
    "-p",
    "cfs,colab",
    "--jobs",
    "2",
    "--format",
    "csv",
    "--out",
    "kept",
)


class Files:
    """A folder in which a command is run again and again."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.place, self.told = folder / "place", folder / "told"
        self.folder = folder

    def profile(self) -> tuple[dict[str, int], dict[str, int]]:
        """See `Scene`: a command that is refused tells what Python itself does first."""
        found = []
        for command, code in self.commands():
            self.empty()
            ran = self.run([*injection.traced(self.told, all_processes=False), *command])
            if ran.returncode != code:
                raise RuntimeError(f"without a fault it ends with {ran.returncode}: {ran.stderr[-300:]!r}")
            found.append(injection.counted(self.told))
        first, last = found
        return first, last

    def commands(self) -> list[tuple[Sequence[str], int]]:
        """A command that is refused before it begins, and what is tried; with their exit codes."""
        raise NotImplementedError

    def play(self, plan: Plan, dice: random.Random) -> str | None:
        """See `Scene`."""
        command, _ = self.commands()[1]
        self.empty()
        ran = self.run([*plan.before(self.told, all_processes=False), *command])
        said = ran.stderr.decode(errors="replace")
        if "Traceback" in said or (PANIC.search(said) and TOLD not in said):
            return f"it says {said[-600:]!r}"
        if ran.returncode < 0 or ran.returncode not in self.codes():
            return f"it ends with {ran.returncode}: {said[-300:]!r}"
        return self.judged(ran, "error: nothing can be said" if plan.silences(self.told) else said)

    def codes(self) -> set[int]:
        """How the command may end."""
        return {0, 1, 2}

    def judged(self, ran: Ran, said: str) -> str | None:
        """What is wrong in the folder afterwards."""
        raise NotImplementedError

    def empty(self) -> None:
        """Empties the folder."""
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir()
        self.told.unlink(missing_ok=True)

    def run(self, command: Sequence[str]) -> Ran:
        """Runs a command there."""
        # Nothing is compiled anew in the middle of what is tried.
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            command,
            cwd=self.place,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=ENDED_S,
        )

    def injected(self) -> bool:
        """See `Scene`."""
        return injection.was_injected(self.told)

    def close(self) -> None:
        """See `Scene`."""
        shutil.rmtree(self.folder, ignore_errors=True)


class Recorder(Files):
    """A program is recorded; what is recorded is not lost."""

    def commands(self) -> list[tuple[Sequence[str], int]]:
        """See `Files`."""
        record = (*AMPSCHED, "record", "-o", "new.ampr")
        return [((*record, "--limit-mb", "0", "--", *PROGRAM), 2), ((*record, "--", *PROGRAM), CODE)]

    def codes(self) -> set[int]:
        """See `Files`."""
        return {CODE, 1, 2}

    def judged(self, ran: Ran, said: str) -> str | None:
        """See `Files`."""
        code, proof = ran.returncode, self.place / RAN
        times = proof.read_text().count("once") if proof.exists() else 0
        saved = self.place / "new.ampr"
        if times > 1 or (code == CODE and times != 1):
            return f"it ends with {code}, and the program ran {times} times: {said[-300:]!r}"
        if code == CODE and saved.exists():
            return None if saved.read_bytes().startswith(b"AMPREC") else "what is saved is no recording"
        if "error" not in said:
            return f"it ends with {code} and says no error: {said[-300:]!r}"
        if times == 0 or saved.exists():
            return None
        parts = [entry for entry in self.place.iterdir() if entry.is_dir()]
        if not parts:
            return f"the program ran, but nothing is left of its recording: {said[-300:]!r}"
        recovered = self.run([*AMPSCHED, "record", "--recover", parts[0].name, "-o", "new.ampr"])
        if recovered.returncode != 0 or not saved.exists():
            return f"{said[-200:]!r}; recover ends with {recovered.returncode}: {recovered.stderr[-200:]!r}"
        return None


class Sweep(Files):
    """A sweep with two workers; the same sweep goes on afterwards."""

    expected = b""

    def commands(self) -> list[tuple[Sequence[str], int]]:
        """See `Files`."""
        return [((*SWEEP, "--metric", "none"), 2), (SWEEP, 0)]

    def profile(self) -> tuple[dict[str, int], dict[str, int]]:
        """See `Files`; keeps the results that nothing has disturbed."""
        found = super().profile()
        Sweep.expected = self.run(SWEEP).stdout
        return found

    def judged(self, ran: Ran, said: str) -> str | None:
        """See `Files`."""
        if ran.returncode == 0:
            return None if ran.stdout == self.expected else f"it ends with 0, but tells {ran.stdout!r}"
        if "error" not in said:
            return f"it ends with {ran.returncode} and says no error: {said[-300:]!r}"
        again = self.run(SWEEP)
        if again.returncode != 0:
            return f"{said[-200:]!r}; then it ends with {again.returncode}: {again.stderr[-300:]!r}"
        return None if again.stdout == self.expected else "after an error, the same sweep has other results"
