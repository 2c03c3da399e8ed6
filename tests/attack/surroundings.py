"""Every command in odd surroundings: limits of resources, other users, other namespaces, odd names, two at once.

Whatever the surroundings, a command works or says in a line what is wrong: no traceback, no panic, no signal, no hang.
Each case follows from the seed and its number. Namespaces and other users need root.
"""

import argparse
import os
import random
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import workers
from injected_files import AMPSCHED
from progress import Progress
from workers import Done, Failure

ENDED_S = 300.0
NOBODY = 65534
USUAL, CODES = frozenset({0}), frozenset({0, 1, 2, 4})
"""How a command may end, usually and elsewhere; 4 says that something was not put back."""
WRONG_WORDS = (b"Traceback", b"panicked", b"RecursionError", b"fatal runtime error", b"Segmentation")
BEGUN_NOT = (b"Fatal Python error", b"error while loading shared libraries", b"can't open file", b"<frozen ")
"""What the loader and an interpreter say that do not begin at all, and the wrappers of this file."""


@dataclass
class Case:
    """A command and what is odd about its surroundings."""

    command: list[bytes]
    wrapper: list[bytes] = field(default_factory=list)
    """Put before the command."""
    names: list[str] = field(default_factory=list)
    """What is odd, in words."""
    environment: dict[bytes, bytes] = field(default_factory=lambda: dict(os.environb))
    place: bytes = b"place"
    """The folder, within that of the case."""
    streams: dict[str, object] = field(default_factory=dict)
    twice: bool = False
    """Whether it is run twice at once."""
    codes: frozenset[int] = CODES
    """How it may end."""


Odd = Callable[[Case, random.Random], None]


def commands(program: Path) -> dict[str, list[bytes]]:
    """One command of each kind; each writes and reads in its own folder."""
    mine: dict[str, Sequence[str]] = {
        "describe": (*AMPSCHED, "describe", "2B2S"),
        "simulate": (*AMPSCHED, "simulate", "-m", "2B2S", "-w", "sync-1", "-p", "colab"),
        "compare": (
            *AMPSCHED,
            "compare",
            "-m",
            "2B2S",
            "-w",
            "sync-1",
            "-p",
            "cfs,colab",
            "--html",
            "page.html",
        ),
        "trace": (*AMPSCHED, "simulate", "-m", "2B2S", "-w", "sync-1", "-p", "cfs", "--trace", "trace"),
        "sweep": (*AMPSCHED, "sweep", "-m", "2B2S", "-w", "sync-1", "-p", "cfs,colab", "--out", "kept"),
        "tasks": (*AMPSCHED, "tasks", "run", "fluidanimate:frames=2", "-p", "heft,cats"),
        "record": (*AMPSCHED, "record", "-o", "new.ampr", "--", "sh", "-c", "echo out"),
        "explain": (*AMPSCHED, "explain", "-m", "2B2S", "-w", "sync-1", "-p", "cfs", "-t", "0", "--at", "5"),
        "list": (*AMPSCHED, "list", "policies"),
        "live run": (str(program), "run", "--policy=hsp", *LIVE, "--run-dir=live", "--", "sleep", "0.05"),
        "live restore": (str(program), "restore", "--run-dir=live"),
        "live status": (str(program), "status", "--run-dir=live"),
    }
    return {name: [os.fsencode(word) for word in words] for name, words in mine.items()}


STACK_MIN = 128 << 10
"""With less, the kernel does not begin a program, or an interpreter dies at its first words."""
LIVE = ("--backend=daemon", "--degrade", "--ratio=2", "--big=0", "--little=1")


def limited(option: str, least: int, most: int) -> Odd:
    """A limit of a resource, small ones as likely as large ones."""

    def make(case: Case, dice: random.Random) -> None:
        limit = round(least * (most / least) ** dice.random())
        case.wrapper = [b"prlimit", f"--{option}={limit}".encode(), b"--", *case.wrapper]
        case.names.append(f"{option} at most {limit:,}")

    return make


def apart(*options: str) -> Odd:
    """A namespace of its own."""

    def make(case: Case, _dice: random.Random) -> None:
        case.wrapper = [b"unshare", *(os.fsencode(each) for each in options), b"--", *case.wrapper]
        case.names.append("unshare " + " ".join(options))

    return make


def as_nobody(case: Case, _dice: random.Random) -> None:
    """A user who owns nothing here."""
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
    case.wrapper = [*case.wrapper, *(os.fsencode(word) for word in drop)]
    case.names.append("as nobody")


def odd_bytes(dice: random.Random) -> bytes:
    """A name of bytes that mean nothing in particular."""
    some = [byte for byte in range(1, 256) if byte != ord("/")]
    return bytes(dice.choice(some) for _ in range(dice.randint(1, 12))) + b"x"


def odd_folder(case: Case, dice: random.Random) -> None:
    """A folder with an odd name."""
    case.place = odd_bytes(dice)
    case.names.append(f"in {case.place!r}")


def odd_argument(case: Case, dice: random.Random) -> None:
    """Odd bytes in place of an argument, or behind one."""
    begin = len(AMPSCHED) if case.command[0] == os.fsencode(AMPSCHED[0]) else 1
    at = dice.randrange(begin, len(case.command))
    word = dice.choice([odd_bytes(dice), case.command[at] + odd_bytes(dice), b""])
    case.command[at] = word
    case.names.append(f"argument {at} is {word!r}")


def odd_environment(case: Case, dice: random.Random) -> None:
    """A variable that means something to libraries."""
    name = dice.choice(
        [b"HOME", b"TMPDIR", b"LANG", b"LC_ALL", b"XDG_CACHE_HOME", b"TERM", b"COLUMNS", b"SHELL", b"TZ"]
    )
    value = dice.choice([odd_bytes(dice), b"", b"/nowhere/at/all", b"/dev/null", b"-1"])
    case.environment[name] = value
    case.names.append(f"{name.decode()}={value!r}")


def odd_streams(case: Case, dice: random.Random) -> None:
    """A stream that is closed, full or none."""
    number, name = dice.choice([(b"0", "stdin"), (b"1", "stdout"), (b"2", "stderr")])
    how = dice.choice([b"<&-", b"</dev/full" if number == b"0" else b">/dev/full"])
    case.wrapper = [b"sh", b"-c", b'exec "$@" ' + number + how, b"sh", *case.wrapper]
    case.names.append(f"{name} {how.decode()}")


def at_once(case: Case, _dice: random.Random) -> None:
    """The same command twice in the same folder."""
    case.twice = True
    case.names.append("two at once")


ODD: dict[str, Odd] = {
    "nofile": limited("nofile", 3, 300),
    "fsize": limited("fsize", 1, 10_000_000),
    "stack": limited("stack", STACK_MIN, 20_000_000),
    "core": limited("core", 1, 1_000_000),
    "memlock": limited("memlock", 1, 1_000_000),
    "sigpending": limited("sigpending", 1, 100),
    "msgqueue": limited("msgqueue", 1, 1_000),
    "rttime": limited("rttime", 1, 1_000_000),
    "nobody": as_nobody,
    "mounts": apart("--mount"),
    "pids": apart("--pid", "--fork", "--mount-proc"),
    "pids alone": apart("--pid", "--fork"),
    "network": apart("--net"),
    "ipc": apart("--ipc", "--uts"),
    "cgroups": apart("--cgroup"),
    "users": apart("--user"),
    "root of users": apart("--user", "--map-root-user"),
    "folder": odd_folder,
    "argument": odd_argument,
    "environment": odd_environment,
    "streams": odd_streams,
    "two": at_once,
}


def case_of(program: Path, seed: int, number: int) -> tuple[str, Case]:
    """The case of a number: a command by turns, with one or two oddities."""
    dice = random.Random(f"{seed}-{number}")
    every = commands(program)
    name = sorted(every)[number % len(every)]
    case = Case(list(every[name]))
    for odd in dice.sample(sorted(ODD), dice.choice([1, 1, 2])):
        ODD[odd](case, dice)
    return name, case


def played(case: Case, folder: Path) -> str | None:
    """Runs a case in an empty folder; what was wrong."""
    place = os.path.join(os.fsencode(folder), case.place)
    os.makedirs(place)
    folder.chmod(0o777)
    os.chmod(place, 0o777)
    command = [*case.wrapper, *case.command]
    pipe = subprocess.PIPE
    processes = [
        subprocess.Popen(
            command, cwd=place, env=case.environment, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe
        )
        for _ in range(1 + case.twice)
    ]
    for process in processes:
        try:
            _, said = process.communicate(timeout=ENDED_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return f"it has not ended after {ENDED_S:.0f} s"
        if wrong := judged(case, process.returncode, said):
            return wrong
    return None


def judged(case: Case, code: int, said: bytes) -> str | None:
    """What is wrong with how a command has ended."""
    if any(words in said for words in BEGUN_NOT):
        return None
    if any(words in said for words in WRONG_WORDS):
        return f"it says {said[-500:]!r}"
    if code not in case.codes and not (case.wrapper and code in (126, 127)):
        return f"it ends with {code}: {said[-300:]!r}"
    heard = "stderr" not in " ".join(case.names)
    if code != 0 and heard and not said.strip():
        return f"it ends with {code} and says nothing"
    return None


def missing() -> str | None:
    """What is missing for surroundings here."""
    if os.geteuid() != 0:
        return "they need root"
    tools = [tool for tool in ("prlimit", "unshare", "setpriv") if not shutil.which(tool)]
    return f"they need {', '.join(tools)}" if tools else None


def run(program: Path, count: int, seed: int, jobs: int, out: Path, progress: Progress) -> Done:
    """So many cases, all commands by turns."""
    why = missing()
    if why:
        return Done(skipped=count, notes=[f"SKIPPED: {why}"])
    done, kinds = Done(), Counter[str]()

    def one(number: int) -> tuple[int, str, Case, str | None]:
        name, case = case_of(program, seed, number)
        folder = out / f"case-{number}"
        folder.mkdir(parents=True)
        try:
            return number, name, case, played(case, folder)
        except (OSError, ValueError) as error:
            return number, name, case, f"{type(error).__name__}: {error}"
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    # What cannot be done where nothing is odd would be right everywhere.
    for name, command in commands(program).items():
        folder = out / "usual"
        usual = frozenset({2}) if name == "live status" else USUAL  # there is no session
        if wrong := played(Case(command, codes=usual), folder):
            done.failures.append(
                Failure(f"{name} in usual surroundings: {wrong}", shlex.join(map(os.fsdecode, command)))
            )
        shutil.rmtree(folder, ignore_errors=True)
    with ThreadPoolExecutor(jobs + 1) as pool:
        for number, name, case, wrong in pool.map(one, range(count)):
            done.count += 1
            progress.add()
            kinds[name] += 1
            if wrong:
                repeat = f"python3 tests/attack/surroundings.py {program} {seed} {number}"
                done.failures.append(Failure(f"{name}, {', '.join(case.names)}: {wrong}", repeat))
    done.notes = [f"{name}: {number:,}" for name, number in sorted(kinds.items())]
    return done


def main() -> int:
    """Plays one case."""
    parser = argparse.ArgumentParser(description="Play a case of `make attack PARTS=surroundings` again.")
    parser.add_argument("program", type=Path)
    parser.add_argument("seed", type=int)
    parser.add_argument("number", type=int)
    chosen = parser.parse_args()
    name, case = case_of(chosen.program.resolve(), chosen.seed, chosen.number)
    print(name, case.names, [*case.wrapper, *case.command])
    folder = workers.ROOT / "out" / "attack" / "case"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    wrong = played(case, folder)
    print(wrong or "nothing was wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
