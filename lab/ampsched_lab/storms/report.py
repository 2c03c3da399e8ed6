"""The page on storms, from results that are kept beside it."""

import fcntl
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ampsched import markdown
from ampsched_lab.campaign.store import CLOCK, IN_KERNEL, files_digest, sources_digest
from ampsched_lab.shared import plots
from ampsched_lab.shared.summary import counted, opening
from ampsched_lab.storms.boot import HERE, MIPS, PARKED, Outcome, Plan

DATA, PAGE, FIGURE = "measured.json", "report.md", "storms.svg"
STALE = "*"
STALE_NOTE = f"A {STALE} marks what was run with other sources than today's."
SOURCES = ("storm.c", "targets.c", "storm.h", "guest.sh")
KINDS = {
    "forks": "processes that end at once (`fork`)",
    "vforks": "the same by `vfork`",
    "threads": "four threads that come and go",
    "execs": "programs executed by a new process",
    "thread_execs": "programs executed by a thread that is not its process's first",
    "pipe_turns": "turns of two processes that wake each other through pipes",
    "futex_turns": "the same by a futex",
    "pi_locks": "a mutex with priority inheritance taken, by a nice, two ordinary and a real-time thread",
    "yields": "`sched_yield`",
    "sums": "pieces of work between them",
    "sleeps": "sleeps of up to 1 ms",
    "affinities": "affinities changed, to one, some or all CPUs, of which some are offline",
    "nices": "nice values changed",
    "classes": "classes changed, to real-time and back to an ordinary, batch or idle one",
    "stops": "processes stopped (SIGSTOP) and continued",
    "kills": "processes killed while they run, wait or are stopped",
}

Cell = tuple[str, str]
"""Kernel and policy."""


@dataclass(frozen=True)
class Entry:
    """A boot as it is kept.

    Attributes:
        kernel: Version that names it.
        policy: In the kernel.
        plan: What it went through.
        digest: Of what decides the outcome.
        host_s: Time of the computer.
        outcome: What became of it.
    """

    kernel: str
    policy: str
    plan: Plan
    digest: str
    host_s: int
    outcome: Outcome

    @property
    def name(self) -> str:
        """The policy, with a mark if it was run with other sources than today's."""
        return f"{self.policy}{'' if self.digest == digest(self.plan) else STALE}"


def seed_of(seed: int, kernel: str, policy: str) -> int:
    """A boot's own."""
    return seed * 1_000_000 + zlib.crc32(f"{kernel} {policy}".encode()) % 1_000_000


def digest(plan: Plan) -> str:
    """Of the sources of clock, storm and what our policies have in the kernel, and of the plan."""
    words = [sources_digest(CLOCK), sources_digest(IN_KERNEL), str(plan), str(MIPS)]
    own = files_digest(tuple(HERE / name for name in SOURCES))
    return f"{zlib.crc32(' '.join([*words, own]).encode()):08x}"


def read(folder: Path) -> dict[Cell, Entry]:
    """What there is, by kernel and policy."""
    path = folder / DATA
    found = json.loads(path.read_text("utf-8")) if path.exists() else []
    entries = [
        Entry(**{**each, "plan": Plan(**each["plan"]), "outcome": Outcome.load(each["outcome"])})
        for each in found
    ]
    return {(entry.kernel, entry.policy): entry for entry in entries}


def add(folder: Path, entry: Entry) -> None:
    """Puts an entry into the data, in the place of an older one; one at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = read(folder) | {(entry.kernel, entry.policy): entry}
        text = json.dumps([asdict(found[cell]) for cell in sorted(found)], indent=1)
        (folder / DATA).write_text(text + "\n", "utf-8")
    finally:
        os.close(lock)


def write(folder: Path) -> None:
    """Writes the page and its figure."""
    entries = read(folder)
    (folder / PAGE).write_text(page(entries), "utf-8")
    kernels = dict.fromkeys(kernel for kernel, _ in sorted(entries))
    counts = {
        f"Linux {kernel}": {
            kind.replace("_", " "): sum(
                each.outcome.counts.get(kind, 0) for each in entries.values() if each.kernel == kernel
            )
            for kind in KINDS
        }
        for kernel in kernels
    }
    failed = sum(bool(each.outcome.faults) for each in entries.values())
    title = f"What policies met in {len(entries)} boots, {failed or 'none'} of which failed"
    plots.dots(folder / FIGURE, title, counts, "events in all boots", scale="log")


def answer(entries: Sequence[Entry]) -> str:
    """How much happened to how many policies, and what failed."""
    outcomes = [entry.outcome for entry in entries]
    policies, kernels = ({getattr(entry, name) for entry in entries} for name in ("policy", "kernel"))
    faulty = [entry for entry in entries if entry.outcome.faults]
    events = sum(sum(each.counts.values()) for each in outcomes)
    if not entries:
        return ""
    return opening(
        [
            f"**{counted(len(policies), 'policy', 'policies')} in {counted(len(kernels), 'kernel')} went through "
            f"{counted(sum(each.rounds for each in outcomes), 'storm')}, and "
            f"{'none failed' if not faulty else f'{len(faulty)} of {len(entries)} boots failed'}.**",
            f"Each policy met {events / len(entries):,.0f} events per kernel on average, {events:,} in all, and CPUs went "
            f"or came back {sum(each.cpus for each in outcomes)} times meanwhile.",
            f"The boots took {sum(each.virtual_s for each in outcomes) / 3600:.1f} h of virtual time, of which "
            f"{sum(each.storm_s + each.thin_s for each in outcomes) / 60:.0f} min were storms.",
        ],
        FIGURE,
        "How many events of each kind the policies met in each kernel",
    )


def page(entries: Mapping[Cell, Entry]) -> str:
    """The page in Markdown."""
    ordered = [entries[cell] for cell in sorted(entries)]
    return markdown.page(
        "# Storms",
        answer(ordered),
        "## How it is done",
        _head(ordered),
        "## Boots",
        _boots(ordered),
        *([STALE_NOTE] if any(entry.name.endswith(STALE) for entry in ordered) else []),
        "## Events",
        _events(ordered),
        "## What went wrong",
        _faults(ordered),
    )


def _head(entries: Sequence[Entry]) -> str:
    plans = {tuple(asdict(replace(entry.plan, seed=0)).values())[1:] for entry in entries}
    settings = "; ".join(
        f"{cores} cores, {rounds} storms of {ms} ms with {pause_s} s of rest after each, and a CPU that goes and comes "
        f"back {gone} times"
        for cores, rounds, ms, pause_s, gone in sorted(plans)
    )
    big, little = MIPS
    return f"""Policies in real kernels go through everything that threads can do to a scheduler: they come and go, execute programs,
wake each other, inherit priorities, and have their affinities, nice values and classes changed; they are stopped,
continued and killed, and CPUs go and come back meanwhile. Which of that happens together, how much, and when, is drawn
from a seed. `make -C lab storms` does it and writes this page.

Each boot of an [exact virtual machine](../../howto/run-on-cores-you-do-not-have.md) has one policy, which schedules
everything: {settings}. Half of the cores have {big} MIPS, the others {little}: slow, so that storms are long. While
all rest, the machine's clock jumps from one event to the next, so most of the virtual time costs little; *in storms*
says how much of it is none of that. Epochs of policies go on all the time. When a CPU goes or comes back it does so in
the middle of a storm, under the same scheduler; a *thin* storm goes on for thirty seconds then, in which everybody
rests for some 50 ms after each step.

What is checked: the scheduler is in the kernel after every storm; the kernel has not complained; each process ended as
it should, each sum, answer and count was right, and everybody who had been tormented went on when left alone; the
session knew all threads that there were, among them {PARKED} that never ran, and none that had gone; it put all back
when it ended, and the kernel was its own again. Holding threads back for whole epochs is not among the storms: the one
policy that does it sets clocks, which these machines do not have."""


def _boots(entries: Sequence[Entry]) -> str:
    heads = ["kernel", "policy", "seed", "virtual time (s)", "in storms (s)", "in thin ones (s)", "storms", "CPUs gone or back",
             "threads known", "epochs", "decisions", "real time (s)", "faults"]  # fmt: skip
    rows = []
    for kernel in dict.fromkeys(entry.kernel for entry in entries):
        own = [entry for entry in entries if entry.kernel == kernel]
        rows += [_boot(entry) for entry in own]
        outcomes = [entry.outcome for entry in own]
        rows.append(
            [
                kernel, "**all**", "", f"{sum(each.virtual_s for each in outcomes):,.0f}",
                f"{sum(each.storm_s for each in outcomes):,.1f}",
                f"{sum(each.thin_s for each in outcomes):,.0f}", f"{sum(each.rounds for each in outcomes)}",
                f"{sum(each.cpus for each in outcomes)}", "", "", "",
                f"{sum(entry.host_s for entry in own):,}", f"{sum(len(each.faults) for each in outcomes)}",
            ]
        )  # fmt: skip
    return markdown.table(heads, rows, slice(2, None))


def _boot(entry: Entry) -> list[str]:
    outcome = entry.outcome
    known = str(outcome.threads[0]) if outcome.threads else ""
    epochs, decisions = outcome.seen[1:] if outcome.seen else ("", "")
    return [
        entry.kernel, entry.name, str(entry.plan.seed), f"{outcome.virtual_s:,.0f}", f"{outcome.storm_s:,.1f}",
        f"{outcome.thin_s:,.0f}", str(outcome.rounds), str(outcome.cpus), known, str(epochs), str(decisions), f"{entry.host_s:,}",
        str(len(outcome.faults)),
    ]  # fmt: skip


def _events(entries: Sequence[Entry]) -> str:
    heads = ["event", *(f"{entry.policy}, {entry.kernel}" for entry in entries), "all"]
    rows = []
    for kind, what in KINDS.items():
        counts = [entry.outcome.counts.get(kind, 0) for entry in entries]
        rows.append([what, *(f"{count:,}" for count in [*counts, sum(counts)])])
    return markdown.table(heads, rows, markdown.ALL_BUT_FIRST)


def _faults(entries: Sequence[Entry]) -> str:
    lines = [
        f"* {entry.policy} on {entry.kernel}, seed {entry.plan.seed}: {fault}"
        for entry in entries
        for fault in entry.outcome.faults
    ]
    noted = sum(entry.outcome.noted for entry in entries)
    known = (
        f"\n\nThe kernel noted {noted} times that softirq work is pending (see the limits)." if noted else ""
    )
    return ("\n".join(lines) or "Nothing.") + known
