"""One boot of a storm: a policy in a kernel on many cores, what it went through, and what should not have happened."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ampsched.vm.exact import Work, core_options, run
from ampsched_lab.shared.two_kinds import two_kinds

HERE = Path(__file__).parent
GUEST = HERE / "guest.sh"
MIPS = (200, 80)
"""Of big and little cores: half of the cores each."""
LIMIT_S = 7200.0
"""Of this computer's time per boot."""
PARKED = 20
"""Threads that only wait, which the session is to know."""
THIN = 120
"""Times as long as others are thin storms; THIN of guest.sh."""
PASSING = 3
"""Threads of a status that may be gone when it is read: those of the program that asks."""
ENDED_BY_TERM = 143
COMPLAINT = re.compile(r"WARNING|BUG|Oops|stall|lockup|hung|runnable task|Call Trace|error", re.IGNORECASE)
KNOWN = "NOHZ tick-stop error: local softirq work is pending"
"""Seen rarely, cause not found: docs/howto/run-a-policy-in-the-kernel.md, Limits."""
EPOCHS = re.compile(r" (\d+) threads, (\d+) epochs, (\d+) decisions")


@dataclass(frozen=True)
class Plan:
    """What a boot goes through.

    Attributes:
        seed: Of all that is drawn.
        cores: Half of them big.
        rounds: Storms, one after the other, beside those in which a CPU goes or comes back.
        ms: How long a storm goes on.
        pause_s: After each.
        gone: How often a CPU goes and comes back.
    """

    seed: int = 1
    cores: int = 16
    rounds: int = 4
    ms: int = 250
    pause_s: int = 200
    gone: int = 1

    @property
    def all_rounds(self) -> int:
        """With those in which a CPU goes or comes back."""
        return self.rounds + 4 * self.gone

    def words(self) -> list[str]:
        """Arguments of guest.sh."""
        return [str(number) for number in (self.seed, self.rounds, self.ms, self.pause_s, self.gone)]


@dataclass(frozen=True)
class Programs:
    """Programs that guests need: the loader, ``ampsched-live`` and the storm."""

    loader: Path
    live: Path
    storm: Path


@dataclass(frozen=True)
class Outcome:
    """What became of a policy in a kernel.

    Attributes:
        release: What the kernel calls itself.
        virtual_s: Time from power-on to the end, in the guest.
        policy_s: Of it, with the policy in the kernel.
        storm_s: Of it, in storms.
        thin_s: Of it, in thin ones.
        rounds: Storms.
        cpus: How often a CPU has gone or come back.
        counts: Events by kind.
        threads: That the session knew at the end, and that there were.
        seen: Threads that the session has had, its epochs and its decisions, since it was loaded last.
        noted: What the kernel has said that is known and harmless.
        faults: What should not have happened.
    """

    release: str = ""
    virtual_s: float = 0.0
    policy_s: float = 0.0
    storm_s: float = 0.0
    thin_s: float = 0.0
    rounds: int = 0
    cpus: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    threads: tuple[int, ...] = ()
    seen: tuple[int, ...] = ()
    noted: int = 0
    faults: tuple[str, ...] = ()

    @classmethod
    def load(cls, saved: dict[str, Any]) -> "Outcome":
        """What was saved as JSON."""
        values = {each.name: saved[each.name] for each in fields(cls)}
        tuples = {name: tuple(values[name]) for name in ("threads", "seen", "faults")}
        return cls(**{**values, **tuples})


def storm(
    folder: Path, programs: Programs, plan: Plan, kernel: str, policy: str, tell: Callable[[str], None]
) -> tuple[Outcome, str]:
    """Boots, and returns the outcome with all that guest and kernel have written.

    Args:
        folder: For the machine's file.
        programs: Of the guest.
        plan: What it goes through.
        kernel: Version that names it.
        policy: As on the command line of the loader.
        tell: Is told the guest's output as it comes.

    Raises:
        VmError: The machine cannot be booted.
    """
    exact = two_kinds(folder, f"{plan.cores}-cores", plan.cores, MIPS, kernel=kernel)
    files = [GUEST, programs.loader, programs.live, programs.storm]
    words = ["sh", *map(str, files), *plan.words(), *core_options(exact), "--", policy]
    done = run(exact, Work(words, files=files, cwd=Path("/tmp")), limit_s=LIMIT_S, echo=tell)
    outcome = read(done.output, plan)
    if done.code != 0:
        why = "stopped at its limit" if done.timed_out else f"exit code {done.code}"
        outcome = with_fault(outcome, f"the machine: {why}")
    return outcome, f"{done.output}\n--- console\n{done.console}"


def with_fault(outcome: Outcome, fault: str) -> Outcome:
    """The same with one more fault."""
    values = {each.name: getattr(outcome, each.name) for each in fields(outcome)}
    return Outcome(**{**values, "faults": (*outcome.faults, fault)})


def read(output: str, plan: Plan) -> Outcome:
    """What the guest has written, as an outcome."""
    said: dict[str, list[str]] = {}
    for line in output.splitlines():
        word, _, rest = line.partition(" ")
        said.setdefault(word, []).append(rest)
    rounds = [line.split(" ", 3) for line in said.get("round", [])]
    results = [json.loads(each[3]) for each in rounds if len(each) == 4 and each[3].startswith("{")]
    counts: Counter[str] = Counter()
    for each in results:
        counts.update({name: number for name, number in each.items() if name != "ms"})
    times_ms = [each["ms"] for each in results]

    def is_thin(ms: int) -> bool:
        return ms >= THIN * plan.ms

    # It is told since power-on; the policy's part begins with the boot's end, some seconds later.
    loaded = [float(rest) for rest in said.get("loaded", [])]
    ended = [float(rest) for rest in said.get("ended", [])]
    epochs = [found for line in said.get("said", []) if (found := EPOCHS.search(line))]
    log = said.get("log", [])
    return Outcome(
        release=(said.get("release") or [""])[0],
        virtual_s=(ended or loaded or [0.0])[-1],
        policy_s=round(ended[-1] - loaded[0], 2) if ended and loaded else 0.0,
        storm_s=round(sum(ms for ms in times_ms if not is_thin(ms)) / 1000, 3),
        thin_s=round(sum(ms for ms in times_ms if is_thin(ms)) / 1000, 3),
        rounds=len(rounds),
        cpus=len(said.get("cpu", [])),
        counts=dict(counts),
        threads=tuple(map(int, said["threads"][0].split())) if "threads" in said else (),
        seen=tuple(map(int, epochs[-1].groups())) if epochs else (),
        noted=sum(KNOWN in line for line in log),
        faults=tuple(_faults(said, rounds, plan)),
    )


def _faults(said: dict[str, list[str]], rounds: Sequence[list[str]], plan: Plan) -> Iterator[str]:
    yield from _round_faults(rounds, plan)
    yield from said.get("wrong", [])
    yield from _thread_faults(said.get("threads", []))
    yield from _end_faults(said)
    for line in said.get("log", []):
        if COMPLAINT.search(line) and KNOWN not in line:
            yield f"the kernel says: {line}"


def _round_faults(rounds: Sequence[list[str]], plan: Plan) -> Iterator[str]:
    for number, code, state, *_ in rounds:
        if code != "0":
            yield f"round {number}: the storm ended with {code}"
        if state != "enabled":
            yield f"round {number}: the scheduler was {state}"
    if len(rounds) != plan.all_rounds:
        yield f"{len(rounds)} of {plan.all_rounds} rounds"


def _end_faults(said: dict[str, list[str]]) -> Iterator[str]:
    last_words = " | ".join(said.get("said", [])[-3:])
    if said.get("code") != [str(ENDED_BY_TERM)]:
        yield f"the session ended with {said.get('code')}: {last_words}"
    elif "all put back" not in last_words:
        yield f"the session ended without having put all back: {last_words}"
    if said.get("after") != ["disabled"]:
        yield f"the kernel's scheduler is {said.get('after')} afterwards"


def _thread_faults(lines: Sequence[str]) -> Iterator[str]:
    if len(lines) != 1:
        yield f"the session's status was read {len(lines)} times"
        return
    seen, gone, missing = map(int, lines[0].split())
    if missing or gone > PASSING or seen < PARKED:
        yield f"the session knows {seen} threads: {gone} are gone, {missing} are missing"
