"""One trial of a live session: threads of its own, a session that schedules them, and what is still changed of them."""

import contextlib
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

POLICIES = ["hsp", "hfee", "prop-sp", "max-fair", "min-fair", "wash", "rr-amp", "gts", "equal-progress"]
"""What they touch between them: CPUs, nice values, frozen threads."""

VICTIM = """
import hashlib, signal, sys, threading, time
def work():
    while True:
        end = time.thread_time() + 0.0005
        while time.thread_time() < end: pass
        time.sleep(0.01)
def burn():
    while True: hashlib.pbkdf2_hmac("sha1", b"", b"", 20000)
def start(count, what, *arguments):
    for _ in range(count): threading.Thread(target=what, args=arguments, daemon=True).start()
born = 1
def storm(*_):
    global born
    born = 12
signal.signal(signal.SIGUSR1, lambda *_: start(60, time.sleep, 600))
signal.signal(signal.SIGUSR2, storm)
signal.signal(signal.SIGHUP, lambda *_: start(4, burn))
start(3, work)
print("ready", flush=True)
while True:
    start(born, time.sleep, 0.05)
    time.sleep(0.02)
"""
"""Threads that stay, and others that come and go. SIGUSR1: 60 more that stay; SIGUSR2: some hundred a second come and
go; SIGHUP: 4 that always want to run, which Python's lock does not keep them from."""

SCHEDULED = (sys.executable, "-S", "-c", VICTIM)
LOW = ("nice", "-n", "10")

READY_S, RESTORED_S, ENDED_S = 15.0, 8.0, 20.0
LONGEST_DELAY_S = 0.35
CPUS = ("--big=0", "--little=1"), ("--big=1", "--little=0")


@dataclass(frozen=True)
class State:
    """What a session may change of a thread."""

    cpus: frozenset[int]
    nice: int
    cgroups: str
    stopped: bool


def state_of(tid: int) -> State:
    """A thread as it is."""
    stat = Path(f"/proc/{tid}/stat").read_text().rsplit(")", 1)[1].split()
    cgroups = Path(f"/proc/{tid}/cgroup").read_text()
    return State(frozenset(os.sched_getaffinity(tid)), int(stat[16]), cgroups, stat[0] in "Tt")


def threads_of(pid: int) -> list[int]:
    """The threads of a process."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))
    return []


def children_of(pid: int) -> list[int]:
    """The processes that a process has started by its first thread."""
    with contextlib.suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def until(holds: Callable[[], bool], seconds: float) -> bool:
    """Waits for something; whether it came true."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def kill(pid: int | None, what: signal.Signals = signal.SIGKILL) -> None:
    """Sends a signal to a process that may have ended."""
    if pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, what)


def state_of_process(process: subprocess.Popen[bytes]) -> str:
    """Its state as one letter; one that has ended is there until it is buried."""
    return Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def wait_until_stopped(process: subprocess.Popen[bytes]) -> bool:
    """Waits until the kernel says that a process that was sent SIGSTOP is stopped; false if it takes too long."""
    return until(lambda: state_of_process(process) in "Tt", 5.0)


class Process(subprocess.Popen[bytes]):
    """A process whose number, which is also that of its group, nobody else gets before it is buried."""

    def poll(self) -> int | None:
        """Its exit code if it has ended."""
        if self.returncode is None:
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None:
                was_killed = ended.si_code != os.CLD_EXITED
                self.returncode = -ended.si_status if was_killed else ended.si_status
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end."""
        longest_s = math.inf if timeout is None else timeout
        if not until(lambda: self.poll() is not None, longest_s):
            raise subprocess.TimeoutExpired(self.args, longest_s)
        return self.returncode

    def instance(self) -> Path:
        """Where a session follows futexes, if its policy asks who waits for whom."""
        return Path(f"/sys/kernel/tracing/instances/ampsched-{self.pid}")

    def bury(self) -> None:
        """Waits for its end, removes what it has left in the tracer, and gives its number away."""
        self.wait(ENDED_S)
        with contextlib.suppress(OSError):
            self.instance().rmdir()
        os.waitpid(self.pid, 0)


class Trial:
    """Threads, a session of a policy for them, and where it writes."""

    def __init__(self, program: Path, number: int, seed: int, victim: str = VICTIM) -> None:
        self.program = program
        self.dice = random.Random(f"{seed}-{number}")
        self.folder, self.other_folder = (Path(tempfile.mkdtemp(prefix="ampsched-attack-")) for _ in range(2))
        self.name = f"ampsched-attack-{os.getpid()}-{number}"
        self.places = self.dice.choice(CPUS)
        self.output = self.other_folder.with_suffix(".said")
        self.processes: list[Process] = []
        self.threads = self.start_process(*LOW, *SCHEDULED[:-1], victim, output=subprocess.PIPE)
        self.victim = self.threads.pid
        assert self.threads.stdout
        self.threads.stdout.readline()
        self.before = state_of(self.victim)

    def start_process(self, *command: str, output: int | IO[bytes] | None = None) -> Process:
        """Starts something that ends with the trial."""
        errors = None if output == subprocess.PIPE else output
        process = Process(command, stdout=output, stderr=errors, start_new_session=True)
        self.processes.append(process)
        return process

    def clean_up(self) -> None:
        """Ends everything and puts back what is left."""
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGCONT)
                os.killpg(process.pid, signal.SIGKILL)
        try:
            for folder in (self.folder, self.other_folder):
                self.restore(folder)
            for process in self.processes:
                process.bury()
        finally:
            for folder in (self.folder, self.other_folder):
                shutil.rmtree(folder, ignore_errors=True)
            self.output.unlink(missing_ok=True)

    def command(self, folder: Path, policy: str, scope: tuple[str, ...]) -> list[str]:
        """The command of a session."""
        # Without --allow-dvfs, which only one session at a time can have.
        settings = ["--backend=daemon", "--degrade", "--ratio=2", *self.places, "--quiet"]
        policy = policy or self.dice.choice(POLICIES)
        where = f"--run-dir={folder}"
        return [str(self.program), "run", f"--policy={policy}", *settings, where, *scope]

    def begin(
        self,
        policy: str = "",
        wrapper: Sequence[str] = (),
        scope: tuple[str, ...] = (),
        folder: Path | None = None,
    ) -> Process:
        """Starts a session of that policy, or of any, for the trial's threads if no others are named."""
        scope = scope or (f"--pid={self.victim}",)
        command = [*wrapper, *self.command(folder or self.folder, policy, scope)]
        with self.output.open("ab") as output:
            return self.start_process(*command, output=output)

    def start(
        self,
        policy: str = "",
        wrapper: Sequence[str] = (),
        scope: tuple[str, ...] = (),
        folder: Path | None = None,
    ) -> Process:
        """The same, and waits until it runs and a while longer."""
        session = self.begin(policy, wrapper, scope, folder)
        status = (folder or self.folder) / "status.json"
        running = until(lambda: status.exists() or session.poll() is not None, READY_S)
        if not running or session.poll() is not None:
            raise RuntimeError(f"the session does not start: {self.said()[:300]}")
        self.wait()
        return session

    def wait(self, longest_s: float = LONGEST_DELAY_S) -> None:
        """A random while."""
        time.sleep(self.dice.uniform(0, longest_s))

    def said(self) -> str:
        """What sessions, and their guardians, have said."""
        return re.sub(r"\s+", " ", self.output.read_text(errors="replace"))

    def held_by_policy(self) -> set[int]:
        """The threads that the session says its policy holds back."""
        status = json.loads((self.folder / "status.json").read_text())
        return {thread["tid"] for thread in status["threads"] if thread["state"] == "held"}

    def end(self, session: Process) -> str | None:
        """Waits for a session's end; what is wrong with it."""
        try:
            session.wait(timeout=ENDED_S)
        except subprocess.TimeoutExpired:
            return f"the session has not ended after {ENDED_S:.0f} s: {self.said()[-300:]}"
        return None

    def restore(self, folder: Path | None = None) -> tuple[int, str]:
        """What a user does when nobody is left: its exit code and what it says.

        A process that a killed session had just begun may end a moment later; who is told so tries again.
        """
        end = time.monotonic() + RESTORED_S
        while True:
            code, said = self.restore_once(folder)
            if "another session runs" not in said or time.monotonic() > end:
                return code, said

    def restore_once(self, folder: Path | None) -> tuple[int, str]:
        """The same without patience."""
        command = [str(self.program), "restore", f"--run-dir={folder or self.folder}"]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdout=pipe, stderr=subprocess.STDOUT, text=True) as process:
            try:
                said, _ = process.communicate(timeout=ENDED_S)
            except subprocess.TimeoutExpired:
                where = [Path(f"/proc/{process.pid}/{file}").read_text() for file in ("syscall", "stat")]
                process.kill()
                raise RuntimeError(f"restore has not ended after {ENDED_S:.0f} s: {where}") from None
        return process.returncode, said

    def touched(self) -> str | None:
        """What is still changed of a thread, or has been inherited from one that was."""
        for tid in threads_of(self.victim):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                now = state_of(tid)
                if now != self.before:
                    return f"thread {tid} is {now}, not {self.before}: {self.said()[-300:]}"
        return None

    def traced(self) -> str | None:
        """What sessions that have ended have left in the kernel's tracer, where it costs every switch of threads."""
        for process in self.processes:
            instance = process.instance()
            if process.poll() is not None and instance.exists():
                return f"the tracer's instance {instance.name} is left: {self.said()[-300:]!r}"
        return None

    def changed(self) -> str | None:
        """What is not as it was."""
        return self.touched() or self.traced()

    def untouched(self, seconds: float = RESTORED_S) -> str | None:
        """Waits until all is as it was; else what is not."""
        return None if until(lambda: self.changed() is None, seconds) else self.changed()

    def restored(self) -> str | None:
        """Whether `restore` puts back what is left, once whoever is at it has ended; what is not."""
        if self.untouched(1.0) is None:
            return None
        code, said = self.restore()
        left = self.untouched(1.0)
        return f"restore ends with {code} ({said[-200:]!r}), but {left}" if left else None


def guardian_of(session: Process) -> int | None:
    """A session's guardian."""
    for child in children_of(session.pid):
        with contextlib.suppress(OSError):
            if b"guardian" in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0"):
                return child
    return None
