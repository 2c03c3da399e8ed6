"""One boot per kernel: every policy is loaded, runs a mixed load and is taken out again; what the guest says of it."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ampsched import Catalog
from ampsched.vm import exact

HERE = Path(__file__).parent
GUEST, LOAD = HERE / "guest.sh", HERE / "load.sh"
MACHINE = "2B2S"
LIMIT_S = 3600.0
"""Time of this computer for a boot with all policies."""
LOAD_DID = "answered counted counted counted slept slept"
"""What the threads of the load say, sorted, if each has done its work."""
COMPLAINT = re.compile(r"WARNING|BUG|Oops|stall|lockup|hung|runnable task|Call Trace|error", re.IGNORECASE)
STAMP = re.compile(r"\[ *(\d+\.\d+)\] (.*)")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
REFUSED = 2
"""Exit code of what is refused."""
REFUSAL = re.compile(r"^error: scx: policy \S+ cannot run inside the kernel: (.+)$")
"""What is refused by name. Anything else that goes wrong at loading, such as the verifier's word, is a fault."""


@dataclass(frozen=True)
class Column:
    """A kernel on a kind of cores.

    Attributes:
        kernel: Version that names it.
        architecture: ``x86_64`` or ``aarch64``.
        cpu: QEMU's model of the cores.
    """

    kernel: str
    architecture: str
    cpu: str

    def title(self) -> str:
        """Its head in tables."""
        is_arm = self.architecture == "aarch64"
        return f"{self.kernel} {self.cpu.removeprefix('cortex-').upper() if is_arm else 'x86-64'}"


COLUMNS = (
    *(Column(kernel, "x86_64", "max") for kernel in ("6.16", "6.18", "7.0", "7.3")),
    *(Column(kernel, "aarch64", cpu) for cpu in ("cortex-a76", "cortex-a57") for kernel in ("6.18", "7.3")),
)


@dataclass(frozen=True)
class Cell:
    """What became of a policy, or another scheduler, in a kernel.

    Attributes:
        name: Of the policy.
        code: Exit code of the program that loads it.
        said: What that program and the load have written.
        after: State of the kernel's scheduler afterwards.
        log: Lines of the kernel's log meanwhile, without what came before.
    """

    name: str
    code: int
    said: tuple[str, ...]
    after: str
    log: tuple[str, ...]

    def load_s(self) -> float | None:
        """Time from the start of the loading program until the kernel has the scheduler, in s of the guest's time."""
        stamps = [(float(found[1]), found[2]) for line in self.log if (found := STAMP.match(line))]
        begin = next((at for at, text in stamps if text == "begin"), None)
        enabled = next(
            (at for at, text in stamps if text.startswith("sched_ext:") and " enabled" in text), None
        )
        return enabled - begin if begin is not None and enabled is not None else None

    def runs(self) -> bool:
        """Whether it was loaded, scheduled the load to its end, and was taken out."""
        return self.load_s() is not None and self.code == 0

    def reason(self) -> str | None:
        """Why it was refused, in the loading program's words; none if it was not."""
        found = [refusal[1] for line in self.said if (refusal := REFUSAL.match(line))]
        return found[0] if self.code == REFUSED and len(found) == 1 and self.load_s() is None else None

    def last_words(self) -> str:
        """The last line that the loading program has written, without colours."""
        own = [line for line in self.said if not line.startswith("load ")]
        return COLOUR.sub("", own[-1]) if own else "it said nothing"

    def faults(self, *, is_ours: bool = True) -> list[str]:
        """What should not have happened. Schedulers of others may exit as they like, and need not load."""
        found = []
        if self.reason() is None and (is_ours or self.load_s() is not None):
            if is_ours and self.code != 0:
                found.append(f"exit code {self.code}: {' | '.join(self.said[-3:])}")
            loads = [line for line in self.said if line.startswith("load ")]
            if loads != [f"load enabled enabled {LOAD_DID}"]:
                found.append(f"the load says {loads}")
        if self.after != "disabled":
            found.append(f"the kernel's scheduler is {self.after} afterwards")
        return found + [f"the kernel says: {line}" for line in self.log if COMPLAINT.search(line)]


def cells(output: str) -> list[Cell]:
    """What the guest has written, policy by policy; only those that it has ended with."""
    found: list[dict[str, list[str]]] = []
    for line in output.splitlines():
        word, _, rest = line.partition(" ")
        if word == "policy":
            found.append({"policy": [rest]})
        elif found:
            found[-1].setdefault(word, []).append(rest)
    return list(_whole(found))


def _whole(found: Sequence[dict[str, list[str]]]) -> Iterator[Cell]:
    for lines in found:
        if {"code", "after"} <= lines.keys():
            said, log = lines.get("said", []), lines.get("log", [])
            yield Cell(lines["policy"][0], int(lines["code"][0]), tuple(said), lines["after"][0], tuple(log))


@dataclass(frozen=True)
class Result:
    """A column's cells.

    Attributes:
        column: The kernel.
        release: What it calls itself.
        policies: Ours, in the order in which they were tried.
        peers: Schedulers of others.
        lacking: Names of the policies that cannot run there according to `ampsched-live doctor`; none if it was not
            asked.
    """

    column: Column
    release: str
    policies: tuple[Cell, ...]
    peers: tuple[Cell, ...] = ()
    lacking: frozenset[str] | None = None


def run(
    column: Column,
    policies: Sequence[str],
    loader: Path,
    peers: Sequence[Path] = (),
    doctor: Path | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> Result:
    """Boots a kernel and tries policies one after the other.

    Args:
        column: The kernel.
        policies: As on the command line of the program that loads them.
        loader: That program, built for the kernel's architecture.
        peers: Programs of other schedulers, for the same architecture.
        doctor: The program `ampsched-live`, which says what can run there; for the same architecture, too.
        tell: Is told the guest's output as it comes.

    Raises:
        RuntimeError: The machine went away or did not end in time, or the guest's script failed.
        VmError: The machine cannot be booted.
    """
    machine = Catalog.shipped().machine(MACHINE)
    guest = exact.Exact(machine, column.kernel, column.architecture, cpu=column.cpu)
    options = exact.core_options(guest)
    command = ["sh", str(GUEST), str(LOAD), str(loader), *options, "--", *policies, "--", *map(str, peers)]
    programs = [loader, *peers, *([doctor] if doctor else [])]
    work = exact.Work(command, [GUEST, LOAD, *programs], {"DOCTOR": str(doctor or "")})
    done = exact.run(guest, work, limit_s=LIMIT_S, echo=tell)
    found = cells(done.output)
    if done.code != 0 or len(found) != len(policies) + len(peers):
        last = " | ".join([*done.output.splitlines()[-3:], *done.console.splitlines()[-3:]])
        raise RuntimeError(f"{column.title()}: exit code {done.code} after {len(found)} policies: {last}")
    release = done.output.splitlines()[0]
    ours, others = tuple(found[: len(policies)]), tuple(found[len(policies) :])
    return Result(column, release, ours, others, lacking(done.output))


def lacking(output: str) -> frozenset[str] | None:
    """The policies that lack something essential in the kernel, as `ampsched-live doctor --json` has told the guest."""
    said = [line.removeprefix("doctor ") for line in output.splitlines() if line.startswith("doctor ")]
    if not said:
        return None
    verdicts = json.loads("\n".join(said))["policies"]
    return frozenset(
        name for name, verdict in verdicts.items() if any(demand["is_essential"] for demand in verdict["scx"])
    )
