"""Scenes of sessions, guardians and `restore` in which system calls fail."""

import os
import random
import shutil
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import injection
from injection import Plan
from trial import ENDED_S, POLICIES, Process, Trial, guardian_of, kill, until

VICTIM = """
import threading, time
def work():
    while True:
        end = time.thread_time() + 0.0001
        while time.thread_time() < end: pass
        time.sleep(0.1)
for _ in range(3): threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
while True:
    threading.Thread(target=time.sleep, args=(0.05,), daemon=True).start()
    time.sleep(0.3)
"""
"""Threads that stay, and some that come and go. They take little, as many scenes are played side by side, and reading
the time of a thread is a system call."""

GRACE_S = 0.2
"""How long a policy has to touch somebody."""
LEFT = {0, 1, 2, 4, 127, 128 + signal.SIGTERM}
"""How a session or `restore` may end: 127 is said by the loader, whose files cannot be read."""
WRONG_WORDS = ("panicked", "overflow", "unreachable", "fatal runtime error")


class Live:
    """Threads that are scheduled again and again."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.told = folder / "told"
        self.trial = Trial(program, int(folder.name.rsplit("-", 1)[1]), 0, VICTIM)

    def profile(self) -> tuple[dict[str, int], dict[str, int]]:
        """See `Scene`: each policy once."""
        most: dict[str, int] = {}
        for policy in POLICIES:
            self.told.unlink(missing_ok=True)
            wrong = self.scene(policy, injection.traced(self.told, all_processes=True), GRACE_S)
            if wrong:
                raise RuntimeError(f"without a fault: {wrong}")
            for call, number in injection.counted(self.told).items():
                most[call] = max(number, most.get(call, 0))
        return {}, most

    def play(self, plan: Plan, dice: random.Random) -> str | None:
        """See `Scene`."""
        self.told.unlink(missing_ok=True)
        wrapper = plan.before(self.told, all_processes=True)
        return self.scene(dice.choice(POLICIES), wrapper, dice.uniform(0, GRACE_S))

    def injected(self) -> bool:
        """See `Scene`."""
        return injection.was_injected(self.told)

    def close(self) -> None:
        """See `Scene`."""
        self.trial.clean_up()

    def scene(self, policy: str, wrapper: Sequence[str], grace_s: float) -> str | None:
        """Plays it in an empty folder; what was wrong in the end."""
        trial = self.trial
        trial.output.write_bytes(b"")
        before = len(trial.processes)
        try:
            code = self.act(policy, wrapper, grace_s)
            return self.judged(code) if not isinstance(code, str) else code
        finally:
            for process in trial.processes[before:]:
                kill(process.pid)
                process.bury()
            del trial.processes[before:]
            for entry in os.scandir(trial.folder):
                shutil.rmtree(entry) if entry.is_dir(follow_symlinks=False) else Path(entry).unlink()

    def act(self, policy: str, wrapper: Sequence[str], grace_s: float) -> int | str | None:
        """What happens; the exit code of who answers for it, or what was wrong at once."""
        raise NotImplementedError

    def started(self, policy: str, wrapper: Sequence[str], grace_s: float) -> Process:
        """A session that has begun, or has ended."""
        trial = self.trial
        session = trial.begin(policy, wrapper)
        status = trial.folder / "status.json"
        until(lambda: status.exists() or session.poll() is not None, ENDED_S)
        time.sleep(grace_s)
        return session

    def judged(self, code: int | None) -> str | None:
        """What is wrong after somebody has ended with a code; nobody, if there is none."""
        trial = self.trial
        said = trial.said()
        if any(word in said for word in WRONG_WORDS):
            return f"it says {said[-400:]!r}"
        if code is not None and code not in LEFT:
            return f"it ends with {code}: {said[-300:]!r}"
        left = trial.untouched(0.05)
        if left is None:
            return None
        if code == 0 or (code is not None and "all put back" in said):
            return f"it ends with {code} and says {said[-200:]!r}, but {left}"
        told, what = trial.restore()
        left = trial.untouched(1.0)
        if told != 0 or left:
            return f"{said[-200:]!r}; then restore ends with {told}: {what[-200:]!r}; {left or 'nothing is left'}"
        return None

    def wait_for_guardian(self, guardian: int | None) -> str | None:
        """Until the guardian has ended."""
        if guardian and not until(lambda: not Path(f"/proc/{guardian}").exists(), ENDED_S):
            kill(guardian)
            return f"the guardian has not ended after {ENDED_S:.0f} s: {self.trial.said()[-300:]!r}"
        return None


class Session(Live):
    """Somebody ends a session in an orderly way."""

    def act(self, policy: str, wrapper: Sequence[str], grace_s: float) -> int | str | None:
        """See `Live`."""
        session = self.started(policy, wrapper, grace_s)
        guardian = guardian_of(session)
        kill(session.pid, signal.SIGTERM)
        return self.trial.end(session) or self.wait_for_guardian(guardian) or session.returncode


class Guardian(Live):
    """A session is killed, so that its guardian puts back."""

    def act(self, policy: str, wrapper: Sequence[str], grace_s: float) -> int | str | None:
        """See `Live`."""
        session = self.started(policy, wrapper, grace_s)
        guardian, ended = guardian_of(session), session.poll()
        kill(session.pid)
        wrong = self.trial.end(session) or self.wait_for_guardian(guardian)
        return wrong or (session.returncode if ended is not None else None)


class Restore(Live):
    """Session and guardian are killed, so that a user restores."""

    def act(self, policy: str, wrapper: Sequence[str], grace_s: float) -> int | str | None:
        """See `Live`."""
        trial = self.trial
        session = self.started(policy, (), grace_s)
        # A session that still runs starts another guardian.
        kill(session.pid, signal.SIGSTOP)
        for pid in (guardian_of(session), session.pid):
            kill(pid)
        if wrong := trial.end(session):
            return wrong
        command = [*wrapper, str(trial.program), "restore", f"--run-dir={trial.folder}"]
        with trial.output.open("ab") as output:
            restoring = trial.start_process(*command, output=output)
        return trial.end(restoring) or restoring.returncode
