"""Makes a noise file (`ampsched simulate --noise FILE`) of a trace that lab/ampsched_lab/noise/noise.sh has recorded.

    python lab/ampsched_lab/noise/noise.py TRACE [--fastest 0,1] [--describe TEXT] >FILE
    python lab/ampsched_lab/noise/noise.py TRACE --evidence

Times are as exact as the tracer's: to 1 us, means better. Left out is what the simulator knows by itself: the tick,
which machines state, and what moves threads of programs (migration threads, reschedule interrupts).
"""

import argparse
import re
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from ampsched.vm.exact.trace import KERNEL_THREADS, LINE, SWITCHED, WOKEN

QUANTILES = 20
LEAST_EVENTS = 5
"""Fewer events of a source tell nothing of how they are distributed."""
ONE_CORE = 0.9
"""A source whose events are on one core to this share belongs to that core."""
ONE_CORE_EVENTS = 30
"""If it has so many; fewer gather by chance."""
PAUSE_US_MIN, PAUSE_US_MAX = 10.0, 1e9
TICKS = ("tick_nohz_handler", "tick_sched_timer", "tick_sched_handle")
TICK = "tick"
KNOWN_BY_ITSELF = {TICK, "reschedule interrupt", "migration"}
SHIPPED = {
    "idle": "an idle system: nothing but the kernel's own work",
    "busy": "a busy system: the kernel's work beside a load like a parallel build",
}
ORIGIN = "make -C lab noise: an exact virtual machine, 2B2S with 1000 MIPS"
ENTRY = re.compile(r"^(?P<kind>irq_handler|softirq|ipi|\w+?)_(?P<edge>entry|exit)$")
IDLE = 0


@dataclass
class Source:
    """What one source of noise did."""

    kind: str
    begins_us: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    ends_us: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    durations_us: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, core: int, begin_us: int, end_us: int, took_us: int) -> None:
        """One event."""
        self.begins_us[core].append(begin_us)
        self.ends_us[core].append(end_us)
        self.durations_us[core].append(took_us)

    def count(self, cores: Sequence[int]) -> int:
        """Events on some cores."""
        return sum(len(self.durations_us[core]) for core in cores)


@dataclass
class Turn:
    """A kernel thread from its wake-up until it sleeps."""

    woken_us: int | None
    begin_us: int
    since_us: int
    took_us: int = 0


@dataclass
class Open:
    """An interrupt that has begun on a core."""

    name: str
    begin_us: int
    inside_us: int = 0
    """Time of what came between."""


@dataclass
class Evidence:
    """What became of whom a kernel thread found running."""

    waited_us: list[int] = field(default_factory=list)
    resumed_us: list[int] = field(default_factory=list)
    stayed: int = 0
    moved: int = 0
    moved_with_idle: int = 0
    with_idle: int = 0


class Reader:
    """Reads a trace."""

    def __init__(self, lines: Iterator[str]) -> None:
        self.sources: dict[str, Source] = {}
        self.evidence = Evidence()
        self.head: list[str] = []
        self.kernel: set[int] = set()
        self.first_us = self.last_us = -1
        self._open: dict[int, list[Open]] = defaultdict(list)
        self._running: dict[int, int] = {}
        self._turns: dict[int, Turn] = {}
        self._woken: dict[int, int] = {}
        self._nested: dict[int, int] = defaultdict(int)
        self._preempted: dict[int, tuple[int, int, bool]] = {}
        self.cores: set[int] = set()
        for line in lines:
            self._read(line)

    def _read(self, line: str) -> None:
        if line.startswith(KERNEL_THREADS):
            self.kernel.update(map(int, line.removeprefix(KERNEL_THREADS).split()))
        elif line.startswith(("# uname:", "# command:")):
            self.head.append(line[2:].strip())
        elif found := PLAIN.match(line) or LINE.match(line):
            self._tell(found)

    def _tell(self, found: re.Match[str]) -> None:
        at_us = int(found["seconds"]) * 1_000_000 + int(found["micros"])
        self.first_us = at_us if self.first_us < 0 else self.first_us
        self.last_us = at_us
        core, event, values = int(found["core"]), found["event"], found["values"].strip()
        self.cores.add(core)
        if switched := event == "sched_switch" and SWITCHED.match(values):
            self._switch(core, switched, at_us)
        elif woken := event == "sched_waking" and WOKEN.match(values):
            self._woken.setdefault(int(woken["tid"]), at_us)
        elif event == "hrtimer_expire_entry" and self._open[core]:
            is_tick = any(f"function={name}" in values for name in TICKS)
            self._open[core][-1].name = TICK if is_tick else self._open[core][-1].name
        elif edge := ENTRY.match(event):
            self._edge(core, edge, values, at_us)

    def _edge(self, core: int, edge: re.Match[str], values: str, at_us: int) -> None:
        stack = self._open[core]
        if edge["edge"] == "entry":
            stack.append(Open(_name(edge["kind"], values), at_us))
            return
        if not stack:
            return
        ended = stack.pop()
        whole_us = at_us - ended.begin_us
        if stack:
            stack[-1].inside_us += whole_us
        else:
            self._nested[core] += whole_us
        # Deferred work that a kernel thread does is that thread's.
        if edge["kind"] == "softirq" and self._running.get(core) in self.kernel and not stack:
            self._nested[core] -= whole_us
            return
        source = self._source(ended.name, "interrupt")
        source.add(core, ended.begin_us, at_us, whole_us - ended.inside_us)

    def _switch(self, core: int, values: re.Match[str], at_us: int) -> None:
        before, after = int(values["from_tid"]), int(values["to_tid"])
        nested_us, self._nested[core] = self._nested[core], 0
        self._running[core] = after
        if before in self.kernel and before in self._turns:
            turn = self._turns[before]
            turn.took_us += max(0, at_us - turn.since_us - nested_us)
            if not values["state"].startswith("R"):
                del self._turns[before]
                name = _thread(values["from"])
                self._source(name, "thread").add(core, turn.begin_us, at_us, turn.took_us)
        if after in self.kernel:
            woken_us = self._woken.pop(after, None)
            turn = self._turns.setdefault(after, Turn(woken_us, at_us, at_us))
            turn.since_us = at_us
            self._note(core, before, values, turn, at_us)
        else:
            self._woken.pop(after, None)
        if after in self._preempted:
            was, since_us, idle = self._preempted.pop(after)
            self.evidence.resumed_us.append(at_us - since_us)
            self.evidence.stayed += was == core
            self.evidence.moved += was != core
            self.evidence.moved_with_idle += was != core and idle

    def _note(self, core: int, before: int, values: re.Match[str], turn: Turn, at_us: int) -> None:
        interrupts = before not in {IDLE, *self.kernel} and values["state"].startswith("R")
        if not interrupts or turn.begin_us != at_us or _thread(values["to"]) in KNOWN_BY_ITSELF:
            return
        idle = any(self._running.get(other) == IDLE for other in self.cores if other != core)
        self._preempted[before] = (core, at_us, idle)
        self.evidence.with_idle += idle
        if turn.woken_us is not None:
            self.evidence.waited_us.append(at_us - turn.woken_us)

    def _source(self, name: str, kind: str) -> Source:
        return self.sources.setdefault(name, Source(kind))


# Without the process, where the tracer does not record it.
PLAIN = re.compile(
    r"^\s*.+-(?P<tid>\d+)\s+\[(?P<core>\d+)\] (?P<flags>\S+)\s+"
    r"(?P<seconds>\d+)\.(?P<micros>\d{6}): (?P<event>\w+): (?P<values>.*)$"
)


def _name(kind: str, values: str) -> str:
    if kind == "irq_handler":
        found = re.search(r"name=(\S+)", values)
        return f"{re.sub(r'[0-9]+', '', found[1]) if found else 'device'} interrupt"
    if kind == "softirq":
        found = re.search(r"action=(\w+)", values)
        return f"softirq {found[1].lower() if found else '?'}"
    if kind == "ipi":
        found = re.search(r"\((.*)\)", values)
        return f"{found[1].lower() if found else 'ipi'} interrupt"
    return f"{kind.replace('_', ' ')} interrupt"


def _thread(comm: str) -> str:
    name = comm.split("/")[0].split(":")[0].split("-")[0]
    return f"{name} unbound" if comm.startswith("kworker/u") else name


def table(values: Sequence[float], mean: float, least: float = 0.0) -> list[float]:
    """Equally spaced quantiles with a given mean of the lines between them.

    The greatest one gives way as far as values go, because few are far out; the rest is done in proportion.
    """
    ordered = sorted(values)
    last = len(ordered) - 1
    points = [max(least, float(ordered[round(share * last / QUANTILES)])) for share in range(QUANTILES + 1)]
    inner = sum(points[:-1]) - points[0] / 2
    points[-1] = min(points[-1], max(points[-2], 2 * (mean * QUANTILES - inner)))
    got = (inner + points[-1] / 2) / QUANTILES
    return [point * mean / got if got > 0 else mean for point in points]


def noise_file(reader: Reader, fastest: Sequence[int], description: str, name: str) -> str:
    """The text of a noise file: how often of all cores, how long of the fastest ones."""
    cores = sorted(reader.cores)
    span_us = reader.last_us - reader.first_us
    blocks, few, known = [], Counter[str](), {}
    for title, source in sorted(reader.sources.items()):
        count = source.count(cores)
        if title in KNOWN_BY_ITSELF:
            known[title] = source
        elif count < LEAST_EVENTS:
            few[title] += count
        else:
            blocks.append(_block(title, source, cores, fastest, span_us))
    lines = [
        "# Made by lab/ampsched_lab/noise/noise.py of a trace; see docs/reference/noise.md.",
        f'description = "{description}"',
        f'source = "{name}"',
        *(f"# {line}" for line in [*reader.head, f"{len(cores)} cores for {span_us / 1e6:.1f} s"]),
    ]
    left = [f"{title} ({number})" for title, number in few.items() if number]
    lines += [f"# Too rare, left out: {', '.join(left)}."] if left else []
    for title, source in known.items():
        times = [took for core in cores for took in source.durations_us[core]]
        if times:
            lines.append(
                f"# Not noise here: {title}, {len(times)} times, {sum(times) / len(times):.2f} us on average."
            )
    return "\n".join(lines) + "\n" + "".join(blocks)


def _block(title: str, source: Source, cores: Sequence[int], fastest: Sequence[int], span_us: int) -> str:
    count = source.count(cores)
    most = max(cores, key=lambda core: len(source.durations_us[core]))
    alone = count >= ONE_CORE_EVENTS and len(source.durations_us[most]) >= ONE_CORE * count and len(cores) > 1
    where = [most] if alone else list(cores)
    count = source.count(where)
    times = [float(took) for core in where for took in source.durations_us[core]]
    fast = [float(took) for core in fastest for took in source.durations_us[core]]
    fast = fast if len(fast) >= LEAST_EVENTS else times
    pauses = [
        float(max(0, begin - end))
        for core in where
        for begin, end in zip(source.begins_us[core][1:], source.ends_us[core], strict=False)
    ]
    pause_us = max(PAUSE_US_MIN, (len(where) * span_us - sum(times)) / count)
    shown = table(pauses or [pause_us], pause_us)
    took = table(fast, sum(fast) / len(fast))
    core = f"core = {most}\n" if alone else ""
    return (
        f"\n[[sources]]\n# {count} events, {100 * sum(times) / (len(where) * span_us):.4f} % of the time\n"
        f'name = "{title}"\nkind = "{source.kind}"\n{core}'
        f"pause_us = {_list([min(point, PAUSE_US_MAX) for point in shown])}\n"
        f"duration_us = {_list(took)}\n"
    )


def _list(points: Sequence[float]) -> str:
    lines = textwrap.wrap(
        ", ".join(map(_short, points)), 112, initial_indent="    ", subsequent_indent="    "
    )
    return "[\n" + "\n".join(lines) + ",\n]"


def _short(number: float) -> str:
    return f"{number:.4g}" if number < 1000 else f"{number:.0f}"


def evidence(reader: Reader) -> str:
    """What happens to threads that kernel threads interrupt."""
    found = reader.evidence
    times = sorted(found.waited_us)
    if not times or not found.resumed_us:
        return "no thread of a program was interrupted by a kernel thread\n"
    soon, late = (sum(time <= most for time in times) / len(times) for most in (10, 1000))
    return (
        f"{len(times)} threads of programs lost a core to a kernel thread that had woken; it began after "
        f"{median(times):g} us (median), within 10 us in {100 * soon:.0f} %, "
        f"within 1 ms in {100 * late:.0f} %\n"
        f"{found.stayed + found.moved} ran again, after {median(found.resumed_us):g} us (median): {found.stayed} on the "
        f"same core, {found.moved} on another one\n"
        f"in {found.with_idle} cases another core idled; {found.moved_with_idle} of these threads moved\n"
    )


def _cores(text: str) -> list[int]:
    """Numbers of cores, separated by commas."""
    if not re.fullmatch(r"[0-9]+(,[0-9]+)*", text):
        raise argparse.ArgumentTypeError(f'"{text}" is not a list of cores such as 0,1')
    return [int(core) for core in text.split(",")]


def main() -> int:
    """Reads the arguments and writes a noise file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trace", type=Path, help="what lab/ampsched_lab/noise/noise.sh has written")
    parser.add_argument(
        "--fastest", type=_cores, help="the fastest cores, such as 0,1, which tell durations; all by default"
    )
    parser.add_argument("--describe", default="noise of a recorded system", help="the file's description")
    parser.add_argument("--origin", default="recorded", help="what the trace is of, for the file's source")
    parser.add_argument("--kind", choices=SHIPPED, help="write a shipped file: its description and source")
    parser.add_argument(
        "--evidence", action="store_true", help="print what happens to interrupted threads instead"
    )
    given = parser.parse_args()
    with given.trace.open(encoding="utf-8", errors="replace") as lines:
        reader = Reader(iter(lines))
    if reader.last_us <= reader.first_us:
        print(
            f"{given.trace}: no events of Linux's function tracer (record it with lab/ampsched_lab/noise/noise.sh)",
            file=sys.stderr,
        )
        return 2
    if given.kind:
        given.describe, given.origin = SHIPPED[given.kind], ORIGIN
    fastest = sorted(reader.cores if given.fastest is None else given.fastest)
    if not set(fastest) <= reader.cores:
        cores = ",".join(map(str, sorted(reader.cores)))
        parser.error(f"argument --fastest: the trace has only cores {cores}")
    text = evidence(reader) if given.evidence else noise_file(reader, fastest, given.describe, given.origin)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
