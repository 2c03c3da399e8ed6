"""Faults at single system calls: which call of which process fails, when, and with what error (inject.c)."""

import collections
import errno
import functools
import random
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import workers

FILE = ("ENOENT", "EACCES", "EPERM", "EIO", "ENOMEM", "EMFILE", "ENFILE", "ELOOP", "ENOSPC", "EROFS", "EINTR")
OPEN_FILE = ("EIO", "ENOMEM", "EINTR", "ESTALE")
WRITTEN = ("EIO", "ENOSPC", "EDQUOT", "EFBIG", "EINTR", "EPIPE")
THREAD = ("EPERM", "EACCES", "EINVAL", "EINTR")

ERRORS: dict[str, Sequence[str]] = {
    **dict.fromkeys(
        ["openat", "open", "unlink", "unlinkat", "rename", "renameat", "renameat2", "rmdir"], FILE
    ),
    **dict.fromkeys(
        ["mkdir", "mkdirat", "symlink", "symlinkat", "link", "linkat", "chmod", "fchmodat"], FILE
    ),
    **dict.fromkeys(["statx", "stat", "lstat", "newfstatat", "access", "faccessat2", "readlink"], FILE),
    **dict.fromkeys(
        ["read", "pread64", "readv", "getdents64", "lseek", "fstat", "fcntl", "flock"], OPEN_FILE
    ),
    **dict.fromkeys(["write", "pwrite64", "writev", "ftruncate", "fallocate", "fsync", "fdatasync"], WRITTEN),
    **dict.fromkeys(["sched_setaffinity", "sched_getaffinity", "setpriority", "getpriority"], THREAD),
    **dict.fromkeys(["sched_setattr", "sched_getattr", "sched_setscheduler", "prlimit64", "prctl"], THREAD),
    **dict.fromkeys(["kill", "tgkill", "pidfd_open", "pidfd_send_signal", "wait4", "waitid"], THREAD),
    **dict.fromkeys(["clone", "clone3", "vfork", "fork"], ("EAGAIN", "ENOMEM")),
    **dict.fromkeys(
        ["socket", "socketpair", "pipe2", "eventfd2", "epoll_create1"], ("EMFILE", "ENFILE", "ENOMEM")
    ),
    **dict.fromkeys(
        ["sendto", "recvfrom", "sendmsg", "recvmsg", "ppoll", "poll", "epoll_wait"], ("EINTR", "ENOMEM")
    ),
    **dict.fromkeys(["close", "dup", "dup2", "dup3"], ("EINTR",)),
    **dict.fromkeys(["memfd_create", "perf_event_open", "bpf"], ("EPERM", "EMFILE", "ENOMEM", "ENOSYS")),
    **dict.fromkeys(
        ["mount", "umount2", "unshare", "setns", "chdir", "getcwd"], ("EPERM", "EACCES", "ENOENT", "EIO")
    ),
    **dict.fromkeys(["getrandom", "uname", "sysinfo", "timerfd_create"], ("EINTR", "EPERM", "ENOSYS")),
}
"""What each call may fail with, by its page of the Linux manual and by sandboxes, which forbid what they like.

Calls for memory, of signals, locks and clocks are left out: if these fail, C's and Rust's own libraries end a process.
So are lies: that a thread does not exist which does, or a file is not open which is.
"""

LASTING_SHARE = 0.3
"""How often a call fails from then on, and not once."""

SAYING = ("write", "writev")
"""Calls by which one says what is wrong."""

CALL = re.compile(rb"^(\d* *)(\w+)\(", re.MULTILINE)
INJECTED = b"(INJECTED)"
FAILED = re.compile(rb"\(INJECTED\) (\d+)")
OUTPUTS = {b"1", b"2"}
"""Descriptors of the output and of errors."""


@dataclass(frozen=True)
class Plan:
    """The `number`-th call of that name of each thread fails; if it lasts, all later ones do, too."""

    call: str
    number: int
    error: str
    lasting: bool

    def __str__(self) -> str:
        return f"{self.call},{self.number},{self.error},{'lasting' if self.lasting else 'once'}"

    def silences(self, told: Path) -> bool:
        """Whether nothing could be said any more: at all, or because nobody reads the output (files are named)."""
        if self.call not in SAYING or self.lasting:
            return self.call in SAYING
        failed = FAILED.findall(told.read_bytes()) if told.exists() else []
        return self.error == "EPIPE" and not OUTPUTS.isdisjoint(failed)

    def before(self, told: Path, all_processes: bool) -> list[str]:
        """The command that lets calls of the first thread of the command behind it fail, or of all that it starts."""
        call, number, error, how = str(self).split(",")
        whose = "each" if all_processes else "first"
        return [str(injector()), call, number, str(getattr(errno, error)), how, whose, str(told)]


def plan_of(text: str) -> Plan:
    """The plan that is written so.

    Raises:
        ValueError: It is none.
    """
    call, number, error, how = text.split(",")
    return Plan(call, int(number), error, how == "lasting")


def missing() -> str | None:
    """What is missing for injections here."""
    for tool, package in {"strace": "strace", "cc": "gcc"}.items():
        if not shutil.which(tool):
            return f"{tool} is missing: apt install {package}"
    return None


@functools.cache
def injector() -> Path:
    """The program that lets calls fail, compiled for the calls of this architecture."""
    folder = workers.ROOT / "out" / "attack" / "injector"
    folder.mkdir(parents=True, exist_ok=True)
    rows = [f'#ifdef __NR_{call}\n{{"{call}", __NR_{call}}},\n#endif\n' for call in ERRORS]
    (folder / "calls.h").write_text("".join(rows))
    source, program = Path(__file__).with_name("inject.c"), folder / "inject"
    command = ["cc", "-O1", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*command, f"-I{folder}", "-o", program, source], check=True)
    return program


def traced(told: Path, all_processes: bool) -> list[str]:
    """The command that tells the calls that may fail, of the first thread of the command behind it, or of all."""
    # -DDD: the tracer is nobody's child, so that what is started is our own child and signals reach it alone.
    follow = ["-f", "--seccomp-bpf"] if all_processes else []
    # A question mark: a call that an architecture lacks is no error.
    calls = ",".join(f"?{call}" for call in ERRORS)
    return ["strace", "-DDD", *follow, "-qqq", "-o", str(told), "-e", f"trace={calls}"]


def counted(told: Path) -> dict[str, int]:
    """How often each call was made by the thread that has made it most often."""
    numbers = collections.Counter(CALL.findall(told.read_bytes()))
    most: dict[str, int] = {}
    for (_, call), number in numbers.items():
        most[call.decode()] = max(number, most.get(call.decode(), 0))
    return most


def chosen(dice: random.Random, first: dict[str, int], last: dict[str, int]) -> Plan:
    """Any call with any error: each name is as likely as others, and early numbers are as likely as late ones.

    Args:
        first: How often each call has been made before what is tried begins.
        last: How often it is made in all.
    """
    call = dice.choice(sorted(call for call in last if call in ERRORS and last[call] > first.get(call, 0)))
    begin = first.get(call, 0)
    span = last[call] - begin
    number = begin + max(1, round(span ** dice.random()))
    error = dice.choice(ERRORS[call])
    # Nothing is interrupted for ever.
    return Plan(call, number, error, error != "EINTR" and dice.random() < LASTING_SHARE)


def was_injected(told: Path) -> bool:
    """Whether a call has failed."""
    return told.exists() and INJECTED in told.read_bytes()
