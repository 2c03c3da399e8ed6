"""What a kernel's own scheduler did in single runs, and what stands for it in the simulator, as texts to be laid side
by side: ``python -m ampsched_lab.truth.pairs.traces``; with ``--simulated`` the simulator's alone, in a second.

A line per event, in the order of time: ms since the run's begin, CPU, who ran there, what happened. Recording who wakes
whom takes a bit of time of its own, so such a run is not exactly one of the campaign.
"""

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ampsched import Told
from ampsched_lab.campaign.boot import KERNEL, Scheduler, boot
from ampsched_lab.campaign.plan import SETTLE_US, Run
from ampsched_lab.truth.pairs.linux import MACHINES, RESULTS, simulator_of
from ampsched_lab.truth.pairs.simulated import Simulator
from ampsched_lab.truth.pairs.systems import POLICY_OF, SYSTEMS, System, system
from ampsched_lab.truth.pairs.workloads import WORKLOADS, Workload

LINE = re.compile(
    r"^\s*(?P<comm>.+)-(?P<pid>\d+) +\[(?P<cpu>\d+)\] (?P<flags>\S+) +(?P<s>\d+)\.(?P<us>\d{6}): (?P<event>\w+): (?P<rest>.*)$"
)
VALUE = re.compile(r"(\w+)=(\S+)")
INTERRUPTED = frozenset("hHsZz")
"""Flags of what an interrupt did, whoever ran meanwhile."""


def threads_of(lines: Iterable[str], programs: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Names of a run's threads by number: those that the director has started, and theirs.

    Args:
        lines: The kernel's trace.
        programs: What the director says of the programs, in the order of the plan.
    """
    waiting = sorted(programs, key=lambda program: program["start_ns"])
    owners: dict[int, Mapping[str, Any]] = {}
    names: dict[int, str] = {}
    started: Counter[str] = Counter()
    for line in lines:
        found = LINE.match(line)
        if not found or found["event"] != "sched_process_fork":
            continue
        values = dict(VALUE.findall(found["rest"]))
        parent, child = int(values["pid"]), int(values["child_pid"])
        if parent in owners:
            program = owners[parent]
            known = (program["report"] or {}).get("threads", [])
            number = started[program["name"]]
            started[program["name"]] += 1
            own = f"{known[number]['name']}.{known[number]['index']}" if number < len(known) else f"{number}"
            names[child] = f"{program['name']}:{own}"
        elif values["comm"] == "director" and waiting:
            program = waiting.pop(0)
            names[child] = f"{program['name']}:main"
        else:
            continue
        owners[child] = program
    return names


def text_of(lines: Sequence[str], run: Mapping[str, Any], limit: int) -> Iterator[str]:
    """The events of a run.

    Args:
        lines: The kernel's trace; its times are those of the director's clock.
        run: What the director says of it.
        limit: Events per CPU, from the start of the first program on.
    """
    threads = threads_of(lines, run["programs"])
    begin_us = run["begin_ns"] // 1000
    first_us = min(program["start_ns"] for program in run["programs"]) // 1000
    for program in run["programs"]:
        took_ms = program["turnaround_ns"] / 1e6
        yield f"# {program['name']}: begins at {program['start_ns'] / 1e6:.3f} ms, takes {took_ms:.3f} ms"
    told: Counter[int] = Counter()
    for line in lines:
        found = LINE.match(line)
        if not found:
            continue
        at_us = int(found["s"]) * 1_000_000 + int(found["us"]) - begin_us
        cpu = int(found["cpu"])
        if at_us < first_us or told[cpu] >= limit:
            continue
        told[cpu] += 1
        yield f"{at_us / 1000:11.3f} cpu{cpu} {_event(found, threads)}"


def _event(found: re.Match[str], threads: Mapping[int, str]) -> str:
    values = dict(VALUE.findall(found["rest"]))

    def who(pid: str, comm: str) -> str:
        number = int(values[pid])
        return threads.get(number, "idle" if number == 0 else values.get(comm, str(number)))

    event = found["event"].removeprefix("sched_")
    if event == "switch":
        before = f"{who('prev_pid', 'prev_comm')} ({values['prev_state']})"
        return f"{event:10} {before} -> {who('next_pid', 'next_comm')}"
    current = threads.get(int(found["pid"]), "idle" if found["pid"] == "0" else found["comm"])
    by = "interrupt" if not INTERRUPTED.isdisjoint(found["flags"]) else current
    if event == "cpu_frequency":
        return f"{'frequency':10} cpu{values['cpu_id']}: {int(values['state']) / 1000:g} MHz"
    if event == "process_fork":
        return f"{'fork':10} {who('child_pid', 'child_comm')} by {by}"
    thread = who("pid", "comm")
    if event == "migrate_task":
        return f"{'migrate':10} {thread}: cpu{values['orig_cpu']} -> cpu{values['dest_cpu']} by {by}"
    return f"{event:10} {thread} on cpu{int(values['target_cpu'])} by {by}"


LATER_NS = 100_000
"""A core that goes on to another thread so much later was idle meanwhile; switches take less."""
LETTERS = {"leaves": "S", "ends": "X"}
"""The kernel's letters for how a turn ends, by the word for it; R: the thread could go on."""


def simulated_text(
    simulator: Simulator, workload: Workload, offset: int, policy: str, seed: int
) -> Iterator[str]:
    """The events of a simulated run, in the form of the kernel's.

    Args:
        simulator: Of the system.
        workload: What is run.
        offset: Start offset.
        policy: What stands for the kernel's scheduler.
        seed: Of what that leaves to chance.
    """
    starts_us = workload.mix().starts_us(offset)
    stories = simulator.stories(workload, starts_us, policy, seed)
    for ended, start_us in zip(simulator.run(workload, starts_us, policy, seed), starts_us, strict=True):
        yield f"# {ended.name}: asked for at {start_us / 1000:.3f} ms, takes {ended.turnaround_ns / 1e6:.3f} ms"
    names = {number: story.name.replace("/", ":", 1) for number, story in enumerate(stories)}
    events = sorted(
        ((event, names[number]) for number, story in enumerate(stories) for event in story.events),
        key=lambda each: each[0].at_ns,
    )
    lines = [*_turns(events), *_decisions(events)]
    for at_ns, core, line in sorted(lines, key=lambda line: line[0]):
        yield f"{at_ns / 1e6 - SETTLE_US / 1000:11.3f} cpu{core} {line}"


Line = tuple[int, int | None, str]
"""When, where, what."""


def _turns(events: Sequence[tuple[Told, str]]) -> Iterator[Line]:
    """Where cores go on to another thread, or fall idle."""
    last: dict[int | None, tuple[int, str]] = {}
    for event, name in events:
        if event.what == "stops":
            letter = next((LETTERS[word] for word in LETTERS if f" {word} " in event.sentence), "R")
            last[event.core] = (event.at_ns, f"{name} ({letter}: {event.because})")
        elif event.what == "runs":
            since_ns, before = last.get(event.core, (0, "idle"))
            if before != "idle" and event.at_ns - since_ns >= LATER_NS:
                yield since_ns, event.core, f"{'switch':10} {before} -> idle"
                before = "idle"
            yield event.at_ns, event.core, f"{'switch':10} {before} -> {name}"


def _decisions(events: Sequence[tuple[Told, str]]) -> Iterator[Line]:
    """Where threads are put, and why."""
    wakers: dict[str, str] = {}
    for event, name in events:
        if event.what in ("starts", "woken"):
            how = "wakeup_new" if event.what == "starts" else "wakeup"
            wakers[name] = f"{how:10} {name} by {(event.other or 'nobody').replace('/', ':', 1)}"
        elif event.what == "placed":
            yield event.at_ns, event.core, f"{wakers[name]}: {event.because}"
        elif event.what == "moved":
            yield event.at_ns, event.core, f"{'migrate':10} {name}: {event.sentence}"


def record(
    found: System, workloads: Sequence[Workload], offset: int, programs: Path
) -> list[tuple[dict[str, Any], list[str]]]:
    """Runs workloads after one boot: what the director says of each, and the kernel's trace."""
    runs = [Run(workload.mix(), offset) for workload in workloads]
    with tempfile.TemporaryDirectory(prefix="ampsched-traces-") as name:
        told = boot(found.guest(programs), Scheduler(KERNEL), runs, Path(name))
        return [
            (each, (Path(name) / f"{run.key}.txt").read_text("utf-8", errors="replace").splitlines())
            for run, each in zip(runs, told, strict=True)
        ]


def main() -> None:
    """Boots a system, or simulates it, and writes a file per workload."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--programs", type=Path, help="folder of a folder per architecture, to run the kernel"
    )
    parser.add_argument("--simulated", action="store_true", help="simulate; boot nothing")
    parser.add_argument("--seed", type=int, default=1, help="of the simulation (default %(default)s)")
    parser.add_argument("--policy", help="what stands for the kernel's scheduler, if not what the page has")
    parser.add_argument("--system", default=SYSTEMS[0].name, help="by default %(default)s")
    parser.add_argument("--only", required=True, help="workloads, separated by commas")
    parser.add_argument("--offset", type=int, default=1, help="start offset (default %(default)s)")
    parser.add_argument("--events", type=int, default=2000, help="events per CPU (default %(default)s)")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder; gets SYSTEM/WORKLOAD-OFFSET[-simulated].txt"
    )
    arguments = parser.parse_args()
    known = {workload.name: workload for workload in WORKLOADS}
    names = arguments.only.split(",")
    if not set(names) <= set(known):
        sys.exit(f"--only {arguments.only}: some of {', '.join(known)}")
    if arguments.simulated == (arguments.programs is not None):
        sys.exit("either --simulated or --programs")
    found = system(arguments.system)
    workloads = [known[name] for name in names]
    folder = arguments.out / found.name
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in _texts(arguments, found, workloads).items():
        path = folder / f"{name}.txt"
        path.write_text("\n".join(lines) + "\n", "utf-8")
        print(path)


def _texts(
    arguments: argparse.Namespace, found: System, workloads: Sequence[Workload]
) -> dict[str, Iterator[str]]:
    """What is written, by the name of the file."""
    offset = arguments.offset
    if arguments.simulated:
        policy = arguments.policy or POLICY_OF[found.name]
        with tempfile.TemporaryDirectory(prefix="ampsched-traces-") as name:
            simulator = simulator_of(found, Path(name), RESULTS, MACHINES)
            return {
                f"{each.name}-{offset}-simulated": iter(
                    list(simulated_text(simulator, each, offset, policy, arguments.seed))
                )
                for each in workloads
            }
    recorded = record(found, workloads, offset, arguments.programs)
    return {
        f"{each.name}-{offset}": text_of(lines, told, arguments.events)
        for each, (told, lines) in zip(workloads, recorded, strict=True)
    }


if __name__ == "__main__":
    main()
