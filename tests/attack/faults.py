"""What befalls live sessions. A fault returns what was wrong afterwards, or none."""

import contextlib
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import mounts
from trial import (
    LOW,
    RESTORED_S,
    SCHEDULED,
    Process,
    Trial,
    children_of,
    guardian_of,
    kill,
    state_of,
    until,
    wait_until_stopped,
)

Fault = Callable[[Trial], str | None]

LAST_NUMBER = Path("/proc/sys/kernel/ns_last_pid")
ENDS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
TURNS_S = 30.0
"""Within which everybody whom a policy holds back in turns has had one many times over."""
STOPPED_S = 2.0
"""How long a session may be stopped before its guardian puts back."""


def stopped(trial: Trial) -> str | None:
    """Somebody ends the session in an orderly way."""
    session = trial.start()
    how = trial.dice.choice(ENDS)
    kill(session.pid, how)
    wrong = trial.end(session) or trial.untouched(0.5)
    if wrong is None and session.returncode != 128 + how:
        return f"it ends with {session.returncode}: {trial.said()[-200:]}"
    return wrong


def session_killed(trial: Trial) -> str | None:
    """The guardian puts everything back."""
    session = trial.start()
    kill(session.pid)
    return trial.end(session) or trial.untouched()


def start_killed(trial: Trial) -> str | None:
    """The session is killed while it begins, perhaps before it has a guardian."""
    session = trial.begin()
    trial.wait()
    kill(session.pid)
    return trial.end(session) or trial.restored()


def guardian_killed(trial: Trial) -> str | None:
    """The session gets another guardian, which is as good."""
    session = trial.start()
    kill(guardian_of(session))
    trial.wait()
    kill(session.pid, trial.dice.choice([signal.SIGTERM, signal.SIGKILL]))
    return trial.end(session) or trial.restored()


def both_killed(trial: Trial) -> str | None:
    """Nobody is left; the user restores."""
    session = trial.start()
    kill_both(trial, session)
    return trial.end(session) or trial.restored()


def kill_both(trial: Trial, session: Process) -> None:
    """Kills session and guardian, one after the other."""
    both = [guardian_of(session), session.pid]
    for pid in both if trial.dice.random() < 0.5 else both[::-1]:
        kill(pid)


def storm_killed(trial: Trial) -> str | None:
    """Both are killed while some hundred threads a second come and go: while the journal is written, or shortened."""
    session = trial.start()
    kill(trial.victim, signal.SIGUSR2)
    trial.wait(3.0)
    if trial.dice.random() < 0.5:
        kill(session.pid)
    else:
        kill_both(trial, session)
    return trial.end(session) or trial.restored()


def restoring_killed(trial: Trial) -> str | None:
    """Whoever puts back is killed at it: the session or its guardian, and then the user's command."""
    session = trial.start()
    guardian = guardian_of(session)
    kill(session.pid, trial.dice.choice([signal.SIGTERM, signal.SIGKILL]))
    trial.wait(0.03)
    kill(session.pid)
    kill(guardian)
    wrong = trial.end(session)
    command = [str(trial.program), "restore", f"--run-dir={trial.folder}"]
    restorer = trial.start_process(*command, output=subprocess.DEVNULL)
    trial.wait(0.03)
    restorer.kill()
    restorer.wait()
    return wrong or trial.restored()


def guardian_stopped(trial: Trial) -> str | None:
    """The session does not wait for a guardian that does nothing."""
    session = trial.start()
    kill(guardian_of(session), signal.SIGSTOP)
    kill(session.pid, signal.SIGTERM)
    return trial.end(session) or trial.untouched(0.5)


def session_stopped(trial: Trial) -> str | None:
    """A session that was stopped for a while goes on, or ends."""
    session = trial.start()
    kill(session.pid, signal.SIGSTOP)
    trial.wait()
    if trial.dice.random() < 0.5:
        kill(session.pid)
    else:
        kill(session.pid, signal.SIGCONT)
        kill(session.pid, signal.SIGTERM)
    return trial.end(session) or trial.untouched()


def session_stopped_for_long(trial: Trial) -> str | None:
    """What a session has touched is put back while it is stopped, and once more if it goes on."""
    session = trial.start()
    kill(session.pid, signal.SIGSTOP)
    if not until(lambda: "is stopped" in trial.said(), STOPPED_S + RESTORED_S):
        return f"nobody notices that it is stopped: {trial.said()[-200:]}"
    wrong = trial.untouched()
    kill(session.pid, trial.dice.choice([signal.SIGCONT, signal.SIGKILL]))
    return wrong or trial.end(session) or trial.untouched()


def threads_killed(trial: Trial) -> str | None:
    """What is scheduled is killed: the session ends by itself."""
    session = trial.start()
    os.killpg(trial.victim, signal.SIGKILL)
    trial.threads.wait()
    return trial.end(session)


def command_wrapped(trial: Trial) -> str | None:
    """The session has started the threads itself. If they are killed it ends as they do; if it is killed they go on."""
    # Not by nice, which changes what a policy may have changed just before.
    session = trial.start(scope=("--", *SCHEDULED))
    trial.before = dataclasses.replace(trial.before, nice=os.getpriority(os.PRIO_PROCESS, 0))
    guardian = guardian_of(session)
    [trial.victim] = [child for child in children_of(session.pid) if child != guardian]
    command = os.pidfd_open(trial.victim)
    whose, how, code = trial.dice.choice(
        [
            (trial.victim, signal.SIGKILL, 128 + signal.SIGKILL),
            (session.pid, signal.SIGKILL, -signal.SIGKILL),
            (session.pid, signal.SIGTERM, 128 + signal.SIGTERM),
        ]
    )
    try:
        kill(whose, how)
        wrong = trial.end(session) or trial.restored()
        if wrong is None and session.returncode != code:
            return f"it ends with {session.returncode}, not {code}: {trial.said()[-200:]}"
        return wrong
    finally:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(command, signal.SIGKILL)
        os.close(command)


def overlapping(trial: Trial) -> str | None:
    """A second session for the same threads is refused, and can begin when the first has ended, however it has."""
    session = trial.start()
    guardian = guardian_of(session)
    other = trial.begin(folder=trial.other_folder)
    wrong = trial.end(other)
    if wrong is None and (other.returncode != 2 or "session of process" not in trial.said()):
        return f"the second ends with {other.returncode}: {trial.said()[-300:]}"
    how = trial.dice.choice(["orderly", "killed", "both killed"])
    if how == "both killed":
        kill_both(trial, session)
    else:
        kill(session.pid, signal.SIGTERM if how == "orderly" else signal.SIGKILL)
    wrong = wrong or trial.end(session) or (None if how == "both killed" else trial.untouched())
    if wrong:
        return wrong
    # As long as it is there, what the session had is not for others.
    until(lambda: not Path(f"/proc/{guardian}").exists(), RESTORED_S)
    # What nobody has put back is put back by it first, or it would take that for what was before.
    later = trial.start(folder=trial.other_folder)
    kill(later.pid, signal.SIGTERM)
    return trial.end(later) or trial.untouched(0.5)


def folder_removed(trial: Trial) -> str | None:
    """Somebody removes the folder with the journal: the session puts back before nobody else can."""
    session = trial.start()
    shutil.rmtree(trial.folder, ignore_errors=True)
    if trial.dice.random() < 0.5:
        kill(session.pid, signal.SIGTERM)
    return trial.end(session) or trial.untouched(0.5)


def rebooted(trial: Trial) -> str | None:
    """A journal of another start of the computer: numbers of threads mean others now."""
    session = trial.start("hsp")
    bound = until(lambda: trial.touched() is not None, RESTORED_S)
    # While it is stopped: left by a session that has ended, its journal could be put back by anybody's next session.
    kill(session.pid, signal.SIGSTOP)
    wait_until_stopped(session)
    kill(guardian_of(session))
    [journal] = trial.folder.glob("journal-*")
    heading, rest = journal.read_bytes().split(b"\n", 1)
    text = re.sub(rb'"boot":"[^"]*"', b'"boot":"another"', heading[9:])
    journal.write_bytes(b"%08x %s\n%s" % (zlib.crc32(text), text, rest))
    kill(session.pid)
    wrong = trial.end(session)
    code, said = trial.restore()
    if bound and trial.touched() is None:
        return "it touches threads of another start of the computer"
    if code != 0 or journal.exists():
        return f"restore ends with {code}: {said[-200:]}"
    return wrong


def number_reused(trial: Trial) -> str | None:
    """Another process has got the number of one that was scheduled, and just the CPUs that that one was given."""
    first = trial.start_process(*LOW, *SCHEDULED, output=subprocess.DEVNULL)
    everything = os.sched_getaffinity(0)
    session = trial.start("hsp", scope=(f"--pid={trial.victim}", f"--pid={first.pid}"))
    if not until(lambda: os.sched_getaffinity(first.pid) != everything, RESTORED_S):
        raise RuntimeError(f"nobody binds it: {trial.said()[-300:]}")
    given = os.sched_getaffinity(first.pid)
    # Meanwhile nobody starts threads, which would get that number.
    kill(trial.victim, signal.SIGSTOP)
    wait_until_stopped(trial.threads)
    first.kill()
    first.bury()
    trial.processes.remove(first)
    second = process_with(trial, first.pid)
    kill(trial.victim, signal.SIGCONT)
    if second is None:
        # Somebody else was faster.
        kill(session.pid)
        return trial.end(session) or trial.restored()
    os.sched_setaffinity(second, given)
    before = state_of(second)
    trial.wait()
    if trial.dice.random() < 0.5:
        kill_both(trial, session)
    else:
        kill(session.pid, trial.dice.choice([signal.SIGTERM, signal.SIGKILL]))
    wrong = trial.end(session) or trial.restored()
    now = state_of(second)
    return f"another process was {before} and is {now}" if now != before else wrong


def process_with(trial: Trial, number: int) -> int | None:
    """A process with a number, if nobody else gets it."""
    for _ in range(200):
        LAST_NUMBER.write_text(str(number - 1))
        process = trial.start_process("sleep", "600")
        if process.pid == number:
            return number
        process.kill()
        process.bury()
        trial.processes.remove(process)
    return None


def full_disk(trial: Trial) -> str | None:
    """The disk is full while threads are started, for longer than reserved space lasts, and perhaps not any more."""
    with mounts.small_disk(trial.folder, trial.dice.choice([64, 256])):
        session = trial.start("hsp")
        ballast = trial.folder / "ballast"
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            while file.write(b"\0" * 512):
                pass
        # Sixty threads are more than a page of a journal.
        for _ in range(2):
            kill(trial.victim, signal.SIGUSR1)
            time.sleep(0.3)
        trial.wait()
        if trial.dice.random() < 0.8:
            ballast.unlink()
            kill(trial.victim, signal.SIGUSR1)
            time.sleep(0.3)
        kill(session.pid, trial.dice.choice([signal.SIGTERM, signal.SIGKILL]))
        wrong = trial.end(session)
        ballast.unlink(missing_ok=True)
        return wrong or trial.restored()


def cgroup_vanished(trial: Trial) -> str | None:
    """The cgroup from which threads were taken to be held is gone when they are let go."""
    with mounts.own_cgroup(trial.name) as home:
        mounts.move(trial.victim, home)
        kill(trial.victim, signal.SIGHUP)
        session = trial.start(mounts.HOLDS)
        frozen = mounts.when_held(trial, session)
        is_gone = until(lambda: mounts.left_by(home), RESTORED_S)
        mounts.go_on(session)
        # Nobody is forgotten: whoever was held goes on, or the policy holds it back still, which has no longest wait.
        until(lambda: not mounts.frozen_still(trial.victim, frozen), TURNS_S)
        forgotten = mounts.frozen_still(trial.victim, frozen) - trial.held_by_policy()
        kill(session.pid, trial.dice.choice([signal.SIGTERM, signal.SIGKILL]))
        wrong = trial.end(session)
        free = until(lambda: not mounts.held(trial.victim), RESTORED_S)
        if is_gone and forgotten:
            return f"threads {forgotten} stay frozen while the session goes on"
        return wrong or (None if free else f"threads {mounts.held(trial.victim)} stay frozen")


def cgroup_read_only(trial: Trial) -> str | None:
    """Cgroups cannot be written any more when threads are let go; whoever says that all is put back must be right."""
    kill(trial.victim, signal.SIGHUP)
    session = trial.start(mounts.HOLDS, wrapper=("unshare", "--mount"))
    frozen = mounts.when_held(trial, session)
    while not mounts.make_read_only(session.pid):
        # It has been stopped while it had a file of a cgroup open.
        mounts.go_on(session)
        frozen = mounts.when_held(trial, session)
    kill(session.pid, signal.SIGTERM)
    mounts.go_on(session)
    wrong = trial.end(session)
    left = set(frozen) & set(mounts.held(trial.victim))
    if left and (session.returncode == 0 or "all put back" in trial.said()):
        return f"it ends with {session.returncode}, but holds {left}: {trial.said()[-200:]}"
    return wrong or trial.restored()


ALL: list[Fault] = [
    stopped,
    session_killed,
    start_killed,
    guardian_killed,
    both_killed,
    storm_killed,
    restoring_killed,
    guardian_stopped,
    session_stopped,
    session_stopped_for_long,
    threads_killed,
    command_wrapped,
    overlapping,
    folder_removed,
    rebooted,
    number_reused,
    full_disk,
    cgroup_vanished,
    cgroup_read_only,
]


def is_possible(fault: Fault) -> bool:
    """Whether this computer has what a fault needs."""
    if fault in (cgroup_vanished, cgroup_read_only):
        return mounts.FREEZER.exists()
    return fault is not number_reused or LAST_NUMBER.exists()
